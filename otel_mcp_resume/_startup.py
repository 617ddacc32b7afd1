"""What the startup file runs in every Python process whose environment enables the plugin.

Most of those processes never import `mcp` and must not pay for it, so this module imports nothing but the
standard library's cheapest parts and only leaves a finder behind. The rest is imported when `mcp` is.

Source of the two forms: the `site` module of Python up to 3.14 runs `import` lines of `*.pth` files, twice in
some virtual environments; Python 3.15 calls what `*.start` files name and then leaves the `.pth` file of the
same stem alone (PEP 829). A `.start` file cannot look at the environment, so `start` does it again.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the real one costs an import of `typing`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["VARIABLE", "start", "stop"]

VARIABLE = "OTEL_MCP_RESUME"

_OFF = ("", "0", "false")


class _WaitForMcp:
    """A finder that finds nothing, and waits for the first module inside `mcp`: looking for `mcp` is no import yet."""

    def __init__(self) -> None:
        self.is_waiting = True

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002 - see path
    ) -> ModuleSpec | None:
        """Always None, so that the import goes on as if nobody had asked."""
        # It stays on sys.meta_path for good: taking it out during an import would make that import skip a finder.
        if self.is_waiting and fullname.startswith("mcp."):
            self.is_waiting = False
            _activate()
        return None


_finder = _WaitForMcp()


def start() -> None:
    """Leaves the finder behind, once, if the environment enables the plugin. Never raises."""
    if os.environ.get(VARIABLE, "").strip().lower() in _OFF or _finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _finder)
    if "mcp" in sys.modules:  # another startup file was earlier
        _activate()


def stop() -> None:
    """From now on the import of `mcp` enables nothing: the plugin was turned off before anybody used it."""
    _finder.is_waiting = False


def _activate() -> None:
    try:
        from otel_mcp_resume.activate import Way, activate

        activate(Way.ENVIRONMENT)
    except Exception as error:  # noqa: BLE001 - an import of the application's is under way and must succeed
        print(f"otel-mcp-resume: not enabled: {error!r}", file=sys.stderr)  # noqa: T201 - there may be no logging yet
