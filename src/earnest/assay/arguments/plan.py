"""Which calls are tried for a tool, and in which order tools are taken.

Readers that need nothing first (what they answer is what others need), then what creates, then what reads again, changes and
deletes; a person's own arguments before all guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from earnest.assay.arguments.generate import Candidates
from earnest.assay.arguments.guess import Guesses
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


class Planner:
    """Makes candidates for tools, from all that is known at the moment."""

    def __init__(
        self, fixture: Fixture, literals: Literals, own: Mapping[str, Sequence[Mapping[str, Any]]], seed: int = 0
    ) -> None:
        """`own`: a person's arguments, by tool."""
        self._fixture, self._literals, self._own, self._seed = fixture, literals, own, seed
        self._documents: dict[str, Document] = {}
        self._complaints: dict[str, list[str]] = {}

    def complained(self, tool: str, text: str) -> None:
        """A call of a tool failed with these words."""
        kept = self._complaints.setdefault(tool, [])
        if text[:400] not in kept and len(kept) < 12:
            kept.append(text[:400])

    def _heard(self, tool: str) -> list[str]:
        """Complaints about calls of a tool, then those about others, which often want the same: a kind of file, a name."""
        others = [text for name, texts in self._complaints.items() if name != tool for text in texts[:4]]
        return [*self._complaints.get(tool, ()), *others[:20]]

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
        given = [dict(one) for one in self._own.get(tool.name, ())]
        if len(given) >= most:
            return given[:most]
        verbs = set(words(tool.name)[:3])
        creating = bool(verbs & _CREATE)

        def extra(name: str) -> list[Any]:
            if creating and not set(words(name)) & {"id", "parent", "ref", "key", "uuid"}:
                return []  # a new thing gets a new name
            return harvest.offers(tool.name, name)

        def fallback(name: str) -> list[Any]:
            return [*self._literals.of(name), *harvest.offers(tool.name, name, 3)]

        siblings = tuple(self.document(tool).followed(tool.schema)[0].get("properties") or ())
        guesses = Guesses(tool.name, tool.description, self._fixture, extra, fallback, siblings, self._heard(tool.name))
        made = Candidates(self.document(tool), guesses, self._seed).make(most)
        found = [*given]
        # What another tool was given to make something, this one may need to change or undo it.
        for candidate in [*made[:1], *(self._mirrored(tool, harvest) if rank(tool) in (2, 3, 4) else ()), *made]:
            if candidate not in found:
                found.append(candidate)
        return found[:most]

    def _mirrored(self, tool: ToolUnder, harvest: Harvest) -> list[dict[str, Any]]:
        """The arguments of calls that had an effect, as far as this tool takes them."""
        document = self.document(tool)
        shape = document.followed(document.root)[0]
        known = set(shape.get("properties") or ())
        found: list[dict[str, Any]] = []
        for made in reversed(harvest.made):
            if not made.effective or made.step.tool == tool.name:
                continue
            candidate = {key: value for key, value in made.step.arguments.items() if key in known}
            if candidate and candidate not in found and document.valid(candidate):
                found.append(candidate)
            if len(found) >= 3:
                break
        return found

    def provocations(self, tool: ToolUnder, base: Mapping[str, Any], most: int = 16) -> list[dict[str, Any]]:
        """Arguments that worked, with values in them that the server's source compares with."""
        found: list[dict[str, Any]] = []
        document = self.document(tool)
        properties = document.followed(document.root)[0].get("properties") or {}
        for name in properties:
            for value in [*self._literals.of(name, 12), *self._literals.others(name, 12)]:
                for shaped in _shaped(value, base.get(name)):
                    candidate = {**base, name: shaped}
                    if candidate not in found and candidate != base and document.valid(candidate):
                        found.append(candidate)
                if len(found) >= most:
                    return found
        return found


def _shaped(value: Any, present: Any) -> list[Any]:
    """A mined value as it could stand in place of the present one: alone, and as the end of a text."""
    if isinstance(value, str) and isinstance(present, str) and present:
        stem, dot, ending = present.rpartition(".")
        joined = f"{stem}{value}{dot}{ending}" if dot else f"{present}{value}"
        return [value, joined] if "/" in present else [value]
    return [value]
