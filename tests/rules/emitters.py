"""Event ids as the servers in the field make them: one stream's worth of each, in the order of emission.

What is random in an id is drawn from a seed, so that it looks random and still can be reproduced.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from uuid import UUID

__all__ = ["COUNTING", "OPAQUE", "Emitter"]

COUNT = 12
"""Ids of one stream."""

BASE36 = string.digits + string.ascii_lowercase
BASE32 = string.ascii_uppercase + "234567"
CROCKFORD = string.digits + "ABCDEFGHJKMNPQRSTVWXYZ"
BASE62 = string.digits + string.ascii_letters


@dataclass(frozen=True)
class Emitter:
    """Some server, and how it makes the ids of one stream."""

    name: str
    stream: Callable[[Random], list[str]]

    def __str__(self) -> str:
        return self.name


def _uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def _word(random: Random, alphabet: str, length: int) -> str:
    return "".join(random.choices(alphabet, k=length))


def _times(random: Random) -> list[int]:
    """Milliseconds since 1970; a stream is often quicker than that clock."""
    now = random.randrange(1_600_000_000_000, 2_600_000_000_000)
    times: list[int] = []
    for _ in range(COUNT):
        now += random.choice((0, 0, 1, 7, 950))
        times.append(now)
    return times


def _counts(random: Random) -> list[int]:
    """Rising, with holes: streams of one session may share a counter."""
    count = random.choice((0, 1, 8, 97, 4_819, 10**9, 2**63))
    counts: list[int] = []
    for _ in range(COUNT):
        counts.append(count)
        count += random.choice((1, 1, 2, 15))
    return counts


def _request(random: Random) -> str:
    return random.choice((_uuid(random), str(random.randrange(500)), "_GET_stream"))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _encrypted(random: Random) -> str:
    encode = random.choice((base64.b64encode, base64.urlsafe_b64encode))
    return encode(random.randbytes(random.randrange(40, 120))).decode().rstrip(random.choice(("", "=")))


def _typescript(random: Random) -> list[str]:
    stream = random.choice((_uuid(random), "_GET_stream"))
    return [f"{stream}_{ms}_{_word(random, BASE36, random.choice((8, 8, 8, 7, 6)))}" for ms in _times(random)]


def _padded_proxy(random: Random) -> list[str]:
    stream = random.choice((_uuid(random), "_GET_stream"))
    return [f"{stream}_{ms}_{n:04}_{_word(random, BASE36, 3)}" for n, ms in enumerate(_times(random))]


def _kotlin(random: Random) -> list[str]:
    stream = _request(random)
    return [f"{stream}::{ms}_{_uuid(random)}" for ms in _times(random)]


def _java(random: Random) -> list[str]:
    session = _uuid(random)
    return [session, *(f"{session}_{_uuid(random)}" for _ in range(COUNT))]


def _many(make: Callable[[Random], str]) -> Callable[[Random], list[str]]:
    return lambda random: [make(random) for _ in range(COUNT)]


def _behind(prefix: Callable[[Random], str]) -> Callable[[Random], list[str]]:
    def stream(random: Random) -> list[str]:
        fixed = prefix(random)
        return [f"{fixed}{count}" for count in _counts(random)]

    return stream


def _rust(random: Random) -> list[str]:
    request = random.randrange(40)
    return [f"{count}/{request}" for count in _counts(random)]


def _cloudflare(random: Random) -> list[str]:
    stream = random.choice((_uuid(random), "_GET_stream"))
    return [f"{stream}:{count:016x}" for count in _counts(random)]


def _csharp(random: Random) -> str:
    stream = random.choice(("__get__", _uuid(random)))
    return f"{_b64(_word(random, BASE62 + '-_', 22))}:{_b64(stream)}:"


OPAQUE = (
    Emitter("Python SDK examples, FastMCP, Spring WebFlux", _many(_uuid)),
    Emitter("UUID without dashes", _many(lambda random: UUID(_uuid(random)).hex)),
    Emitter("UUID in capitals", _many(lambda random: _uuid(random).upper())),
    Emitter("TypeScript SDK example", _typescript),
    Emitter("mcp-proxy (TypeScript)", _padded_proxy),
    Emitter("Java SDK, Spring servlet and WebMvc", _java),
    Emitter("Kotlin SDK", _kotlin),
    Emitter("Envoy AI Gateway", _many(_encrypted)),
    Emitter("ULID", _many(lambda random: "01J" + _word(random, CROCKFORD, 23))),
    Emitter("nanoid", _many(lambda random: _word(random, BASE62 + "-_", 21))),
)
"""No order can be read from these."""

COUNTING = (
    Emitter("mcp-go, tower-mcp, Rust SDK standalone", _behind(lambda _: "")),
    Emitter("Rust SDK request", _rust),
    Emitter("Go SDK request", _behind(lambda random: _word(random, BASE32, 26) + "_")),
    Emitter("Go SDK standalone", _behind(lambda _: "_")),
    Emitter("C# SDK", _behind(_csharp)),
    Emitter("Swift SDK", _behind(lambda random: random.choice((f"{random.randrange(99)}_", "_GET_stream_")))),
    Emitter("Cloudflare agents", _cloudflare),
)
"""A counter can be seen in these; an emitter's order must be found or left alone."""
