"""A whole assay of one server: control, scout, soak, clean sessions, verdicts. The order and the reasons stand in the modules
of `oracle` and `verdicts`."""

from __future__ import annotations

import asyncio
import math
import resource
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from earnest.assay.arguments.literals import Literals
from earnest.assay.arguments.plan import Planner
from earnest.assay.fixture import Fixture
from earnest.assay.model import Call, Effect, Report, ServerFinding, ToolReport, ToolUnder
from earnest.assay.oracle.control import control
from earnest.assay.oracle.examine import Examiner, Tally, unsettled
from earnest.assay.oracle.scout import Scout
from earnest.assay.oracle.soak import Soaked, by_tool, nominated, soak
from earnest.assay.session import Bench
from earnest.assay.verdicts.judge import judged
from earnest.core.errors import EarnestError

_SCOUTED, _SOAKED, _EXAMINED = 0.4, 0.55, 0.95
"""Parts of the time by which a phase is to be over, where there is a bound."""
Told = Callable[[str, str, int, int], None]
"""Progress: phase, what is under way, how many are done, of how many."""


class Options(msgspec.Struct, frozen=True):
    """How an assay goes. `patience`: seconds waited for late writes. `jobs`: clean sessions at once. `only`: tools, all if
    empty. `tool_seconds`: the most that clean sessions of one tool take in each phase. `seconds`: the most that all of it
    takes, 0 for no bound; what is not done by then is left, and the report says so."""

    patience: float = 2.5
    jobs: int = 2
    strict: bool = False
    only: tuple[str, ...] = ()
    arguments: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    seed: int = 0
    skipped: frozenset[str] = frozenset()
    tool_seconds: float = 120.0
    seconds: float = 0.0

    def until(self, began: float, part: float) -> float:
        """The moment by which a part of the time is over (monotonic clock)."""
        return began + self.seconds * part if self.seconds else math.inf


class Assayed(msgspec.Struct, frozen=True):
    """The report, with the tallies it was made of."""

    report: Report
    tallies: tuple[Tally, ...]


async def assay(
    bench: Bench, fixture: Fixture, literals: Literals, options: Options, told: Told, command: Sequence[str] = ()
) -> Assayed:
    """Assay one server. Raises E12xx where it does not start, E18xx where there is no box, E19xx for what cannot be assayed."""
    began, cpu = time.monotonic(), _cpu()
    told("control", "the server alone, with no tool called", 0, 1)
    seen = await control(bench, options.patience)
    tools = _chosen(seen.tools, options)
    planner = Planner(fixture, literals, options.arguments, options.seed)
    told("scout", "", 0, len(tools))
    count = iter(range(1, 10_000))
    scout = Scout(
        bench, tools, planner, seen.noise, lambda name: told("scout", name, min(next(count), len(tools)), len(tools)),
        options.until(began, _SCOUTED),
    )  # fmt: skip
    scouted = await scout.run()
    readers = [tool for tool in tools if _reads(tool, scouted.of(tool.name))]
    soaked = Soaked({}, [], [], [])
    if readers:
        number = iter(range(1, 10_000))
        soaked = await soak(
            bench, readers, scouted, planner, scouted.noise, options.patience,
            lambda name: told("soak", name, next(number), len(readers)), options.until(began, _SOAKED),
        )  # fmt: skip
    examiner = Examiner(bench, scouted.noise, scouted, soaked, tools, options.patience)
    parallel = bench.tier.name == "namespaces" or bench.homes is not None
    tallies = await _examined(examiner, tools, scouted.calls, soaked, options, told, parallel, options.until(began, _EXAMINED))
    reports = tuple(judged(tally, bench.tier.sight, strict=options.strict) for tally in tallies)
    findings = (*seen.findings, *_merged(scouted.findings), *_cut(tallies), *_blind(bench))
    report = Report(
        seen.name or bench.name, bench.tier.name, reports, findings, tuple(command), seen.version,
        round(time.monotonic() - began, 2), round(_cpu() - cpu, 2), examiner.sessions + 2 + bool(readers),
    )  # fmt: skip
    return Assayed(report, tuple(tallies))


def _chosen(tools: Sequence[ToolUnder], options: Options) -> list[ToolUnder]:
    """The tools that are called. Raises E1957 for a name that is none's."""
    names = {tool.name for tool in tools}
    theirs = f"Its tools are {', '.join(sorted(names)[:40])}."
    if wrong := [name for name in options.only if name not in names]:
        raise EarnestError("E1957", f"there is no tool {wrong[0]!r}", theirs)
    if wrong := [name for name in (*options.arguments, *options.skipped) if name not in names]:
        raise EarnestError(
            "E1957",
            f"there is no tool {wrong[0]!r}, which the settings (assay.toml in this folder, or --settings) name",
            f"{theirs} If the file is for another server: --settings FILE names another one.",
        )
    return [tool for tool in tools if (not options.only or tool.name in options.only) and tool.name not in options.skipped]


def _reads(tool: ToolUnder, calls: Sequence[Call]) -> bool:
    """Whether a tool is soaked: it claims to read only, or nothing it did in the scout had effect."""
    return tool.claims.read_only is True or not any(call.hard for call in calls)


async def _examined(
    examiner: Examiner,
    tools: Sequence[ToolUnder],
    calls: Sequence[Call],
    soaked: Soaked,
    options: Options,
    told: Told,
    parallel: bool,
    until: float,
) -> list[Tally]:
    every = by_tool([*nominated(calls), *soaked.nominations])
    tallies = [examiner.begin(tool) for tool in tools]
    if soaked.cut:
        for tally in tallies:
            tally.cut = examiner.reads(tally) and tally.tool.name not in soaked.order
    # Where boxes have their folders at one place of the machine there is one at a time.
    gate = asyncio.Semaphore(max(1, options.jobs) if parallel else 1)
    done = 0

    async def one(work: Callable[[Tally], Awaitable[None]], tally: Tally, phase: str, most: int) -> None:
        nonlocal done
        async with gate:
            told(phase, tally.tool.name, done, most)
            try:
                async with asyncio.timeout(max(0.0, min(options.tool_seconds, until - time.monotonic()))):
                    await work(tally)
            except TimeoutError:
                tally.cut = True
            done += 1
            told(phase, tally.tool.name, done, most)

    async def each(phase: str, work: Callable[[Tally], Awaitable[None]], some: Sequence[Tally]) -> None:
        nonlocal done
        done = 0
        await asyncio.gather(*(one(work, tally, phase, len(some)) for tally in some))

    await each("clean", lambda tally: examiner.examine(tally, every.get(tally.tool.name, [])), tallies)
    late = [effect for effect in soaked.late if effect.subject not in _owned(tallies)]
    quiet = [t for t in tallies if not t.evidence and t.tool.name in soaked.order and _may_be(t.tool, late)]
    await each("late", examiner.suspect, quiet)
    owned = _owned(tallies)
    left = [(t, found) for t in tallies if examiner.reads(t) and (found := unsettled(t, every.get(t.tool.name, []), owned))]
    known = {tally.tool.name: found for tally, found in left}
    await each("order", lambda tally: examiner.led_to(tally, known[tally.tool.name]), [tally for tally, _ in left])
    return tallies


def _owned(tallies: Sequence[Tally]) -> frozenset[str]:
    """What evidence has found an owner for, and what tools that are not readers do."""
    proved = {one.where for tally in tallies for found in tally.evidence.values() for one in found}
    writers = {s.effect.subject for t in tallies if t.tool.claims.read_only is not True for s in t.sights if s.effect.hard}
    return frozenset(proved | writers)


def _may_be(tool: ToolUnder, late: Sequence[Effect]) -> bool:
    """Whether something that came late would contradict this tool."""
    reads, home = tool.claims.read_only is True, tool.claims.open_world is False
    return any((reads and effect.hard) or (home and effect.external) for effect in late)


def _cut(tallies: Sequence[Tally]) -> list[ServerFinding]:
    """Tools of which not all clean sessions could be run in the time there was."""
    names = [tally.tool.name for tally in tallies if tally.cut]
    if not names:
        return []
    what = f"time was over before all clean sessions of {len(names)} tools had been run: {', '.join(names[:8])}"
    return [ServerFinding("unfinished", what + (" …" if len(names) > 8 else ""), names[0])]


def _merged(findings: Sequence[ServerFinding]) -> list[ServerFinding]:
    return list({(one.kind, one.where): one for one in findings}.values())


def _blind(bench: Bench) -> list[ServerFinding]:
    sight = bench.tier.sight
    unseen = [
        word
        for word, there in (
            ("files outside what was granted", sight.files == "everywhere"),
            ("the network", sight.network),
            ("processes", sight.processes),
            ("UNIX sockets", sight.sockets),
        )
        if not there
    ]
    if not unseen:
        return []
    return [
        ServerFinding("blind", f"tier {bench.tier.name} does not see {', '.join(unseen)}; `earnest assay doctor` says more")
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime + own.ru_utime + own.ru_stime


def nothing_came(report: Report) -> bool:
    """Whether the server ended at its calls and answered none, so that nothing is known of any tool."""
    ended = any(finding.kind == "ended" for finding in report.server_findings)
    return ended and not any(tool.answered or tool.effective_calls for tool in report.tools)


def worst(reports: Sequence[ToolReport]) -> bool:
    """Whether any claim is contradicted."""
    return any(hint.verdict == "CONTRADICTED" for report in reports for hint in report.hints.values())
