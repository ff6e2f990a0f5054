"""Hints that are proposed for a tool, each with its basis.

Three bases, the strongest first: `evidence` (an assay saw it, given from outside), `schema` (an action or parameter says it),
`lexicon` (the description says it). A proposal raises risk, or spells out a default (which is neutral), on any of them. It
lowers risk on evidence alone, unless the caller says that words will do; then on a lexicon's `high` only. A default that the
words deny is not spelled out: what is absent misleads less than a claim that is wrong, and lint would find it at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.hints import RISKY
from earnest.lint.evidence import Evidence, gather
from earnest.lint.model import UNREADABLE, WIRE, Hint, Server, Tool

Basis: TypeAlias = Literal["evidence", "schema", "lexicon", "default"]
Observed: TypeAlias = Mapping[str, Mapping[Hint, bool]]


class Proposal(msgspec.Struct, frozen=True):
    """One hint of one tool: what it is, what it should be, on what basis, and why."""

    tool: str
    hint: Hint
    now: bool | None
    value: bool
    basis: Basis
    why: str

    @property
    def lowers(self) -> bool:
        """Whether a reader would take less care afterwards."""
        taken = RISKY[self.hint] if self.now is None else self.now
        return self.value is not RISKY[self.hint] and taken is RISKY[self.hint]


def observed(path: Path) -> Observed:
    """Evidence from a file: `{"TOOL": {"read_only": true, …}}`. Raises E1025."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[Hint, bool]])
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise EarnestError("E1025", f"{path} holds no evidence: {error}", '{"TOOL": {"read_only": true}}') from None


def propose(server: Server, seen: Observed, *, lower: bool = False) -> list[Proposal]:
    """What should change, tool by tool. `lower`: the lexicon may lower risk too."""
    found: list[Proposal] = []
    for tool, evidence in gather(server).tools:
        wanted = _wanted(tool, evidence, seen.get(tool.name, {}), lower)
        for hint, (value, basis, why) in wanted.items():
            if tool.raw.get(hint) is not value and not _unreadable(tool, hint):
                found.append(Proposal(tool.name, hint, tool.raw.get(hint), value, basis, why))
    return found


def _unreadable(tool: Tool, hint: Hint) -> bool:
    return WIRE[hint] in tool.raw.malformed and tool.annotations.get(WIRE[hint]) == UNREADABLE


def _wanted(tool: Tool, evidence: Evidence, seen: Mapping[Hint, bool], lower: bool) -> dict[Hint, tuple[bool, Basis, str]]:
    wanted: dict[Hint, tuple[bool, Basis, str]] = {}
    raw, first = tool.raw, evidence.text.first[0] if evidence.text.first else None

    def put(hint: Hint, value: bool, basis: Basis, why: str) -> None:
        now = raw.get(hint)
        taken = RISKY[hint] if now is None else now
        lowers = value is not RISKY[hint] and taken is RISKY[hint]
        if hint not in wanted and (not lowers or basis == "evidence" or (lower and basis == "lexicon")):
            wanted[hint] = (value, basis, why)

    for hint, value in seen.items():
        put(hint, value, "evidence", "an assay saw it")
    writes = next((a for a in evidence.writes if a.sure == "high" or a.where == "schema"), None)
    if writes is not None:
        basis: Basis = "schema" if writes.where == "schema" else "lexicon"
        put("read_only", False, basis, writes.text)
        destroys = next((a for a in evidence.destroys if a.sure == "high" or a.where == "schema"), None)
        if destroys is not None:
            put("destructive", True, "schema" if destroys.where == "schema" else "lexicon", destroys.text)
        elif (
            first is not None and all(a.kind == "create" and a.sure == "high" for a in evidence.writes) and evidence.text.first
        ):
            put("destructive", False, "lexicon", first.text)
        if writes.kind == "send" and writes.sure == "high":
            put("open_world", True, "lexicon", writes.text)
    elif evidence.reads == "high" and first is not None:
        put("read_only", True, "lexicon", first.text)
    if evidence.text.open:
        put("open_world", True, "lexicon", evidence.text.open)
    reading = wanted.get("read_only", (raw.read_only is True, "default", ""))[0]
    denied = _denied(evidence)
    for hint in WIRE:
        moot = reading and hint in ("destructive", "idempotent")
        if raw.get(hint) is None and hint not in wanted and not moot and hint not in denied:
            put(hint, RISKY[hint], "default", "the default of the specification, spelled out")
    return wanted


def _denied(evidence: Evidence) -> frozenset[Hint]:
    """Hints whose default is not what the description says."""
    if evidence.reads in ("high", "medium"):
        return frozenset(("read_only", "destructive", "idempotent"))
    if evidence.writes and all(act.kind == "create" and act.sure == "high" for act in evidence.writes):
        return frozenset(("destructive",))
    return frozenset()


def withheld(server: Server, seen: Observed) -> list[Proposal]:
    """What the words alone would lower, and `propose` therefore leaves out."""
    made = {(one.tool, one.hint) for one in propose(server, seen)}
    return [one for one in propose(server, seen, lower=True) if one.lowers and (one.tool, one.hint) not in made]
