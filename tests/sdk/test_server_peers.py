"""What tells one client of a server from another: a call that another one makes repeats nothing."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.sdk.server_http import _request, _told


def peer(name: bytes = b"", value: bytes = b"", *, address: str = "10.0.0.1", path: str = "/mcp") -> Any:
    headers = [(name, value)] if name else []
    scope = {"method": "POST", "headers": headers, "client": (address, 50000), "server": None, "path": path}
    return _request(scope, _told(scope)).peer


@pytest.mark.parametrize("name", [b"authorization", b"x-api-key", b"forwarded", b"x-forwarded-for"])
def test_each_mark_tells_clients_apart(name: bytes) -> None:
    assert peer(name, b"ann") != peer(name, b"bob")
    assert peer(name, b"ann") != peer()
    assert peer(name, b"ann") == peer(name, b"ann")


def test_the_address_and_the_path_do_as_well_and_other_headers_do_not() -> None:
    assert peer() != peer(address="10.0.0.2")
    assert peer() != peer(path="/other")
    assert peer(b"user-agent", b"ann") == peer(b"user-agent", b"bob")
