"""Points at which a fault can be planted, found in the syntax of every module of ours while it is imported.

A point is the beginning of a function of ours, or a call that it makes into a library. Which library is known when the
call is made, so the first play finds those. What the application itself does in such a call is no point.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any

__all__ = ["PACKAGE", "Site", "install", "library_of", "sites", "unplanted"]

PACKAGE = "otel_mcp_resume"
FORWARDED = frozenset({"wrapped", "send", "receive", "read", "store", "super"})
"""Names that stand for functions of the application or of the SDK where we pass a call on; and what looks at frames."""
WALLS = frozenset(
    [f"ObservedStreams.{name}" for name in vars(dict)]  # the SDK's own dictionary
    + [f"ObservedBacklogs.{name}" for name in vars(set)]  # and its own set
    + [
        "__call__.guarded",
        "_guarded.app",
        "_observed.observed_send_nowait",
    ]  # what catches the others
    + ["Patches._is_enabled"]  # one attribute, which wrapt reads in each call
    + [
        "activate.instrument",
        "activate.uninstrument",
        "activate.deactivate",
    ]  # what the application calls
    + ["Turns._advance"]  # a lock and a queue, and the last thing that is done
    + ["Deadlines._work", "Endpoint._run", "_Server.process_request_thread", "Workers._run"]  # where a thread begins
)
"""Functions around which there is nothing of ours: they have one line outside of their own `try`, if any."""
STAND_INS = frozenset(
    {
        *("_observed_storing", "_observed_replaying", "observe_connection", "_exchange", "_around"),
        *("wrapper", "_wrapper", "_observed_receive", "_observed_send", "_replaced"),
    }
)
"""Functions whose result is what the SDK is given in place of its own: it can't be nonsense and work."""
LIBRARIES = (
    *("prometheus_client", "opentelemetry", "structlog", "logging", "wrapt", "importlib"),
    *("threading", "_thread", "time", "socket", "_socket", "select", "selectors", "socketserver", "wsgiref"),
    *(
        "os",
        "posix",
        "atexit",
        "hashlib",
        "_hashlib",
        "hmac",
        "json",
        "copy",
        "httpx",
        "httpx2",
        "httpcore",
        "httpcore2",
    ),
)
"""The others that we call (builtins, containers, context variables, weak references) fail when memory does."""


class Site:
    """One point in our source."""

    def __init__(self, room: str, name: str, line: int, *, is_call: bool, gives: bool = True) -> None:
        self.room = room
        self.name = name
        self.line = line
        self.is_call = is_call
        self.gives = gives
        """Whether it can return something else than it should: generators and constructors can't."""
        self.libraries: set[str] = set()
        self.seen: set[tuple[str, str]] = set()
        """In which phases of a play it was passed, and in which threads."""

    def __str__(self) -> str:
        return f"{self.room}:{self.line} {self.name}"

    def is_in(self, share: int, offset: int) -> bool:
        """Whether it is one of a share. That depends on its name alone: neither on timing nor on other code."""
        return zlib.crc32(f"{self.room} {self.name}".encode()) % share == offset


sites: list[Site] = []
"""All points, in the order in which modules are imported."""
planted: Site | None = None
take: Callable[[Site], Any] | None = None
"""What happens at the planted point; what it returns is returned there."""
phase = ""
"""What is going on. Libraries and threads are noted while it is not empty."""

GO_ON = object()


def library_of(function: Any) -> str:
    """The library that a callable belongs to, if it is one of those that can fail by themselves."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None)
    if owner is not None and not isinstance(owner, type(sys)):
        module = (owner if isinstance(owner, type) else type(owner)).__module__
    first = str(module or "").partition(".")[0]
    return first if first in LIBRARIES else ""


def call(number: int, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What every call in our source goes through."""
    site = sites[number]
    if phase and (library := library_of(function)):
        site.libraries.add(library)
        site.seen.add((phase, threading.current_thread().name))
    if site is planted and take is not None and library_of(function):
        result = take(site)
        if result is not GO_ON:
            return result
    return function(*args, **kwargs)


@contextlib.contextmanager
def unplanted() -> Iterator[None]:
    """For a look at the plugin: what is asked in here is no part of the play, and meets no fault."""
    global phase, planted
    before, phase, planted = (phase, planted), "", None
    try:
        yield
    finally:
        phase, planted = before


def entered(number: int) -> bool:
    """What every function of ours asks first: whether it is the one that fails. Notes who was here."""
    site = sites[number]
    if phase:
        site.seen.add((phase, threading.current_thread().name))
    return site is planted


def instead(number: int) -> Any:
    """What the planted function does. None means that it goes on."""
    assert take is not None
    return take(sites[number])


class _Planter(ast.NodeTransformer):
    """Leads every call through `call`, and lets every function ask `entered`."""

    def __init__(self, room: str) -> None:
        self.room = room
        self.path: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = {argument.arg for argument in node.args.args}
        self._inside(node)
        if names & {"wrapped"} or f"{self.path[-1] if self.path else self.room}.{node.name}" in WALLS:
            return node  # there is nothing around it
        name = ".".join([*self.path, node.name])
        is_generator = any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(node))
        number = self._site(
            name, node.lineno, is_call=False, gives=not is_generator and node.name not in {"__init__", *STAND_INS}
        )
        asked = f"if __sites__.entered({number}):\n    __given__ = __sites__.instead({number})\n"
        asked += "    if __given__ is not __sites__.GO_ON:\n        return __given__"
        body = _walled(node) or node.body
        at = int(body is node.body and ast.get_docstring(node) is not None)
        body[at:at] = ast.parse(asked).body
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._inside(node)

    def visit_Await(self, node: ast.Await) -> ast.AST:
        if isinstance(node.value, ast.Call):  # what we await is the application's or the SDK's
            node.value.args = [self.visit(argument) for argument in node.value.args]
            return node
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = ast.unparse(node.func)
        self.generic_visit(node)
        if name.partition(".")[0] in FORWARDED or not self.path:
            return node
        number = self._site(f"{'.'.join(self.path)}: {name}", node.lineno, is_call=True)
        head = ast.parse("__sites__.call", mode="eval").body
        return ast.copy_location(ast.Call(head, [ast.Constant(number), node.func, *node.args], node.keywords), node)

    def _inside(self, node: Any) -> Any:
        decorators, node.decorator_list = node.decorator_list, []
        self.path.append(node.name)
        self.generic_visit(node)
        self.path.pop()
        node.decorator_list = decorators
        return node

    def _site(self, name: str, line: int, *, is_call: bool, gives: bool = True) -> int:
        sites.append(Site(self.room, name, line, is_call=is_call, gives=gives))
        return len(sites) - 1


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path))
        tree = _Planter(fullname.partition(".")[2]).visit(tree)
        at = next((i for i, node in enumerate(tree.body) if not _is_preamble(node)), len(tree.body))
        tree.body[at:at] = ast.parse(f"import sys as __sys__\n__sites__ = __sys__.modules[{__name__!r}]").body
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


def _walled(node: ast.FunctionDef) -> list[ast.stmt] | None:
    """What a function does, if it catches whatever fails in it: nothing in it can fail before."""
    body = node.body[int(ast.get_docstring(node) is not None) :]
    if len(body) != 1 or not isinstance(body[0], ast.Try):
        return None
    caught = [handler.type for handler in body[0].handlers]
    return body[0].body if any(isinstance(kind, ast.Name) and kind.id == "Exception" for kind in caught) else None


def _is_preamble(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Finder(MetaPathFinder):
    busy = False

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if self.busy or not f"{fullname}.".startswith(f"{PACKAGE}.") or ".cli." in f"{fullname}.":
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.busy = False
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def install() -> None:
    """Before the first import of the package. Raises `RuntimeError` if it is too late."""
    if any(name.startswith(f"{PACKAGE}.") for name in sys.modules):
        raise RuntimeError("the package is imported already")
    sys.meta_path.insert(0, _Finder())
