"""A small HTTP server for `/metrics`, on every address of a host, in one daemon thread that sleeps between scrapes.

prometheus_client brings a server of its own, but that binds one address, asks DNS for its name before it listens,
wakes twice a second, and prints what goes wrong to stderr.
"""

from __future__ import annotations

import errno
import selectors
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed.wsgi import WSGIApplication

    _Request = socket.socket | tuple[bytes, socket.socket]
    _Peer = tuple[str, int]

__all__ = ["Endpoint"]

_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_MOST_ADDRESSES = 8
_MOST_REQUESTS = 16
"""At a time. A scraper needs one; more are turned away, so that nobody can make threads of us without end."""
_SECONDS_PER_REQUEST = 10.0
_TRIES_OF_PORT_0 = 8
_PAUSE = 0.1
"""Seconds."""
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What a machine without IPv6 says to an address of it."""


class Endpoint:
    """One port that answers with what `application` says. It serves from the moment it is made until `close`."""

    def __init__(
        self, host: str, port: int, application: WSGIApplication, on_error: Callable[[Exception], None] | None = None
    ) -> None:
        """Binds `port` on every address of `host`, which are 127.0.0.1 and ::1 for `localhost`.

        `on_error` learns what fails between two scrapes. It must not raise.

        Raises `OSError` if the port is taken on one of them (`EADDRINUSE`), or none of them can be bound, and
        `RuntimeError` if there is no thread to be had. The port is free again then.
        """
        self.host = host
        self._on_error = on_error
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="otel-mcp-resume-exporter", daemon=True)
        with ExitStack() as opened:
            self._servers = _bind(_addresses(host), port)
            for server in self._servers:
                opened.callback(server.server_close)
                server.set_app(application)
            self.port: int = self._servers[0].server_port
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._wake, self._asleep = map(opened.enter_context, socket.socketpair())
            self._thread.start()
            self._opened = opened.pop_all()

    @property
    def url(self) -> str:
        """Where it serves, with the host as it was asked for."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Frees the port. Requests that are being answered go on to their end."""
        self._closed = True
        with suppress(OSError):
            self._wake.send(b"x")
        self._thread.join(_SECONDS_PER_REQUEST)
        self._release()

    def after_fork(self) -> None:
        """In a forked child: lets go of the parent's port. The thread that served stayed with the parent."""
        self._release()

    def _release(self) -> None:
        with suppress(OSError):
            self._opened.close()

    def _run(self) -> None:
        while not self._closed:
            try:
                self._serve()
            except Exception as error:  # noqa: BLE001 - one scrape must not end all others, nor be told on stderr
                if self._on_error is not None and not self._closed:
                    self._on_error(error)
                time.sleep(_PAUSE)

    def _serve(self) -> None:
        if not self._selector.get_map():
            self._selector.register(self._asleep, selectors.EVENT_READ)
            for server in self._servers:
                self._selector.register(server, selectors.EVENT_READ, server)
        for key, _ in self._selector.select():
            if key.data is not None:
                key.data.handle_request()


class _Handler(WSGIRequestHandler):
    timeout = _SECONDS_PER_REQUEST

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Says nothing: stderr is the application's."""


class _Server(ThreadingMixIn, WSGIServer):
    """One address of an endpoint."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let two processes share a port
    allow_reuse_port = False
    request_queue_size = 4 * _MOST_REQUESTS
    timeout = 0  # a connection that is gone before it is taken must not hold up the next

    def __init__(self, family: int, address: str, port: int) -> None:
        self.address_family = family
        self._free = threading.BoundedSemaphore(_MOST_REQUESTS)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6 and self.server_address[0] != "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        TCPServer.server_bind(self)  # not HTTPServer's, which asks DNS for a name that nobody needs
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, _Peer]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)  # out of descriptors: the connection stays, and would be offered without end
            raise

    def process_request(self, request: _Request, client_address: _Peer) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: _Request, client_address: _Peer) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with suppress(Exception):  # nobody looks at what a thread raises, but stderr shows it
                self._free.release()

    def handle_error(self, request: _Request, client_address: _Peer) -> None:
        """A scraper that went away, or was too slow. What fails in the application is reported there."""


def _addresses(host: str) -> list[tuple[int, str]]:
    """The addresses of `host`. `localhost` is both loopbacks (RFC 6761), whatever the resolver knows of them."""
    if host.lower().rstrip(".") == "localhost":
        return list(_LOOPBACK)
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), str(where[0])) for family, _, _, _, where in found))[:_MOST_ADDRESSES]


def _bind(addresses: list[tuple[int, str]], port: int) -> list[_Server]:
    """Servers on one port of all `addresses`; of those that this machine has, at least."""
    tries = _TRIES_OF_PORT_0 if port == 0 else 1
    while True:
        servers: list[_Server] = []
        try:
            for family, address in addresses:
                _add(servers, family, address, port)
        except OSError:
            for server in servers:
                server.server_close()
            tries -= 1
            if not tries or not servers:
                raise
        else:
            if not servers:
                raise OSError(errno.EADDRNOTAVAIL, "this machine has none of its addresses")
            return servers


def _add(servers: list[_Server], family: int, address: str, port: int) -> None:
    try:
        servers.append(_Server(family, address, servers[0].server_port if servers else port))
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
