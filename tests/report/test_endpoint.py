from __future__ import annotations

import errno
import http.client
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from otel_mcp_resume.report import endpoint as module
from otel_mcp_resume.report.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def hello(environ: object, start_response: object) -> Iterable[bytes]:
    assert callable(start_response)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def get(host: str, port: int) -> bytes:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()
    finally:
        connection.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint("localhost", 0, hello)
    yield served
    served.close()


def test_localhost_is_reached_by_name_and_by_address(endpoint: Endpoint) -> None:
    assert endpoint.url == f"http://localhost:{endpoint.port}/metrics"
    assert get("localhost", endpoint.port) == b"hello"
    assert get("127.0.0.1", endpoint.port) == b"hello"


@needs_ipv6
def test_localhost_is_the_ipv6_loopback_too(endpoint: Endpoint) -> None:
    assert get("::1", endpoint.port) == b"hello"


@needs_ipv6
def test_an_ipv6_address_alone_is_served_and_bracketed() -> None:
    served = Endpoint("::1", 0, hello)
    try:
        assert served.url == f"http://[::1]:{served.port}/metrics"
        assert get("::1", served.port) == b"hello"
        with pytest.raises(ConnectionRefusedError):
            get("127.0.0.1", served.port)
    finally:
        served.close()


@pytest.mark.parametrize("family", [socket.AF_INET, pytest.param(socket.AF_INET6, marks=needs_ipv6)])
def test_a_port_that_is_taken_on_one_loopback_is_taken(family: int) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as other:
        other.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="in use") as raised:
            Endpoint("localhost", other.getsockname()[1], hello)
    assert raised.value.errno == errno.EADDRINUSE


def test_a_machine_without_ipv6_serves_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = (socket.AF_INET, "192.0.2.1")  # TEST-NET-1: nobody's address, so it fails as ::1 does without IPv6
    monkeypatch.setattr(module, "_LOOPBACK", ((socket.AF_INET, "127.0.0.1"), foreign))
    served = Endpoint("localhost", 0, hello)
    try:
        assert get("127.0.0.1", served.port) == b"hello"
    finally:
        served.close()
    monkeypatch.setattr(module, "_LOOPBACK", (foreign,))
    with pytest.raises(OSError, match="none of its addresses"):
        Endpoint("localhost", 0, hello)


def test_a_name_that_nobody_has_is_an_error_and_leaves_nothing_open() -> None:
    with pytest.raises(OSError, match=r"\S"):
        Endpoint("does-not-exist.invalid", 0, hello)


def test_closing_frees_the_port_at_once_and_ends_the_thread(endpoint: Endpoint) -> None:
    assert get("127.0.0.1", endpoint.port) == b"hello"
    endpoint.close()
    assert not endpoint._thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        get("127.0.0.1", endpoint.port)
    again = Endpoint("localhost", endpoint.port, hello)
    again.close()
    again.close()


def test_a_silent_connection_holds_up_nobody(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        assert get("127.0.0.1", endpoint.port) == b"hello"


def test_connections_are_bounded_and_freed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.5)
    before = threading.active_count()
    served = Endpoint("127.0.0.1", 0, hello)
    try:
        with ExitStack() as silent:
            for _ in range(3 * module._MOST_REQUESTS):
                silent.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            assert threading.active_count() - before <= module._MOST_REQUESTS + 1
            deadline = time.monotonic() + 20
            while True:  # until the silent ones have timed out
                try:
                    assert get("127.0.0.1", served.port) == b"hello"
                    break
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
    finally:
        served.close()


def test_rubbish_and_a_peer_that_leaves_print_nothing(endpoint: Endpoint, capfd: pytest.CaptureFixture[str]) -> None:
    for rubbish in (b"\x00\xff\r\n\r\n", b"GET /metrics HTTP/1.1\r\n", b"GET " + b"a" * 70000 + b" HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", endpoint.port)) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            peer.sendall(rubbish)
    assert get("127.0.0.1", endpoint.port) == b"hello"
    assert capfd.readouterr() == ("", "")


def test_binding_asks_dns_for_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_dns(*args: object) -> str:
        raise AssertionError("looked up a name")

    monkeypatch.setattr(socket, "getfqdn", no_dns)
    monkeypatch.setattr(socket, "gethostbyaddr", no_dns)
    Endpoint("localhost", 0, hello).close()


def test_a_process_that_can_have_no_more_threads_keeps_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    held: list[int] = []
    bind = module._bind

    def remember(addresses: list[tuple[int, str]], port: int) -> list[module._Server]:
        servers = bind(addresses, port)
        held.append(servers[0].server_port)
        return servers

    monkeypatch.setattr(module, "_bind", remember)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            Endpoint("localhost", 0, hello)
    Endpoint("localhost", held[0], hello).close()
