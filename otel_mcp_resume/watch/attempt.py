"""One attempt of a client, from the response head to its verdict."""

from __future__ import annotations

from collections.abc import Callable

from otel_mcp_resume.records import record
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream, ViolationRule
from otel_mcp_resume.rules.verdict import Silence, Verdict
from otel_mcp_resume.watch.facts import AttemptSettled, Context, Fact, Node, Violated

__all__ = ["Attempt", "Binding", "violation_of"]

_BREACHES = {rule.value: rule for rule in ViolationRule}


def violation_of(reason: Reason) -> ViolationRule | None:
    """The violation that an attempt with this reason is as well, if it is one."""
    return _BREACHES.get(reason.value)


@record
class Binding:
    """What the token of an attempt is bound to."""

    token: str | None
    session_id: str | None
    generation: Generation
    request_id: str | None = None


class Attempt:
    """An attempt that is not settled yet. Its owner holds the lock of the watch around every call."""

    __slots__ = (
        "_expired",
        "barren",
        "binding",
        "context",
        "downtime",
        "events",
        "first_id",
        "generation",
        "heartbeats",
        "ids_before",
        "last_id",
        "messages",
        "node",
        "opened_at",
        "settled",
        "shown",
        "stream",
        "trusted",
    )

    def __init__(
        self,
        binding: Binding,
        *,
        stream: Stream,
        generation: Generation,
        context: Context,
        opened_at: float,
        downtime: float | None,
        on_expiry: Callable[[Attempt], None],
    ) -> None:
        self.node = Node()
        self.binding = binding
        self.stream = stream
        self.generation = generation
        self.context = context
        self.opened_at = opened_at
        self.downtime = downtime
        self.ids_before = False
        self.barren = 0
        self.trusted = True
        self.first_id: str | None = None
        self.last_id: str | None = None
        self.events = 0
        self.shown = 0
        """Events of its window that were told of."""
        self.messages = False
        self.heartbeats = False
        self.settled = False
        self._expired = on_expiry

    def expire(self) -> None:
        """The proof timeout passed."""
        self._expired(self)

    def silence(self, *, resumable: bool = True, delivered: bool = False) -> Silence:
        """What was seen, for an attempt that nothing settled. `delivered` is whether anything new came."""
        return Silence(
            token=self.binding.token,
            ids_before=self.ids_before,
            ids=self.first_id is not None,
            messages=self.messages,
            delivered=delivered,
            heartbeats=self.heartbeats,
            barren_attempts=self.barren,
            other_generation=self.binding.generation is not self.generation,
            resumable=resumable,
        )

    def settle(self, verdict: Verdict, now: float) -> list[Fact]:
        """The facts of a verdict. A reason that is a breach of the boundary counts as a violation, once."""
        self.settled = True
        facts: list[Fact] = [
            AttemptSettled(
                side=Side.CLIENT,
                generation=self.generation,
                previous_generation=self.binding.generation,
                stream=self.stream,
                outcome=verdict.outcome,
                reason=verdict.reason,
                elapsed=None if verdict.outcome is Outcome.ABANDONED else max(0.0, now - self.opened_at),
                downtime=self.downtime,
                token=self.binding.token,
                previous_session_id=self.binding.session_id,
                first_event_id=self.first_id,
                last_event_id=self.last_id,
                events=self.events,
                context=self.context,
                node=self.node,
            )
        ]
        if rule := violation_of(verdict.reason):
            token = self.binding.token
            facts.append(Violated(Side.CLIENT, self.generation, rule, self.stream, token, self.context, self.node))
        return facts
