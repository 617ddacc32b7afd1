"""A real nginx as the load balancer of instances."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

__all__ = ["NGINX", "Way", "balancing", "free_port"]

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Way(Enum):
    """How an instance is chosen, and after how long without a byte from it the balancer hangs up."""

    BY_CLIENT = ("hash $http_x_client;", "60s")
    BY_SESSION = ("hash $http_mcp_session_id;", "60s")
    IN_TURN = ("", "60s")
    IMPATIENT = ("hash $http_x_client;", "3s")


_UNTIL_NOBODY_HOLDS_IT = '"$@" & read -r _; kill $!; wait'
"""It ends with the pipe that it is given, and so with the process at the other end, whatever ends that."""


CONFIG = """
{user}worker_processes 1;
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  upstream instances {{
    {choice}
    {servers}
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://instances;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_buffering off; proxy_read_timeout {patience};
    }}
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


@contextmanager
def balancing(home: Path, way: Way, instances: Iterable[int]) -> Iterator[int]:
    """An nginx of our own in front of the ports of the instances. Its own port."""
    assert NGINX is not None
    home.mkdir()
    port, (choice, patience) = free_port(), way.value
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=0;" for each in instances)
    user = "user root;\n" if os.getuid() == 0 else ""
    config = home / "nginx.conf"
    config.write_text(CONFIG.format(user=user, home=home, choice=choice, patience=patience, servers=servers, port=port))
    command = ["sh", "-c", _UNTIL_NOBODY_HOLDS_IT, "sh", NGINX, "-p", str(home), "-c", str(config)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.communicate()
