from __future__ import annotations

import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from otel_mcp_resume import rooms
from otel_mcp_resume.rooms import ROOMS, Room, visit_imported, watch_imports
from otel_mcp_resume.rules.terms import Side


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Room:
    """A room that waits for a module of its own."""
    package = f"package_{request.node.name.replace('[', '_').replace(']', '')}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "transport.py").write_text("import time\ntime.sleep(0.2)\ncomplete = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    room = Room(Side.CLIENT, "nobody", f"{package}.transport")
    monkeypatch.setattr(rooms, "ROOMS", (room,))
    return room


def test_a_room_opens_when_its_module_is_complete(room: Room) -> None:
    opened: list[bool] = []
    watch_imports(lambda _: opened.append(sys.modules[room.module].complete))
    assert opened == []
    import_module(room.module.partition(".")[0])
    assert opened == []
    import_module(room.module)
    assert opened == [True]


def test_a_room_whose_module_is_there_opens_at_once(room: Room) -> None:
    import_module(room.module)
    opened: list[Room] = []
    watch_imports(opened.append)
    assert opened == [room]
    visit_imported(opened.append)
    assert opened == [room, room]


def test_what_is_raised_does_not_reach_the_import(room: Room) -> None:
    def broken(_: Room) -> None:
        raise RuntimeError("broken")

    watch_imports(broken)
    assert import_module(room.module).complete
    visit_imported(broken)


def test_a_module_that_another_thread_is_importing_is_waited_for(room: Room) -> None:
    importer = threading.Thread(target=import_module, args=(room.module,))
    importer.start()
    while room.module not in sys.modules:
        importer.join(0.001)
    opened: list[bool] = []
    watch_imports(lambda _: opened.append(sys.modules[room.module].complete))
    importer.join(30)
    assert opened == [True]


def test_every_room_has_the_shape_that_activation_needs() -> None:
    assert len({room.module for room in ROOMS}) == len(ROOMS)
    for room in ROOMS:
        hooks = import_module(room.hooks)
        assert callable(hooks.install)
        assert hooks.HOOKS or room.hooks.endswith("_listen")  # of which 1.x has none
        assert all(isinstance(hook, str) for hook in hooks.HOOKS)
