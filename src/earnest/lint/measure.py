"""How often lint is right: `python -m earnest.lint.measure SAMPLE CORPUS`.

SAMPLE is JSON Lines of `{"server", "tool", "cohort", "truth": {hint: true | false | null}, "reason"}`, labelled by hand
from name, description and schema; null is "arguable". CORPUS is anything `earnest lint` reads. A finding about a hint is
right if the truth is known and is not what a reader of the annotations concludes; where the truth is arguable, a finding
counts as wrong. A tool is mis-annotated in a hint if the truth is known, means something (no `destructive` or `idempotent` of
a reader) and is not the effective value.

docs/lint.md says how the samples were drawn, and what their figures are worth.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from earnest.core.hints import effective
from earnest.lint.model import CONFIDENCES, WIRE, Confidence, Finding, Hint, Server, Tool
from earnest.lint.reading import read_path
from earnest.lint.run import Selection, lint


class Label(msgspec.Struct, frozen=True):
    """One labelled tool."""

    server: str
    tool: str
    cohort: str
    truth: dict[Hint, bool | None]
    reason: str


class Figures(msgspec.Struct, frozen=True):
    """Precision by confidence and by audit (right, all), and recall over explicit and over all mis-annotations (found, all)."""

    labels: int
    precision: dict[str, tuple[int, int]]
    by_audit: dict[str, tuple[int, int]]
    recall: dict[str, tuple[int, int]]
    wrong: tuple[Finding, ...]
    missed: tuple[tuple[str, str, str], ...]


def labels(path: Path) -> list[Label]:
    """The sample."""
    return [msgspec.json.decode(line, type=Label) for line in path.read_bytes().splitlines() if line.strip()]


def measure(sample: list[Label], servers: list[Server]) -> Figures:
    """Precision and recall of the findings about hints, over the labelled tools alone."""
    wanted = {(one.server, one.tool): one for one in sample}
    tools = {
        (server.name, tool.name): tool for server in servers for tool in server.tools if (server.name, tool.name) in wanted
    }
    named = {server for server, _ in wanted}
    found = lint([s for s in servers if s.name in named], Selection(persona="pedantic"))
    about = [f for f in found if f.hint is not None and f.tool is not None and (f.server, f.tool) in tools]
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    wrong: list[Finding] = []
    for finding in about:
        key = (finding.server, finding.tool or "")
        good = finding.hint is not None and _misled(wanted[key], tools[key], finding.hint)
        for name in (finding.confidence, f"{finding.audit} {finding.confidence}"):
            total[name] += 1
            right[name] += good
        if not good and finding.confidence == "high":
            wrong.append(finding)
    seen: dict[tuple[str, str, str], Confidence] = {}
    for finding in about:
        if finding.audit == "missing-hint":
            continue  # that a hint is absent is no finding about what the tool does
        row = (finding.server, finding.tool or "", str(finding.hint))
        seen[row] = max(seen.get(row, "low"), finding.confidence, key=CONFIDENCES.index)
    recall: Counter[str] = Counter()
    missed: list[tuple[str, str, str]] = []
    for key, tool in tools.items():
        for hint in WIRE:
            if not _misled(wanted[key], tool, hint):
                continue
            claimed = tool.raw.get(hint) is not None or (hint == "read_only" and tool.annotations)
            sure = seen.get((*key, hint))
            for kind in ("all", *(("claimed",) if claimed else ())):
                recall[f"{kind} total"] += 1
                recall[f"{kind} any"] += sure is not None
                recall[f"{kind} medium"] += sure in ("medium", "high")
                recall[f"{kind} high"] += sure == "high"
            if claimed and sure is None:
                missed.append((*key, hint))
    rates = {
        f"{kind}, {level}": (recall[f"{kind} {level}"], recall[f"{kind} total"])
        for kind in ("claimed", "all")
        for level in ("high", "medium", "any")
    }
    return Figures(
        len(tools),
        {name: (right[name], total[name]) for name in CONFIDENCES if total[name]},
        {name: (right[name], total[name]) for name in sorted(total) if " " in name},
        rates,
        tuple(wrong),
        tuple(missed),
    )


def _misled(label: Label, tool: Tool, hint: Hint) -> bool:
    """Whether the annotations, read as the specification says, tell something else than the truth."""
    truth = label.truth.get(hint)
    if truth is None:
        return False
    taken = effective(tool.raw)
    if hint in ("destructive", "idempotent"):
        if label.truth.get("read_only"):
            # Moot for a reader; but an explicit claim of destruction by one that only reads is wrong.
            return hint == "destructive" and tool.raw.destructive is True
        if taken.read_only:
            return False  # said by read_only already
    return bool(getattr(taken, hint)) is not truth


def main(argv: list[str]) -> int:
    """Prints the figures; 1 if a demand is missed (90 % precision at high confidence, 70 % recall at medium or high)."""
    if len(argv) < 2:
        print("python -m earnest.lint.measure SAMPLE CORPUS…", file=sys.stderr)
        return 2
    servers = [server for path in argv[1:] for server in read_path(Path(path))]
    start = time.process_time()
    figures = measure(labels(Path(argv[0])), servers)
    print(f"{figures.labels} labelled tools ({time.process_time() - start:.2f} s)")
    print("precision of findings about a hint")
    for name, (good, every) in figures.precision.items():
        print(f"  {name:<44}{good:>5} of {every:<5}{good / every:>8.1%}")
    for name, (good, every) in figures.by_audit.items():
        print(f"    {name:<42}{good:>5} of {every:<5}{good / every:>8.1%}")
    print(
        "recall of mis-annotations (claimed: the hint is set, or readOnlyHint is missing beside others; all: also where "
        "nothing is said)"
    )
    for name, (good, every) in figures.recall.items():
        print(f"  {name:<44}{good:>5} of {every:<5}{good / max(every, 1):>8.1%}")
    for finding in figures.wrong:
        print(f"wrong: {finding.server}/{finding.tool} {finding.audit}: {finding.message}")
    for server, tool, hint in figures.missed:
        print(f"missed: {server}/{tool} {hint}")
    good, every = figures.precision.get("high", (0, 0))
    caught, known = figures.recall["claimed, medium"]
    return 0 if every and good >= 0.9 * every and caught >= 0.7 * known else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
