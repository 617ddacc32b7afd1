from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.settings import Settings

VARIABLES = {
    "enabled": "OTEL_MCP_RESUME",
    "metrics": "OTEL_MCP_RESUME_METRICS",
    "prometheus_host": "OTEL_EXPORTER_PROMETHEUS_HOST",
    "prometheus_port": "OTEL_EXPORTER_PROMETHEUS_PORT",
    "proof_timeout": "OTEL_MCP_RESUME_PROOF_TIMEOUT",
    "ids": "OTEL_MCP_RESUME_IDS",
    "ids_key": "OTEL_MCP_RESUME_IDS_KEY",
    "max_streams": "OTEL_MCP_RESUME_MAX_STREAMS",
    "max_events": "OTEL_MCP_RESUME_MAX_EVENTS",
}
DEFAULTS = {
    "enabled": None,
    "metrics": frozenset({"prometheus"}),
    "prometheus_host": "localhost",
    "prometheus_port": 9464,
    "proof_timeout": 20.0,
    "ids": "raw",
    "max_streams": 20000,
    "max_events": 200000,
}


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings, warnings = Settings.from_environ({})
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert set(settings.sources.values()) == {"default"}
    assert set(settings.sources) == {field.name for field in dataclasses.fields(Settings)} - {"sources"}
    assert warnings == []


@pytest.mark.parametrize("variable", VARIABLES.values())
@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_variable_counts_as_unset(variable: str, blank: str) -> None:
    settings, warnings = Settings.from_environ({variable: blank})
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert warnings == []


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        ("enabled", "1", True),
        ("enabled", "TRUE", True),
        ("enabled", "0", False),
        ("enabled", "False", False),
        ("metrics", "otel", frozenset({"otel"})),
        ("metrics", " Prometheus , otel,", frozenset({"prometheus", "otel"})),
        ("metrics", "none", frozenset()),
        ("prometheus_host", "0.0.0.0", "0.0.0.0"),
        ("prometheus_host", "[::1]", "::1"),
        ("prometheus_port", "0", 0),
        ("prometheus_port", "65535", 65535),
        ("prometheus_port", "None", None),
        ("proof_timeout", "1.5", 1.5),
        ("proof_timeout", "1e3", 1000.0),
        ("ids", "HASH", "hash"),
        ("ids", "none", "none"),
        ("ids_key", "secret", b"secret"),
        ("max_streams", "1", 1),
        ("max_events", "000500", 500),
    ],
)
def test_a_good_value_is_taken_and_its_source_is_remembered(setting: str, text: str, value: object) -> None:
    settings, warnings = Settings.from_environ({VARIABLES[setting]: text})
    assert getattr(settings, setting) == value
    assert settings.sources[setting] == f"environment {VARIABLES[setting]}"
    assert [name for name, source in settings.sources.items() if source != "default"] == [setting]
    assert warnings == []


@pytest.mark.parametrize(
    ("setting", "text", "instead"),
    [
        ("enabled", "yes", "ignoring it"),
        ("metrics", "statsd", "using 'prometheus'"),
        ("metrics", "none,none,statsd", "using 'prometheus'"),
        ("prometheus_host", "http://localhost", "using 'localhost'"),
        ("prometheus_host", "a b", "using 'localhost'"),
        ("prometheus_host", "[]", "using 'localhost'"),
        ("prometheus_port", "65536", "using 9464"),
        ("prometheus_port", "-1", "using 9464"),
        ("prometheus_port", "١٢", "using 9464"),
        ("prometheus_port", "9" * 5000, "using 9464"),
        ("proof_timeout", "nan", "using 20.0"),
        ("proof_timeout", "inf", "using 20.0"),
        ("proof_timeout", "-3", "using 20.0"),
        ("proof_timeout", "0", "using 20.0"),
        ("proof_timeout", "1e300", "using 20.0"),
        ("proof_timeout", "soon", "using 20.0"),
        ("ids", "plain", "using 'raw'"),
        ("max_streams", "0", "using 20000"),
        ("max_streams", "1_000", "using 20000"),
        ("max_events", "1e3", "using 200000"),
        ("max_events", "9" * 40, "using 200000"),
    ],
)
def test_a_bad_value_is_replaced_by_the_default_and_named_in_a_warning(setting: str, text: str, instead: str) -> None:
    settings, warnings = Settings.from_environ({VARIABLES[setting]: text})
    assert getattr(settings, setting) == DEFAULTS[setting]
    assert settings.sources[setting] == "default"
    [warning] = warnings
    assert warning.startswith(f"{VARIABLES[setting]}={text[:80]!r}"[:60])
    assert warning.endswith(instead)
    assert len(warning) < 300


def test_a_bad_way_out_costs_only_itself() -> None:
    settings, [warning] = Settings.from_environ({"OTEL_MCP_RESUME_METRICS": "otel,statsd"})
    assert settings.metrics == {"otel"}
    assert "using 'otel'" in warning
    settings, [warning] = Settings.from_environ({"OTEL_MCP_RESUME_METRICS": "none,otel"})
    assert settings.metrics == {"otel"}
    assert "none alone" in warning


def test_the_way_of_activation_may_prefer_another_way_out() -> None:
    otel = frozenset({"otel"})
    settings, _ = Settings.from_environ({}, default_metrics=otel)
    assert (settings.metrics, settings.sources["metrics"]) == (otel, "activation")
    settings, _ = Settings.from_environ({"OTEL_MCP_RESUME_METRICS": "prometheus"}, default_metrics=otel)
    assert (settings.metrics, settings.sources["metrics"]) == (
        frozenset({"prometheus"}),
        "environment OTEL_MCP_RESUME_METRICS",
    )
    settings, [warning] = Settings.from_environ({"OTEL_MCP_RESUME_METRICS": "x"}, default_metrics=otel)
    assert (settings.metrics, settings.sources["metrics"]) == (otel, "activation")
    assert warning.endswith("using 'otel'")


def test_the_key_is_random_unless_given_and_never_shown() -> None:
    first, _ = Settings.from_environ({})
    second, _ = Settings.from_environ({})
    assert first.ids_key != second.ids_key
    given_, _ = Settings.from_environ({"OTEL_MCP_RESUME_IDS_KEY": "a\udcffsecret"})
    assert given_.ids_key == b"a\xffsecret"
    assert "secret" not in repr(given_)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES.values())), st.text(max_size=200)))
def test_no_environment_whatever_raises(environ: dict[str, str]) -> None:
    settings, warnings = Settings.from_environ(environ)
    assert 0 < settings.proof_timeout <= 86400
    assert settings.max_streams >= 1
    assert settings.max_events >= 1
    assert settings.prometheus_port is None or 0 <= settings.prometheus_port <= 65535
    assert settings.metrics <= {"prometheus", "otel"}
    assert len(warnings) <= len(environ)
    assert all("\n" not in warning for warning in warnings)
