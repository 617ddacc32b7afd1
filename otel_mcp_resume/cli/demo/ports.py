"""Ports for the `/metrics` of the demo's processes."""

from __future__ import annotations

import socket

__all__ = ["metrics_ports"]

HOST = "127.0.0.1"
LAST_PORT = 65535


def metrics_ports(count: int, first: int | None) -> list[int]:
    """That many free ports: the lowest from `first` on, so that a scrape configuration stays true, or any.

    All are held until all are found, so none comes twice. Another program may still take one before the process
    that it is meant for does; the plugin then moves on to the next port, and the demo says that it finds nothing.

    Raises:
        OSError: There are not so many.
    """
    held = list[socket.socket]()
    try:
        wanted = first
        while len(held) < count:
            held.append(_hold(wanted or 0))
            if wanted is not None:
                wanted = held[-1].getsockname()[1] + 1
        return [int(holder.getsockname()[1]) for holder in held]
    finally:
        for holder in held:
            holder.close()


def _hold(port: int) -> socket.socket:
    """A socket on `port`, or on the next higher one that is free; on any if `port` is 0."""
    while True:
        holder = socket.socket()
        try:
            holder.bind((HOST, port))
        except OSError:
            holder.close()
            if port in (0, LAST_PORT):
                raise
            port += 1
        else:
            return holder
