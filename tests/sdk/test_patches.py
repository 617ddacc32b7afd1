from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest
import wrapt

from otel_mcp_resume.sdk.patches import Patches

MODULE = "tests_sdk_patched"


class Base:
    """What is inherited."""

    def inherited(self) -> str:
        """Says what it is."""
        return "inherited"


class Thing(Base):
    def method(self, number: int = 1) -> str:
        """Gives a number back."""
        return f"method {number}"

    @classmethod
    def made(cls) -> str:
        return f"class {cls.__name__}"

    @staticmethod
    def plain() -> str:
        return "static"

    async def later(self) -> str:
        await asyncio.sleep(0)
        return "later"


def function() -> str:
    return "function"


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A module as a package of others would have it, made anew for each test."""
    made = ModuleType(MODULE)
    vars(made).update(Thing=type("Thing", (Base,), {**vars(Thing)}), function=function)
    sys.modules[MODULE] = made
    yield made
    del sys.modules[MODULE]


class Changes(dict[str, bool]):
    def __call__(self, hook: str, installed: bool) -> None:
        self[hook] = installed


def patches() -> tuple[Patches, Changes]:
    changes = Changes()
    return Patches(changes), changes


def marked(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return f"[{wrapped(*args, **kwargs)}]"


async def marked_later(
    wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    return f"[{await wrapped(*args, **kwargs)}]"


PATHS = ("Thing.method", "Thing.made", "Thing.plain", "Thing.inherited", "function")


def results(module: ModuleType) -> list[str]:
    thing = module.Thing()
    return [thing.method(), module.Thing.made(), module.Thing.plain(), thing.inherited(), module.function()]


PLAIN = ["method 1", "class Thing", "static", "inherited", "function"]


def test_every_kind_of_function_can_be_wrapped_and_is_what_it_was_afterwards(module: ModuleType) -> None:
    kit, changes = patches()
    before = dict(vars(module.Thing))
    for path in PATHS:
        assert kit.install(path, MODULE, path, marked)
        assert path in kit
    assert results(module) == [f"[{plain}]" for plain in PLAIN]
    assert changes == dict.fromkeys(PATHS, True)
    kit.remove_all()
    assert results(module) == PLAIN
    assert dict(vars(module.Thing)) == before, "the very same objects, and nothing that was inherited"
    assert module.function is function
    assert changes == dict.fromkeys(PATHS, False)
    assert "function" not in kit


def test_a_coroutine_function_stays_one(module: ModuleType) -> None:
    kit, _ = patches()
    kit.install("later", MODULE, "Thing.later", marked_later)
    assert inspect.iscoroutinefunction(module.Thing.later)
    assert asyncio.run(module.Thing().later()) == "[later]"


def test_a_wrapped_function_looks_like_itself(module: ModuleType) -> None:
    kit, _ = patches()
    kit.install("method", MODULE, "Thing.method", marked)
    assert (module.Thing.method.__name__, module.Thing.method.__doc__) == ("method", "Gives a number back.")
    assert inspect.signature(module.Thing.method) == inspect.signature(Thing.method)


def test_a_second_installation_changes_nothing(module: ModuleType) -> None:
    kit, changes = patches()
    assert kit.install("hook", MODULE, "function", marked)
    assert kit.install("hook", MODULE, "function", marked)
    assert module.function() == "[function]"
    kit.remove_all()
    kit.remove_all()
    assert (module.function(), changes) == ("function", {"hook": False})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (MODULE, "gone"),
        (MODULE, "Thing.gone"),
        (MODULE, "Gone.method"),
        (MODULE, "Thing.method.deeper"),
        (f"{MODULE}_gone", "function"),
        (f"{MODULE}.gone", "function"),
    ],
)
def test_a_name_that_does_not_exist_is_told_and_no_error(module: ModuleType, name: str, path: str) -> None:
    kit, changes = patches()
    before = dict(vars(module))
    assert not kit.install("hook", name, path, marked)
    assert changes == {"hook": False}
    assert "hook" not in kit
    kit.remove_all()
    assert dict(vars(module)) == before


def test_a_name_that_appears_later_can_be_wrapped_then(module: ModuleType) -> None:
    kit, changes = patches()
    kit.install("hook", MODULE, "late", marked)
    vars(module)["late"] = function
    assert kit.install("hook", MODULE, "late", marked)
    assert changes == {"hook": True}


def wrapped_by_wraps(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return f"<{inner(*args, **kwargs)}>"

    return outer


def wrapped_by_wrapt(inner: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return f"<{wrapped(*args, **kwargs)}>"

    return wrapt.FunctionWrapper(inner, wrapper)


@pytest.mark.parametrize("wrap", [wrapped_by_wraps, wrapped_by_wrapt])
@pytest.mark.parametrize(("owner", "name", "result"), [("Thing", "method", "method 1"), ("", "function", "function")])
def test_somebody_elses_wrapper_stays(
    module: ModuleType, wrap: Callable[..., Any], owner: str, name: str, result: str
) -> None:
    kit, _ = patches()
    holder = module.Thing if owner else module

    def call() -> str:
        return str(getattr(module.Thing() if owner else module, name)())

    kit.install("hook", MODULE, f"{owner}.{name}".strip("."), marked)
    setattr(holder, name, wrap(vars(holder)[name]))
    assert call() == f"<[{result}]>"
    kit.remove_all()
    assert call() == f"<{result}>"


def test_a_bound_method_that_was_taken_before_passes_everything_through(module: ModuleType) -> None:
    kit, _ = patches()
    kit.install("hook", MODULE, "Thing.method", marked)
    taken = module.Thing().method
    held = module.Thing.method
    assert taken(2) == "[method 2]"
    kit.remove_all()
    assert taken(2) == "method 2"
    assert held(module.Thing(), number=3) == "method 3"


def test_two_kits_do_not_disturb_each_other(module: ModuleType) -> None:
    first, _ = patches()
    second, _ = patches()
    first.install("hook", MODULE, "function", marked)
    second.install("hook", MODULE, "function", marked)
    assert module.function() == "[[function]]"
    first.remove_all()
    assert module.function() == "[function]"
    second.remove_all()
    assert module.function() == "function"


def test_what_the_wrapped_function_raises_passes(module: ModuleType) -> None:
    kit, _ = patches()
    kit.install("hook", MODULE, "Thing.method", marked)
    with pytest.raises(TypeError, match="unexpected keyword"):
        module.Thing().method(wrong=1)


def test_a_patched_function_is_copied_and_pickled_as_before() -> None:
    """In a process of its own: the functions are those of a module that can be imported by name."""
    script = """
import copy, functools, json, pickle
from json import encoder
from otel_mcp_resume.sdk.patches import Patches
patches = Patches(lambda hook, installed: None)
through = lambda wrapped, instance, args, kwargs: wrapped(*args, **kwargs)
assert patches.install("loads", "json", "loads", through)
assert patches.install("encode", "json.encoder", "JSONEncoder.encode", through)
assert copy.deepcopy({"f": json.loads})["f"] is json.loads
assert copy.copy(json.loads) is json.loads
assert pickle.loads(pickle.dumps(functools.partial(json.loads, "[1]")))() == [1]
method = functools.partial(encoder.JSONEncoder.encode)
assert pickle.loads(pickle.dumps(method))(encoder.JSONEncoder(), [2]) == "[2]"
one = encoder.JSONEncoder()
assert copy.deepcopy(one.encode)([3]) == "[3]"
assert copy.deepcopy(one.encode).__self__ is not one
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
