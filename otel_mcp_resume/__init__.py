"""Tells whether a resumed MCP stream really lost nothing.

`instrument()` turns the plugin on in this process, `uninstrument()` takes it away again. `verify_resumption` and
`resume_stream` are the client-side rule for code of your own; `StreamCursor` binds a token to its session.
`handle_reconnect` and `StreamEventLog` are the decision boundary for servers of your own.

Every name is imported at its first use: the startup file imports this package in processes that never use it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the real one costs an import of `typing`
if TYPE_CHECKING:
    from otel_mcp_resume.activate import instrument, uninstrument
    from otel_mcp_resume.instrumentor import McpResumeInstrumentor
    from otel_mcp_resume.rules.boundary import ResumptionBoundaryError, StreamEventLog, handle_reconnect
    from otel_mcp_resume.rules.cursor import ResumptionGapError, StreamCursor, resume_stream, verify_resumption
    from otel_mcp_resume.rules.terms import Outcome, Reason
    from otel_mcp_resume.rules.verdict import Verdict
    from otel_mcp_resume.tokens import bind, recall

__all__ = [
    "McpResumeInstrumentor",
    "Outcome",
    "Reason",
    "ResumptionBoundaryError",
    "ResumptionGapError",
    "StreamCursor",
    "StreamEventLog",
    "Verdict",
    "bind",
    "handle_reconnect",
    "instrument",
    "recall",
    "resume_stream",
    "uninstrument",
    "verify_resumption",
]

_HOMES = {
    "McpResumeInstrumentor": "instrumentor",
    "Outcome": "rules.terms",
    "Reason": "rules.terms",
    "ResumptionBoundaryError": "rules.boundary",
    "ResumptionGapError": "rules.cursor",
    "StreamCursor": "rules.cursor",
    "StreamEventLog": "rules.boundary",
    "Verdict": "rules.verdict",
    "bind": "tokens",
    "handle_reconnect": "rules.boundary",
    "instrument": "activate",
    "recall": "tokens",
    "resume_stream": "rules.cursor",
    "uninstrument": "activate",
    "verify_resumption": "rules.cursor",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
