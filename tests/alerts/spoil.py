"""Every way to spoil a rule a little: its thresholds, windows, delays, matchers, operators and labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import promql_parser

__all__ = ["Change", "Rule", "changes"]

Rule = dict[str, Any]
Change = tuple[str, Rule]
"""What was changed, and the rule after it."""

_NUMBER = re.compile(r"(?<![\w.\[\"])\d+(?:\.\d+)?(?![\w.\]\"])")
_WINDOW = re.compile(r"(?<=\[)\w+(?=\])")
_OFFSET = re.compile(r"(?<=offset )\w+")
_COMPARISON = re.compile(r"(?<![=!~<>])(?:[<>]=?|[=!]=)(?![~=])")
_MATCHER = re.compile(r"""(\w+)(=~|!~|=|!=)"([^"]*)",?\s*""")
_BY = re.compile(r"\bby \(([^)]*)\)")
_OPPOSITES = {">": (">=", "<"), ">=": (">", "<="), "<": ("<=", ">"), "<=": ("<", ">="), "==": ("!=",), "!=": ("==",)}


def changes(rule: Rule) -> Iterator[Change]:
    """Every way to spoil one rule a little."""
    for key in ("for", "keep_firing_for"):
        if key in rule:
            for factor in (0.5, 2):
                yield f"{key} times {factor}", {**rule, key: _scaled(rule[key], factor)}
            yield f"without {key}", {name: value for name, value in rule.items() if name != key}
        elif "alert" in rule:
            yield f"{key} of 30m", {**rule, key: "30m"}
    for what, expr in _expressions(rule["expr"]):
        promql_parser.parse(expr)  # a change that is no PromQL any more would be noticed for nothing
        yield what, {**rule, "expr": expr}


def _expressions(expr: str) -> Iterator[tuple[str, str]]:
    yield from _each(_NUMBER, expr, _other_numbers)
    yield from _each(_WINDOW, expr, lambda found: [_scaled(found[0], 0.5), _scaled(found[0], 2)])
    yield from _each(_OFFSET, expr, lambda found: [_scaled(found[0], 0.5), _scaled(found[0], 2)])
    yield from _each(_COMPARISON, expr, lambda found: _OPPOSITES[found[0]])
    yield from _each(_MATCHER, expr, _other_matchers)
    yield from _each(_BY, expr, _fewer_labels)
    yield from _without_operands(expr)


def _each(
    pattern: re.Pattern[str], expr: str, others: Callable[[re.Match[str]], list[str] | tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    for found in pattern.finditer(expr):
        if pattern is _COMPARISON and expr.count("{", 0, found.start()) != expr.count("}", 0, found.start()):
            continue  # inside of braces it belongs to a matcher
        for other in others(found):
            yield (
                f"{found[0].strip()} becomes {other.strip() or 'nothing'}, at {found.start()}",
                expr[: found.start()] + other + expr[found.end() :],
            )


def _other_numbers(found: re.Match[str]) -> list[str]:
    value = float(found[0])
    return [f"{value * 1.1:g}", f"{value * 0.9:g}"] if value % 1 else [f"{value + 1:g}", f"{value - 1:g}"]


def _other_matchers(found: re.Match[str]) -> list[str]:
    name, operator, value = found.groups()
    rest = found[0][found[0].rindex('"') + 1 :]
    fewer = value.split("|") if "~" in operator else []
    kept = ["|".join(other for other in fewer if other != one) for one in fewer]
    return ["", *(f'{name}{operator}"{alternatives}"{rest}' for alternatives in kept)]


def _fewer_labels(found: re.Match[str]) -> list[str]:
    labels = found[1].split(", ")
    return [f"by ({', '.join(other for other in labels if other != one)})" for one in labels]


def _without_operands(expr: str) -> Iterator[tuple[str, str]]:
    parsed = promql_parser.parse(expr)
    for index in range(len(_set_operations(parsed))):
        for side in ("lhs", "rhs"):
            yield f"only the {side} of set operation {index}", _one_operand(parsed, index, side).prettify()


def _set_operations(parsed: promql_parser.Expr) -> list[str]:
    found: list[str] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.BinaryExpr) and str(node.op) in {"and", "or", "unless"}:
            found.append(str(node.op))

    promql_parser.walk(parsed, visit)
    return found


def _one_operand(parsed: promql_parser.Expr, index: int, side: str) -> promql_parser.Expr:
    seen = -1

    def visit(node: promql_parser.Expr) -> promql_parser.Expr | None:
        nonlocal seen
        if isinstance(node, promql_parser.BinaryExpr) and str(node.op) in {"and", "or", "unless"}:
            seen += 1
            if seen == index:
                operand: promql_parser.Expr = getattr(node, side)
                return operand
        return None

    return promql_parser.transform(parsed, None, visit)


def _scaled(duration: str, factor: float) -> str:
    seconds = promql_parser.parse_duration(duration).total_seconds() * factor
    return f"{seconds:.0f}s"
