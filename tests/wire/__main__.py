"""`python -m tests.wire`: plays cases against an SDK process and judges its verdicts."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from .cases import CASES, Case, CaseError, find_cases
from .play import Setup, Verdict, judge
from .same import Nurseries, compare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    Play = Callable[[Case, Setup], Awaitable[Verdict]]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.wire", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter whose SDK (and plugin) is tested")
    parser.add_argument("--plain", action="store_true", help="without the plugin: check only what is on the wire")
    parser.add_argument("--same", action="store_true", help="play each with the plugin and without: no byte may differ")
    parser.add_argument("--json", action="store_true", help="one JSON object a case")
    parser.add_argument("--verbose", action="store_true", help="print each case's wire traffic and non-zero series")
    parser.add_argument("--jobs", type=int, default=4, help="cases played at the same time")
    parser.add_argument("cases", nargs="*", default=[CASES], metavar="CASE.yaml|DIR")
    return parser.parse_args()


def _print_json(verdict: Verdict) -> None:
    print(json.dumps(vars(verdict)), flush=True)


def _print_line(verdict: Verdict) -> None:
    print(verdict.line(), flush=True)


def _print_verbose(verdict: Verdict) -> None:
    print("\n".join(verdict.lines()), flush=True)


async def _judge_all(
    cases: Sequence[Case], setup: Setup, jobs: int, report: Callable[[Verdict], None], play: Play = judge
) -> list[Verdict]:
    slots = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Verdict:
        async with slots:
            verdict = await play(case, setup)
        report(verdict)
        return verdict

    return list(await asyncio.gather(*(one(case) for case in cases)))


async def _compare_all(
    cases: Sequence[Case], setup: Setup, jobs: int, report: Callable[[Verdict], None]
) -> list[Verdict]:
    async with Nurseries.open(setup.python) as nurseries:
        return await _judge_all(cases, setup, jobs, report, lambda case, setup: compare(case, setup, nurseries))


def main() -> int:
    """1 if a case failed."""
    arguments = _parse_arguments()
    try:
        cases = find_cases(arguments.cases)
    except CaseError as error:
        sys.exit(str(error))
    setup = Setup.of(arguments.python, plain=arguments.plain)
    report = _print_json if arguments.json else _print_verbose if arguments.verbose else _print_line
    judging = _compare_all if arguments.same else _judge_all
    verdicts = asyncio.run(judging(cases, setup, arguments.jobs, report))
    counts = {status: sum(verdict.status == status for verdict in verdicts) for status in ("ok", "FAIL", "skip")}
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
