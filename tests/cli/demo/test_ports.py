from __future__ import annotations

import socket

from otel_mcp_resume.cli.demo.ports import metrics_ports


def test_ports_are_free_and_different() -> None:
    ports = metrics_ports(20, None)
    assert len(set(ports)) == 20


def test_taken_ports_are_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        ports = metrics_ports(3, first)
    assert first not in ports
    assert ports == sorted(set(ports))
    assert min(ports) > first
