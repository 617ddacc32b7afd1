"""Lets the tests of this directory import its model: it is no package, and pytest leaves `sys.path` alone."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
