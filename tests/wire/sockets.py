"""HTTP/1.1 on raw sockets, so that a case can do what no well-behaved library would."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["LINE_LIMIT", "Head", "abort", "body_pieces", "chunk", "head_bytes", "read_head"]

LINE_LIMIT = 1 << 20
"""Bytes of a header line that the scripted peers still read: a token may be long."""


@dataclass
class Head:
    """A request line or a status line, with its headers in lower case."""

    first: str
    headers: dict[str, str]


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None at the end of the connection."""
    first = (await reader.readline()).decode().strip()
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode().strip():
        key, _, value = line.partition(":")
        headers[key.strip().lower()] = value.strip()
    return Head(first, headers)


def head_bytes(first: str, headers: Mapping[str, str]) -> bytes:
    return "\r\n".join([first, *(f"{key}: {value}" for key, value in headers.items()), "", ""]).encode()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def body_pieces(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """The body as it arrives. Returns at its proper end, raises IncompleteReadError if it is cut short."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif length := int(headers.get("content-length", "0")):
        yield await reader.readexactly(length)
