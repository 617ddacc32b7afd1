"""Nothing of ours listens but `/metrics`, on the loopback."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import Environment

SCRIPT = """
import re
from pathlib import Path
import mcp.client.streamable_http, mcp.server.streamable_http_manager
from otel_mcp_resume import activate

own = {re.sub(r'\\D', '', str(link.readlink())) for link in Path('/proc/self/fd').iterdir()
       if link.is_symlink() and 'socket' in str(link.readlink())}
found = []
for table in ('tcp', 'tcp6'):
    for line in Path(f'/proc/self/net/{table}').read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == '0A' and fields[9] in own:  # listening
            found.append(fields[1].split(':')[0])
print(sorted(found), bool(activate.current()))
"""
LOOPBACK = "0100007F"
LOOPBACK_6 = "00000000000000000000000001000000"


@pytest.mark.once
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("port", "metrics"), [("0", "prometheus"), ("none", "prometheus"), ("0", "none"), ("0", "otel")]
)
def test_only_the_loopback_is_listened_on(installed: Environment, port: str, metrics: str) -> None:
    run = installed.run(
        SCRIPT, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT=port, OTEL_MCP_RESUME_METRICS=metrics
    )
    assert run.returncode == 0, run.stderr
    serves = (port, metrics) == ("0", "prometheus")
    with_6, without_6 = f"['{LOOPBACK_6}', '{LOOPBACK}'] True", f"['{LOOPBACK}'] True"
    assert run.stdout.strip() in ((with_6, without_6) if serves else ("[] True",))
