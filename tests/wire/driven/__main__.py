"""`python -m driven client|server|nursery`, run inside the directory of the runner; the case comes on stdin."""

from __future__ import annotations

import json
import sys

del sys.path[0]  # the runner's directory: no import of the SDK may find a module of the runner

from . import client_app, nursery, server_app  # noqa: E402 - after the line above

ROLES = {"client": client_app.drive, "server": server_app.drive}

if sys.argv[1] == "nursery":
    nursery.nurse(ROLES)
else:
    ROLES[sys.argv[1]](json.loads(sys.stdin.readline()))
