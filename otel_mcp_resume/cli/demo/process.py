"""How every server and client of the demo starts: `python -m otel_mcp_resume.cli.demo.process server|client ...`.

It listens to its orders before it imports anything that may take long, or for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from otel_mcp_resume.cli.demo.orders import Orders

__all__ = ["main"]

PARTS = ("server", "client")


def main(arguments: Sequence[str]) -> None:
    """Plays the part that the first argument names, with the others.

    Raises:
        SystemExit: There is no such part, or its arguments are wrong.
    """
    part, *rest = arguments
    if part not in PARTS:
        sys.exit(f"there is no {part} to play")
    orders = Orders()
    import_module(f"{__package__}.{part}").main(rest, orders)


if __name__ == "__main__":
    main(sys.argv[1:])
