"""Servers without sessions: the mode of the older generations, and the generation that has none."""

from __future__ import annotations

import asyncio

import pytest

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream, ViolationRule
from otel_mcp_resume.watch.facts import AttemptSettled, SessionOpened, StreamClosed
from tests.sdk.server_apps import high_level_app, manager_app
from tests.sdk.server_side import PROTOCOL, Observed, given_back, observed, playing
from tests.wire.driven.steps import sdk_is_modern

# What the scripts of the test's tool send is deprecated in 2.x, and what older servers send all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore:Field .lifespan. has an incomplete definition"),  # older mcp, of its settings
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # older mcp leaves streams unclosed
]


def test_stateless_mode_keeps_nothing() -> None:
    app = high_level_app(stateless_http=True)

    async def play(seen: Observed) -> None:
        async with playing(app) as client:
            await client.play(
                [
                    {"initialize": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "call", "id": 3, "play": [{"emit": 2}]}},
                    {"read": {"from": "call", "until": "end"}},
                    {"get": {"session": "A", "as": "silent"}},
                    {"drop": {"request": "silent"}},
                    {"get": {"session": "A", "as": "again"}},
                    {"drop": {"request": "again"}},
                    {"get": {"session": "A", "as": "token", "token": "7"}},
                ]
            )
            assert client.exchanges["call"].summary()["messages"] == 3
            await seen.until(lambda: seen.verdicts == [(Outcome.FAILED, Reason.SERVER_ERROR)])
        await given_back(seen)
        assert seen.of(SessionOpened) == []

    with observed() as seen:
        asyncio.run(play(seen))


def test_stateless_mode_still_knows_a_repeated_call() -> None:
    app = high_level_app(stateless_http=True)

    async def play(seen: Observed) -> None:
        async with playing(app) as client:
            await client.play(
                [
                    {"session": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "first", "play": [{"sleep": 0.3}]}},
                    {"drop": {"request": "first"}},
                    {"call": {"session": "A", "as": "second", "play": [{"sleep": 0.3}]}},
                    {"read": {"from": "second", "until": "end"}},
                ]
            )
            await seen.until(lambda: seen.violations == [ViolationRule.DUPLICATE_CALL])

    with observed() as seen:
        asyncio.run(play(seen))


@pytest.mark.parametrize(("path", "violations"), [("/mcp", [ViolationRule.DUPLICATE_CALL]), ("/other/mcp", [])])
def test_the_same_call_under_another_path_is_for_another_application(
    path: str, violations: list[ViolationRule]
) -> None:
    async def play(seen: Observed) -> None:
        async with playing(manager_app(stateless=True)) as client:
            await client.play(
                [
                    {"session": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "first", "play": [{"sleep": 0.3}]}},
                    {"drop": {"request": "first"}},
                ]
            )
            await seen.until(lambda: len(seen.of(StreamClosed)) == 1)
            await client.play(
                [
                    {"call": {"session": "A", "as": "second", "play": [{"sleep": 0.3}], "path": path}},
                    {"read": {"from": "second", "until": "end"}},
                ]
            )
        assert seen.violations == violations

    with observed() as seen:
        asyncio.run(play(seen))


@pytest.mark.skipif(not sdk_is_modern(), reason="the generation without sessions needs mcp 2.x")
def test_of_the_generation_without_sessions() -> None:
    async def play(seen: Observed) -> None:
        async with playing(high_level_app()) as client:
            await client.play(
                [
                    {"session": {"session": "M", "protocol": "2026-07-28"}},
                    {"call": {"session": "M", "as": "call", "play": [{"progress": 2}], "token": "7"}},
                    {"read": {"from": "call", "until": "end"}},
                    {"get": {"session": "M", "token": "7"}},
                ]
            )
        assert seen.verdicts == [
            (Outcome.UNPROVEN, Reason.NOT_RESUMABLE),
            (Outcome.REJECTED, Reason.NOT_SUPPORTED),
        ]
        assert {fact.generation for fact in seen.of(AttemptSettled)} == {Generation.STATELESS}
        assert seen.events == {(Generation.STATELESS, Stream.REQUEST): 3}
        await given_back(seen)

    with observed() as seen:
        asyncio.run(play(seen))


@pytest.mark.skipif(not sdk_is_modern(), reason="the generation without sessions needs mcp 2.x")
def test_hooks_that_come_after_an_application_without_sessions_see_it() -> None:
    """It has bound the methods of its manager by then."""

    async def play() -> None:
        async with playing(high_level_app()) as client:
            with observed() as seen:
                await client.play(
                    [
                        {"session": {"session": "M", "protocol": "2026-07-28"}},
                        {"call": {"session": "M", "as": "call", "play": [{"progress": 2}], "token": "7"}},
                        {"read": {"from": "call", "until": "end"}},
                    ]
                )
                await given_back(seen)
                assert seen.verdicts == [(Outcome.UNPROVEN, Reason.NOT_RESUMABLE)]
                assert seen.events == {(Generation.STATELESS, Stream.REQUEST): 3}

    asyncio.run(play())
