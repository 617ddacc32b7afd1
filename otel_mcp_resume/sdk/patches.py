"""Puts wrappers around functions of other packages, and takes exactly those away again.

A patch is known by its hook name, which is also the `hook` label of `mcp_resume_hook_installed`.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import wrapt

__all__ = ["Patches", "Wrapper"]

Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""wrapt's calling convention: `wrapper(wrapped, instance, args, kwargs)`."""

AsyncWrapper = Callable[[Callable[..., Awaitable[Any]], Any, tuple[Any, ...], Mapping[str, Any]], Awaitable[Any]]


class _Bound(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg,unused-ignore]
    """A patched function that was looked up on a class or an instance, copied and pickled as without us."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        owner: Any = self._self_instance
        return self if owner is None else getattr(copy.deepcopy(owner, memo), self.__name__)

    def __reduce__(self) -> Any:
        owner: Any = self._self_instance
        return getattr, (self._self_owner if owner is None else owner, self.__name__)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return self.__reduce__()


class _Function(wrapt.FunctionWrapper):  # type: ignore[type-arg,unused-ignore]
    """A patched function. People put functions into configurations that are copied, and send them to processes."""

    __bound_function_wrapper__ = _Bound

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> Any:
        return str(self.__qualname__)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return self.__reduce__()


@dataclass(slots=True)
class _Patch:
    owner: Any
    name: str
    wrapper: Any
    own: bool
    """Whether the owner itself held the attribute, or inherited it."""


class Patches:
    """The wrappers that are in place. Not thread-safe: activation and deactivation take a lock around it."""

    def __init__(self, on_change: Callable[[str, bool], None]) -> None:
        """`on_change(hook, installed)` is told of every patch that was tried. It must not raise."""
        self._on_change = on_change
        self._patches: dict[str, _Patch] = {}
        self._enabled = True

    def install(self, hook: str, module: str, path: str, wrapper: Wrapper) -> bool:
        """Wraps `module:path` (`Class.method` or a function). Whether it is in place afterwards.

        A name that does not exist is no error: the hook is reported as missing. A second call for the same
        hook changes nothing, nor does any after `remove_all`.
        """
        if not self._enabled:
            return False
        if hook in self._patches:
            return True
        try:
            owner, name = _resolve(module, path)
            original = getattr(owner, name)
        except (AttributeError, ImportError):
            self._on_change(hook, False)  # noqa: FBT003 - the value of a gauge
            return False
        members = cast("dict[str, Any]", vars(owner))
        own = name in members
        raw = members.get(name, original)
        patch = _Function(raw, wrapper, enabled=self._is_enabled)
        setattr(owner, name, patch)
        self._patches[hook] = _Patch(owner, name, patch, own)
        self._on_change(hook, True)  # noqa: FBT003 - see above
        return True

    def _is_enabled(self) -> bool:
        return self._enabled

    def remove_all(self) -> None:
        """Restores every object that was touched, also where somebody wrapped it after us.

        A wrapper of ours that cannot be reached any more stays, and passes everything through.
        """
        self._enabled = False
        patches, self._patches = self._patches, {}
        with ExitStack() as steps:  # each is done, whatever another one raises
            for hook, patch in reversed(patches.items()):
                steps.callback(self._on_change, hook, False)  # noqa: FBT003 - the value of a gauge
                steps.callback(_detach, patch)

    def __contains__(self, hook: str) -> bool:
        return hook in self._patches


def _resolve(module: str, path: str) -> tuple[Any, str]:
    owner: Any = import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def _detach(patch: _Patch) -> None:
    members = cast("dict[str, Any]", vars(patch.owner))
    current: Any = members.get(patch.name)
    if current is patch.wrapper:
        if patch.own:
            setattr(patch.owner, patch.name, patch.wrapper.__wrapped__)
        else:
            delattr(patch.owner, patch.name)
        return
    seen = 0
    while current is not None and seen < 100:  # somebody wrapped it after us: take our link out of the chain
        inner: Any = getattr(current, "__wrapped__", None)
        if inner is patch.wrapper:
            current.__wrapped__ = patch.wrapper.__wrapped__
            return
        current, seen = inner, seen + 1
