"""The words of the assay as data.

A *step* is one call of one tool with given arguments, which may refer to answers of earlier steps. A *window* is the time from
one look at the box to the next, and belongs to the step made in it. An *effect* is one change seen in a window, weighed: `hard`
effects are changes of the world that a person would call one; `soft` ones are caches, logs, scratch, touched metadata. Evidence
is an effect that came again in clean sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from earnest.assay.observe.masks import masked_path
from earnest.core.hints import RawHints

Place = Literal[
    "state", "cache", "log", "temp", "side", "program", "repository", "network", "socket", "memory", "process", "database"
]
"""Where an effect is. `side`: files that accompany others (journals, locks). `program`: the server's own installation.
`memory`:
no file, but another tool answers differently. `database`: a database server inside the sandbox."""
Nature = Literal[
    "created",
    "appended",
    "overwritten",
    "deleted",
    "moved",
    "touched",
    "restored",
    "contacted",
    "sent",
    "refused",
    "answers",
    "started",
]
"""`restored`: written and put back. `contacted`: a name or address was reached for. `sent`: a request other than a reading one.
`refused`: the sandbox stopped it. `answers`: a reading tool answers differently. `started`: a program that fetches programs
was started."""
When = Literal["call", "later", "exit"]
VerdictWord = Literal["CONTRADICTED", "SOFT", "SUPPORTED", "OVER-DECLARED", "NOT-EXERCISED", "INCONCLUSIVE"]
Outcome = Literal["done", "error", "dressed", "timeout", "lost"]
"""How a call ended. `dressed`: an error in the clothing of success. `lost`: the server ended."""


class ToolUnder(msgspec.Struct, frozen=True):
    """A tool under assay, as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    claims: RawHints
    definition: bytes


class Ref(msgspec.Struct, frozen=True):
    """A value that stands in the answer of an earlier step of the same session: `step` counts from the front, `path` leads to
    it
    in the parsed answer, `value` is what it was when it was found."""

    step: int
    path: tuple[str | int, ...]
    value: Any


class Step(msgspec.Struct, frozen=True):
    """One call. `arguments` are JSON values; `refs` says which of them (by path) come from answers of earlier steps."""

    tool: str
    arguments: Mapping[str, Any]
    refs: tuple[tuple[tuple[str | int, ...], Ref], ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What came back. `parsed` is the structured content, else the text as JSON, else the text."""

    outcome: Outcome
    parsed: Any
    text: str
    seconds: float


class Effect(msgspec.Struct, frozen=True):
    """One change in one window. `subject` is a path, address or tool; `area` the part of it (table, key); `what` says it to a
    person. `lossy`: something that stood there is gone; None: cannot be told. `external`: beyond this machine."""

    nature: Nature
    place: Place
    subject: str
    area: str
    what: str
    hard: bool
    lossy: bool | None = False
    external: bool = False
    areas: tuple[str, ...] = ()
    """All areas, where there are several; `area` tells the first few."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two effects the same one, across sessions."""
        return self.nature, masked_path(self.subject), self.place


class Call(msgspec.Struct, frozen=True):
    """A step that was made, with what it changed."""

    step: Step
    answer: Answer
    effects: tuple[Effect, ...]

    @property
    def hard(self) -> tuple[Effect, ...]:
        return tuple(effect for effect in self.effects if effect.hard)


class Evidence(msgspec.Struct, frozen=True):
    """Something seen that bears on one hint: `runs` of `of` clean sessions showed it. `steps` lead to it."""

    what: str
    where: str
    nature: str
    place: str
    when: When
    steps: tuple[Step, ...]
    runs: int
    of: int
    replay: str = ""


class HintVerdict(msgspec.Struct, frozen=True):
    """What the assay says of one hint."""

    claimed: bool | None
    verdict: VerdictWord
    reason: str
    evidence: tuple[Evidence, ...] = ()


class ToolReport(msgspec.Struct, frozen=True):
    """What the assay says of one tool. `calls` is how many were made, `answered` how many without an error, `effective_calls`
    how
    many had a hard effect. `suggested` are the annotations that what was seen speaks for."""

    name: str
    calls: int
    answered: int
    effective_calls: int
    hints: Mapping[str, HintVerdict]
    suggested: Mapping[str, bool] = {}
    definition: bytes = b""
    example: Mapping[str, Any] = {}


class ServerFinding(msgspec.Struct, frozen=True):
    """Something about the whole server."""

    kind: Literal["bookkeeping", "start", "refused", "differs", "ended", "unfinished", "blind"]
    what: str
    where: str = ""


class Report(msgspec.Struct, frozen=True):
    """The end of an assay."""

    server: str
    tier: str
    tools: tuple[ToolReport, ...]
    server_findings: tuple[ServerFinding, ...]
    command: tuple[str, ...] = ()
    version: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    sessions: int = 0


def problem(answer: Answer) -> bool:
    """Whether a call did not do what it was asked for."""
    return answer.outcome != "done"
