"""What an application can know by itself: what arrived, what its calls raised, what its libraries logged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__ = ["Notes"]

PLUGIN = "otel_mcp_resume"
"""Records of the plugin are its verdict, not something that the application noticed."""


class Notes:
    """Taken by one application during one play."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._arrived: list[str] = []
        self.alarms: list[str] = []
        """Every error and every log record from WARNING on, from whatever library."""

    def arrived(self, text: str) -> None:
        """A message of the server reached the application."""
        self._arrived.append(text)
        self._say("arrived", text=text)

    def count(self, prefix: str) -> int:
        """How many different messages with this beginning arrived."""
        return len({text for text in self._arrived if text.startswith(prefix)})

    def raised(self, error: BaseException) -> None:
        """A call of the application failed."""
        self.alarms.append(f"{type(error).__name__}: {error}")

    def conclude(self, saw: str, **figures: int) -> None:
        """The application is through: what it saw in the end, in words and in figures."""
        self._say("concluded", saw=saw, alarms=self.alarms, figures=figures)

    @contextmanager
    def listening(self) -> Generator[None, None, None]:
        """Notes what is logged meanwhile, as an operator would see it with ordinary settings."""
        handler = _Alarms(self.alarms)
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)


class _Alarms(logging.Handler):
    def __init__(self, alarms: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._alarms = alarms

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] != PLUGIN:
            self._alarms.append(f"{record.levelname} {record.name}: {record.getMessage()}")
