"""Runbooks: there, complete, and every query in them can be pasted as it stands."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.names import LABEL_VALUES, METRICS

RUNBOOKS = Path(__file__).resolve().parents[2] / "alerts" / "runbooks"
PAGES = sorted(RUNBOOKS.glob("*.md"))
NAMES = [page for page in PAGES if page.stem != "mitigations"]
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "When it is a false alarm"]
SPANS = {fields.SPAN_RESUME, fields.SPAN_STREAM, fields.SPAN_SESSION}
EXPOSED = {metric.name: metric for metric in METRICS}
CONDITION = re.compile(r'([\w.]+) (=|!=|=~|>) ("[^"]*"|\d+|error)')
"""The part of TraceQL that the runbooks use."""


def fences(text: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(body).strip() for _, body in found]


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_alert_has_a_runbook_and_every_runbook_an_alert(alerts: list[Any]) -> None:
    assert {page.stem for page in NAMES} == {alert.name for alert in alerts}


@pytest.mark.parametrize("page", NAMES, ids=lambda page: page.stem)
def test_the_heading_is_the_name_of_the_alert(page: Path) -> None:
    assert page.read_text().splitlines()[0] == f"# {page.stem}"


@pytest.mark.parametrize("page", NAMES, ids=lambda page: page.stem)
def test_it_opens_with_the_severities_that_the_alert_has(page: Path, alerts: list[Any]) -> None:
    opening = page.read_text().split("## ")[0]
    severities = {alert.severity for alert in alerts if alert.name == page.stem}
    assert {word for word in ("critical", "warning", "info") if re.search(rf"\b{word}\b", opening)} == severities


@pytest.mark.parametrize("page", NAMES, ids=lambda page: page.stem)
def test_it_has_the_sections_of_a_runbook_in_their_order(page: Path) -> None:
    found = sections(page)
    assert list(found) == SECTIONS
    assert all(text.strip() for text in found.values())


@pytest.mark.parametrize("page", NAMES, ids=lambda page: page.stem)
def test_the_diagnosis_has_a_query_for_metrics_and_one_for_each_kind_of_trace_store(page: Path) -> None:
    diagnosis = sections(page)["Diagnosis"]
    assert all(fences(diagnosis, language) for language in ("promql", "traceql", "jaeger"))


@pytest.mark.parametrize("page", NAMES, ids=lambda page: page.stem)
def test_the_mitigation_goes_by_cause(page: Path) -> None:
    assert re.search(r"^\|.*\|$\n^\|[-|]+\|$", sections(page)["Mitigation"], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_promql_parses_and_names_what_is_exported(page: Path) -> None:
    for query in fences(page.read_text(), "promql"):
        nodes: list[promql.Expr] = []
        promql.walk(promql.parse(query), nodes.append)
        selectors = [node for node in nodes if isinstance(node, promql.VectorSelector)]
        assert selectors
        for selector in selectors:
            assert selector.name in EXPOSED
            for matcher in selector.matchers.matchers:
                assert matcher.name in EXPOSED[selector.name].labels
                assert set(matcher.value.split("|")) <= LABEL_VALUES[matcher.name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_traceql_asks_for_spans_and_attributes_that_exist(page: Path) -> None:
    for query in fences(page.read_text(), "traceql"):
        assert query.startswith("{ ")
        assert query.endswith(" }")
        for condition in query[2:-2].split(" && "):
            found = CONDITION.fullmatch(condition)
            assert found, condition
            name, _, value = found.groups()
            if name == "name":
                assert value.strip('"') in SPANS
            elif name != "status":
                assert name.removeprefix("span.") in fields.ATTRIBUTES
                assert name.startswith("span.")
                known(name.removeprefix("span."), value.strip('"'))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_jaeger_tags_are_attributes_that_exist(page: Path) -> None:
    text = page.read_text()
    for query in fences(text, "jaeger"):
        for tag in query.split():
            name, value = tag.split("=")
            assert name in fields.ATTRIBUTES or tag == "error=true"
            known(name, value)
    assert set(re.findall(r"Jaeger, operation `([\w.]+)`", text)) <= SPANS


def known(attribute: str, value: str) -> None:
    """Values of our own vocabularies are in them."""
    values = LABEL_VALUES.get(attribute.removeprefix("mcp.resume."))
    if values is not None:
        assert set(value.split("|")) <= values


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        goal = RUNBOOKS / file if file else page
        assert goal.is_file(), target
        assert not anchor or anchor in anchors(goal), target


def anchors(page: Path) -> set[str]:
    """As a forge makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_mitigation_is_of_use_to_a_runbook() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for anchor in anchors(RUNBOOKS / "mitigations.md") - {"mitigations-by-cause"}:
        assert f"#{anchor})" in text, anchor


def test_every_reason_that_an_alert_is_about_is_explained_in_its_runbook(alerts: list[Any]) -> None:
    for alert in alerts:
        text = (RUNBOOKS / f"{alert.name}.md").read_text()
        asked = re.findall(r'(?:reason|rule|cause|stream)=~?"([^"]+)"', alert.expr)
        for value in "|".join(asked).split("|"):
            assert value in text, f"{alert.name}: {value}"


def test_the_snippets_are_in_order() -> None:
    text = (RUNBOOKS / "mitigations.md").read_text()
    assert len(fences(text, "python")) >= 5
    for snippet in fences(text, "python"):
        ast.parse(snippet)
    for snippet in fences(text, "yaml"):
        assert yaml.safe_load(snippet)
