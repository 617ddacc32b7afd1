"""The body of one response, on its way to the SDK: what is read, and how the reading ends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from otel_mcp_resume.rules.terms import Disconnect

if TYPE_CHECKING:
    from otel_mcp_resume.watch.connection import Connection

__all__ = ["Over", "Reading", "tap_body", "tap_text"]


class Over(Protocol):
    """Told that a connection has ended. Must not raise."""

    def __call__(self, connection: Connection, cause: Disconnect, *, by_sdk: bool = False) -> None:
        """`by_sdk` says that the SDK has closed the response, and not because of an error."""
        ...


class Reading(NamedTuple):
    """What the taps of all responses share."""

    report: Callable[[Any], None]
    fail: Callable[[Exception], None]
    """Takes what breaks in our own bookkeeping. Must not raise."""
    over: Over


def tap_text(response: Any, connection: Connection, reading: Reading) -> None:  # noqa: C901 - closures over one flag
    """The text of an event stream goes through `connection`, until the response is closed."""
    read, close = response.aiter_text, response.aclose
    feed, (report, fail, over) = connection.feed, reading
    is_reading = False

    async def aiter_text(chunk_size: int | None = None) -> AsyncIterator[str]:
        nonlocal is_reading
        texts = read() if chunk_size is None else read(chunk_size)
        is_reading = True
        try:
            async for text in texts:
                try:
                    facts = feed(text)
                    if facts:
                        report(facts)
                except Exception as error:  # noqa: BLE001 - ours alone, and without a wrapper around every message
                    fail(error)
                is_reading = False
                yield text
                is_reading = True
        except GeneratorExit:
            await texts.aclose()  # as the consumer would have done itself
            raise
        except Exception:
            over(connection, Disconnect.RESET)
            raise
        except BaseException:
            over(connection, Disconnect.CANCELLED)
            raise
        else:
            if not connection.closed:
                over(connection, Disconnect.CLOSED)

    async def aclose() -> None:
        # At the end of a body the HTTP library closes the response by itself.
        if not is_reading and not connection.closed:
            over(connection, Disconnect.CANCELLED, by_sdk=sys.exc_info()[0] is None)
        try:
            untap()
        except Exception as error:  # noqa: BLE001 - ours alone
            fail(error)
        await close()

    untap = _replace(response, {"aiter_text": aiter_text, "aclose": aclose})


def tap_body(response: Any, learn: Callable[[bytes], None], fail: Callable[[Exception], None]) -> None:
    """`learn` gets the whole body once it is read. Neither it nor `fail`, which takes what breaks here, may raise."""
    read = response.aread

    async def aread() -> bytes:
        body: bytes = await read()
        try:
            untap()
        except Exception as error:  # noqa: BLE001 - ours alone
            fail(error)
        learn(body)
        return body

    untap = _replace(response, {"aread": aread})


def _replace(response: Any, methods: dict[str, Any]) -> Callable[[], None]:
    """Puts `methods` in place of those of `response`. What takes them away again.

    They hold the response, and it holds them: left in place, all that hangs on it would wait for the garbage collector.
    """
    members = cast("dict[str, Any]", vars(response))
    before = {name: members[name] for name in methods if name in members}
    for name, method in methods.items():
        setattr(response, name, method)

    def untap() -> None:
        for name, method in methods.items():
            if members.get(name) is not method:  # somebody wrapped it after us
                continue
            if name in before:
                members[name] = before[name]
            else:
                del members[name]
        methods.clear()
        before.clear()

    return untap
