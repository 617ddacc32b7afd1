"""PromQL for the panels: every selector is narrowed by the dashboard's variables, every sum names what it keeps."""

from __future__ import annotations

from otel_mcp_resume.report.names import METRICS

__all__ = ["ACROSS", "count", "everything", "idle", "in_range", "per_minute", "quantile", "select", "share"]

_LABELS = {metric.name: metric.labels for metric in METRICS}
_BUCKET = "_bucket"

ACROSS = (
    'generation="sse", previous_generation!="sse"',
    'generation="streamable_http", previous_generation!="streamable_http"',
    'generation="stateless", previous_generation!="stateless"',
)
"""Matchers of attempts that cross from one generation to another. PromQL cannot compare two labels."""


def select(metric: str, matchers: str = "") -> str:
    """The series of `metric` that the variables of the dashboard let through. Raises `KeyError` for an unknown name."""
    labels = _LABELS[metric.removesuffix(_BUCKET)]
    chosen = [name for name in ("job", "instance", "side", "generation") if name in {"job", "instance", *labels}]
    narrowed = [f'{name}=~"${name}"' for name in chosen]
    return f"{metric}{{{', '.join([*narrowed, *filter(None, [matchers])])}}}"


def per_minute(by: str, *selectors: str) -> str:
    """How often a minute, with one series for each value of the labels `by`."""
    return f"60 * sum by ({by}) ({_union('rate', '$__rate_interval', selectors)})"


def in_range(by: str, *selectors: str) -> str:
    """How often in the time that is shown. A number of its own if `by` is empty."""
    return f"sum by ({by}) ({_union('increase', '$__range', selectors)})"


def everything(by: str, *selectors: str) -> str:
    """How often since the step before."""
    return f"sum by ({by}) ({_union('increase', '$__rate_interval', selectors)})"


def _union(function: str, window: str, selectors: tuple[str, ...]) -> str:
    return " or ".join(f"{function}({selector}[{window}])" for selector in selectors)


def count(by: str, selector: str) -> str:
    """How many there are now, of a gauge."""
    return f"sum by ({by}) ({selector})"


def share(part: str, whole: str) -> str:
    """`part` of `whole`, both of them counts of the same labels. Nothing of nothing is 0."""
    return f"{part} / clamp_min({whole}, 1)"


def quantile(which: float, by: str, metric: str) -> str:
    """A quantile of a histogram. A stretch of time in which nothing was observed is 0, and not a hole."""
    labels = f"le, {by}" if by else "le"
    found = f"histogram_quantile({which}, sum by ({labels}) (rate({select(metric + _BUCKET)}[$__rate_interval])))"
    return f"({found} >= 0) or 0 * sum by ({by}) (rate({select(metric + _BUCKET)}[$__rate_interval]))"


def idle(expression: str, label: str = "") -> str:
    """`expression`, or 0 where there is nothing at all. `label` gives that 0 a name for the legend: `none`."""
    if not label:
        return f"({expression}) or vector(0)"
    return f'({expression}) or on () label_replace(vector(0), "{label}", "none", "", "")'
