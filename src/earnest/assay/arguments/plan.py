"""Which calls are tried for a tool, and in which order tools are taken.

Readers that need nothing first (what they answer is what others need), then what creates, then what reads again, changes and
deletes; a person's own arguments before all guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from earnest.assay.arguments.complaints import Complaints
from earnest.assay.arguments.generate import Candidates
from earnest.assay.arguments.guess import Guesses, quoted
from earnest.assay.arguments.harvest import Harvest, words
from earnest.assay.arguments.literals import Literals
from earnest.assay.arguments.schema import Document
from earnest.assay.fixture import Fixture
from earnest.assay.model import ToolUnder

_CREATE: Final = frozenset(
    {"create", "add", "new", "write", "save", "make", "insert", "register", "open", "start", "init", "import", "upload",
     "store", "put", "set", "append", "post", "send", "record", "log", "remember", "generate"}
)  # fmt: skip
_CHANGE: Final = frozenset(
    {"update", "edit", "modify", "rename", "move", "replace", "patch", "complete", "assign", "merge", "apply",
     "change", "toggle", "commit", "push", "checkout", "close", "copy", "format", "stage"}
)  # fmt: skip
_DELETE: Final = frozenset(
    {"delete", "remove", "drop", "clear", "purge", "reset", "destroy", "erase", "truncate", "stop", "kill", "cancel", "unset",
     "archive", "wipe", "cleanup", "forget", "revoke", "uninstall", "shutdown", "exit", "disconnect"}
)  # fmt: skip


def rank(tool: ToolUnder) -> int:
    """When a tool's turn comes: 0 readers without needs, 1 creators, 2 readers with needs, 3 changers, 4 deleters."""
    verbs = set(words(tool.name)[:3])
    if verbs & _DELETE:
        return 4
    if verbs & _CREATE:
        return 1
    if verbs & _CHANGE:
        return 3
    required = tool.schema.get("required") or ()
    return 2 if required else 0


def place_in_turn(tool: ToolUnder) -> tuple[int, int]:
    """The order of tools: by rank; of those that delete the more particular first, since without the whole there is no part."""
    found = rank(tool)
    return found, -len(tool.schema.get("required") or ()) if found == 4 else 0


class Planner:
    """Makes candidates for tools, from all that is known at the moment."""

    def __init__(
        self, fixture: Fixture, literals: Literals, own: Mapping[str, Sequence[Mapping[str, Any]]], seed: int = 0
    ) -> None:
        """`own`: a person's arguments, by tool."""
        self._fixture, self._literals, self._own, self._seed = fixture, literals, own, seed
        self._documents: dict[str, Document] = {}
        self._elsewhere: dict[str, dict[str, list[Any]]] = {}
        self.complaints = Complaints()

    def meet(self, tools: Sequence[ToolUnder]) -> None:
        """Read what all tools of a server say of their parameters: one often says what another leaves unsaid."""
        self.complaints.tools = frozenset(tool.name for tool in tools)
        for tool in tools:
            document = self.document(tool)
            places = [document.followed(document.root)[0], *(document.root.get("$defs") or {}).values()]
            for place in places:
                properties = place.get("properties") if isinstance(place, Mapping) else None
                for name, schema in (properties or {}).items():
                    if isinstance(schema, Mapping):
                        self._elsewhere.setdefault(name, {}).setdefault(tool.name, []).extend(told_values(schema))

    def _said_elsewhere(self, tool: str, name: str) -> list[Any]:
        return [v for other, values in self._elsewhere.get(name, {}).items() if other != tool for v in values][:6]

    def given(self, value: str) -> bool:
        """Whether the fixture has it."""
        return self._fixture.has(value)

    def document(self, tool: ToolUnder) -> Document:
        """The tool's schema, read once."""
        if tool.name not in self._documents:
            self._documents[tool.name] = Document(tool.schema)
        return self._documents[tool.name]

    def candidates(self, tool: ToolUnder, harvest: Harvest, most: int = 12) -> list[dict[str, Any]]:
        """Argument objects, best first."""
        return list(islice(self.each(tool, harvest, most), most))

    def each(self, tool: ToolUnder, harvest: Harvest, most: int = 12) -> Iterator[dict[str, Any]]:
        """The same one after the other, made when they are wanted. `most`: how hard to try."""
        given = [dict(one) for one in self._own.get(tool.name, ())]
        verbs = set(words(tool.name)[:3])
        creating = bool(verbs & _CREATE)

        def extra(name: str) -> list[Any]:
            if creating and not set(words(name)) & {"id", "parent", "ref", "key", "uuid"}:
                return []  # a new thing gets a new name
            return harvest.offers(tool.name, name)

        def fallback(name: str) -> list[Any]:
            return [*self._literals.of(name), *harvest.offers(tool.name, name, 3)]

        siblings = tuple(self.document(tool).followed(tool.schema)[0].get("properties") or ())
        guesses = Guesses(
            tool.name, tool.description, self._fixture, extra, fallback, siblings, self.complaints,
            lambda name: self._said_elsewhere(tool.name, name),
        )  # fmt: skip
        making = Candidates(self.document(tool), guesses, self._seed, guesses).each(most)
        made = list(islice(making, 3))
        # What another tool was given to make something, this one may need to change or undo it.
        mirrored = self._mirrored(tool, harvest, made[:2])
        front = [*made[:1], *mirrored, *made] if rank(tool) in (2, 3, 4) else [*made, *mirrored]
        found: set[str] = set()
        for candidate in chain(given, front, making):
            key = repr(candidate)
            if key not in found:
                found.add(key)
                yield candidate

    def _mirrored(self, tool: ToolUnder, harvest: Harvest, made: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The arguments of other tools' calls that had an effect, as far as this tool takes them, with guesses for the rest."""
        document = self.document(tool)
        shape = document.followed(document.root)[0]
        known = set(shape.get("properties") or ())
        found: list[dict[str, Any]] = []
        used: list[dict[str, Any]] = []
        calls = [c for c in reversed(harvest.made) if c.effective and not c.provoked and c.step.tool != tool.name]
        # Things of the fixture before things that a call has made: there is more in them.
        for call in sorted(
            calls, key=lambda c: not any(isinstance(v, str) and self.given(v) for v in c.step.arguments.values())
        ):
            shared = {key: value for key, value in call.step.arguments.items() if key in known}
            if not shared or shared in used or any(self.complaints.bad(tool.name, key, v) for key, v in shared.items()):
                continue
            used.append(shared)
            for base in ({}, *made):
                candidate = {**base, **shared}
                if candidate not in found and candidate not in made and document.valid(candidate):
                    found.append(candidate)
                    break
            if len(used) >= 4:
                break
        return found

    def _of_fixture(self, arguments: Mapping[str, Any]) -> bool:
        return any(isinstance(value, str) and self.given(value) for value in arguments.values())

    def provocations(self, tool: ToolUnder, base: Mapping[str, Any], most: int = 16) -> list[dict[str, Any]]:
        """Arguments that worked, with values in them that the server's source compares with."""
        found: list[dict[str, Any]] = []
        document = self.document(tool)
        properties = document.followed(document.root)[0].get("properties") or {}
        own = [(name, value) for name in properties for value in self._literals.of(name, 12)]
        loose = [(name, value) for name in properties for value in self._literals.others(name, 12)]
        for name, value in [*own, *loose]:
            for shaped in _shaped(value, base.get(name)):
                candidate = {**base, name: shaped}
                if candidate not in found and candidate != base and document.valid(candidate):
                    found.append(candidate)
            if len(found) >= most:
                break
        return found


def told_values(schema: Mapping[str, Any]) -> list[Any]:
    """Values that a parameter's schema names: its default, examples, choices."""
    found = [schema["default"]] if schema.get("default") not in (None, "", [], {}) else []
    for key in ("examples", "enum"):
        found += schema[key][:3] if isinstance(schema.get(key), list) else []
    return found + quoted(str(schema.get("description") or ""))


def _shaped(value: Any, present: Any) -> list[Any]:
    """A mined value as it could stand in place of the present one: alone, and as the end of a text."""
    if isinstance(value, str) and isinstance(present, str) and present:
        stem, dot, ending = present.rpartition(".")
        joined = f"{stem}{value}{dot}{ending}" if dot else f"{present}{value}"
        return [value, joined] if "/" in present else [value]
    return [value]
