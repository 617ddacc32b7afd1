"""What all runs on this machine share: ports for `/metrics`, and the cores that imports keep busy."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .cases import CaseError
from .driven.steps import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

__all__ = ["reserved_port", "start_slot"]

PORTS = range(10_000, 20_000)
"""Below the ephemeral range, so that no outgoing connection lands on one between the check and its use."""

TURN = 0.1
"""Seconds between two looks at whether a start slot has come free."""


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"wire-locks-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return folder


def _locked(lock: IO[str]) -> bool:
    """Whether we have the lock now. It is held until the file is closed, or its process ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def reserved_port() -> Generator[int, None, None]:
    """A free port that no other run takes while it is held. Raises `CaseError` if there is none."""
    for port in random.sample(PORTS, len(PORTS)):
        with (_folder() / f"port-{port}").open("w") as lock, socket.socket() as probe:
            if not _locked(lock):
                continue
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            probe.close()
            yield port
            return
    raise CaseError("no free port")


@contextlib.asynccontextmanager
async def start_slot() -> AsyncGenerator[None, None]:
    """Waits for one of as many slots as the machine has cores, in whatever process the others are held.

    Without it, several runs at a time would slow each other's imports down until a case misses its limit.
    """
    slots = range(os.cpu_count() or 1)
    with contextlib.ExitStack() as stack:
        locks = [stack.enter_context((_folder() / f"start-{slot}").open("w")) for slot in slots]
        while not any(_locked(lock) for lock in locks):  # noqa: ASYNC110 - the others are other processes
            await asyncio.sleep(TURN)
        yield
