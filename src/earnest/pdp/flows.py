"""Flow by value where the user's words are known: a ledger for each conversation, a memory of stores for each principal.

Theory. A hook tells the user's words of one session, which is a key below its host process. A call is judged by the ledger of
its own key or the nearest above it. A call that is known only by a wider key (a gateway's, that no hook announced) could be any
session's below it, so each of their ledgers is asked: it is endorsed only if all endorse it, and asked about if one asks. So no
session speaks with another's words, and leaving the announcement out gains nothing. What such a call returns is untrusted to
all of them.

Where nobody's words are known nothing is kept and the rule is silent (`words`), speaks as if there were none (`always`), or is
silent everywhere (`off`). A ledger that has to begin when untrusted content was already seen (after a restart, a resume, or
because there were too many) counts as having read more than can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from earnest.config.lexicon import shipped
from earnest.core import arguments as reading
from earnest.core.decide import FlowVerdict
from earnest.core.errors import EarnestError
from earnest.core.flow import UNTRUSTED, Key
from earnest.core.integrity import UNDOABLE, Call, Integrity, judge
from earnest.core.intent import Reader, ToolIntent
from earnest.core.ledger import RESULT_BYTES, Ledger
from earnest.core.profile import Basis, Profile
from earnest.core.provenance import Source
from earnest.core.roles import ArgumentRoles, Role, Roles, label
from earnest.core.storage import Mark, Memory, objects, texts, unspoken
from earnest.core.values import leaves, tokens
from earnest.pdp.catalog import Tool
from earnest.pdp.conversations import Conversations
from earnest.pdp.facts import Judgement, Question

Mode = Literal["words", "always", "off"]
SHOWN_BYTES: Final = 512 * 1024
"""Text that servers said of themselves to one client, of which values are taken in; more is more than can be compared."""
MOST: Final = 64
"""Conversations whose values are held; of one that is pushed out only that its words were known."""
_SPEAKING: Final = frozenset(("", "description", "title", "name", "uri", "uriTemplate", "default", "const", "enum", "examples"))
"""Members of a definition that a model takes for words, not for structure."""
_CONTENT: Final[Roles] = frozenset((Role.CONTENT,))


class Marks(Protocol):
    """Where the marks of stores outlive the daemon."""

    def any(self) -> bool:
        """Whether there are any at all."""

    def load(self, principal: str) -> Iterable[Mark]:
        """All marks of a principal."""

    def save(self, principal: str, marks: Sequence[Mark]) -> None:
        """Keep more. Raises E14xx."""


class _Ready(msgspec.Struct, frozen=True):
    """What the rule needs of a tool, made ready once."""

    intent: ToolIntent
    roles: ArgumentRoles


class Flows:
    """See the module. One thread."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        mode: Mode = "words",
        marks: Marks | None = None,
        reader: Callable[[], Reader] | None = None,
        most: int = MOST,
    ) -> None:
        """`reader`: the lexicon made ready; it is asked for once, when it is first needed."""
        self._mode: Mode = mode
        self._conversations = conversations
        self._marks = marks
        self._make_reader = reader or _shipped
        self._reader: Reader | None = None
        self._most = most
        self._ledgers: dict[Key, Ledger] = {}
        self._memories: dict[str, Memory] = {}
        self._nobody: Ledger | None = None
        self._shown: dict[Key, dict[tuple[str, str], tuple[bytes, Source]]] = {}
        self.speaks = mode == "always"
        """Whether the rule can have anything to say: one look, for the many calls where it has not."""
        self._marked = marks is not None and marks.any()
        self.listens = self._marked
        """Whether results are looked at."""
        conversations.on_end = self.end

    @property
    def reader(self) -> Reader:
        """The lexicon made ready."""
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader

    def become(self, mode: Mode) -> None:
        """Take another mode. What was kept stays: nothing that was seen is forgotten by it."""
        self._mode = mode
        self._settle()

    def _settle(self) -> None:
        self.speaks = self._mode != "off" and (self._mode == "always" or bool(self._ledgers))
        self.listens = self._marked or bool(self._ledgers)

    # words

    def open(self, key: Key) -> Ledger:
        """The ledger of a conversation whose user's words a hook tells. The key is known to `Conversations`."""
        found = self._ledgers.pop(key, None)
        if found is None:
            found = Ledger(self.reader)
            if self._conversations.labels(key) & UNTRUSTED:
                found.values.untrusted.full = True
            for length in range(1, len(key) + 1):
                for raw, source in self._shown.get(key[:length], {}).values():
                    _take_in(found, raw, source)
        self._ledgers[key] = found  # the last is the one used last
        for old in list(self._ledgers)[: -self._most]:
            if self._ledgers[old].wishes or not self._ledgers[old].values.untrusted.empty:
                self._ledgers[old] = self._emptied()
        self._settle()
        return found

    def _emptied(self) -> Ledger:
        empty = Ledger(self.reader)
        empty.values.untrusted.full = True
        return empty

    def user(self, key: Key, prompt: str, receipt: str) -> bool:
        """Take in a prompt. True if it held text that is not the user's own."""
        return self.open(key).user(prompt, receipt)

    def overheard(self, key: Key, text: str, source: Source) -> None:
        """Take in a text that is not the user's."""
        self.open(key).untrusted(text, source)

    def shown(self, key: Key, server: str, what: str, raw: bytes) -> None:
        """What a server says of itself went to a client: instructions, descriptions, names. A stranger's text: it sets no
        label, since what of it a person has seen is pinned, but a value from it is nobody's own. `what`: a tool, or which
        list."""
        known = self._shown.setdefault(key, {})
        found = known.get((server, what))
        if found is not None and found[0] == raw:
            return
        source = Source("as listed", server, what)
        if sum(len(text) for text, _ in known.values()) + len(raw) > SHOWN_BYTES:
            raw = b""
        known[server, what] = raw, source
        for ledger in self._of(key):
            _take_in(ledger, raw, source)

    def carry(self, old: Key, new: Key) -> None:
        """A conversation goes on under another key: what it held goes with it."""
        found = self._ledgers.get(old)
        if found is not None and new not in self._ledgers:
            self._ledgers[new] = found

    def end(self, gone: tuple[Key, ...]) -> None:
        """Conversations are over."""
        for key in gone:
            self._ledgers.pop(key, None)
            self._shown.pop(key, None)
        self._settle()

    def _of(self, key: Key) -> list[Ledger]:
        """Whose words may stand behind a call."""
        for length in range(len(key), 0, -1):
            found = self._ledgers.get(key[:length])
            if found is not None:
                return [found]
        return [ledger for other, ledger in self._ledgers.items() if other[: len(key)] == key]

    # the rule

    def judge(self, question: Question, tool: Tool, profile: Profile, judged_as: str, labels: int) -> Integrity | None:
        """What the rule says of a call; None where it is silent."""
        ledgers = self._of(question.key)
        if not ledgers:
            if self._mode != "always":
                return None
            if self._nobody is None:
                self._nobody = Ledger(self.reader)
            ledgers = [self._nobody]
        if profile.read_only.value and not profile.can_exfiltrate.value:
            return None
        ready = self.ready(tool)
        roles = ready.roles
        if judged_as:
            # The arguments are the dispatcher's: of none of them anything is known, the target's name among them.
            roles = ArgumentRoles({}, None, self.reader.lexicon)
        try:
            arguments: Any = reading.load(question.arguments or b"{}")
        except EarnestError:
            arguments = None
        found = [self._judged(question, tool, profile, ready, roles, arguments, ledger, labels) for ledger in ledgers]
        return found[0] if len(found) == 1 else _worst(found)

    def _judged(
        self,
        question: Question,
        tool: Tool,
        profile: Profile,
        ready: _Ready,
        roles: ArgumentRoles,
        arguments: Any,
        ledger: Ledger,
        labels: int,
    ) -> Integrity:
        call = Call(
            question.server.name,
            tool.name,
            ready.intent,
            roles,
            _as_spoken(arguments, roles, question.folder, ledger) if question.folder else arguments,
            read_only=profile.read_only.value,
            destructive=profile.destructive.value,
            open_world=profile.open_world.value,
            can_exfiltrate=profile.can_exfiltrate.value,
            undoable=tool.words.undoable and tool is question.tool and not question.for_real,
        )
        return judge(call, ledger, self.reader, untrusted=bool(labels & UNTRUSTED))

    def ready(self, tool: Tool) -> _Ready:
        """Verb, object and roles of a tool."""
        known = tool.flow
        if isinstance(known, _Ready):
            return known
        said = {path: role for path, text in tool.words.roles.items() if (role := label(text)) is not None}
        intent = self.reader.tool(tool.words.intent or tool.name, tool.title or "")
        made = _Ready(intent, ArgumentRoles(said, _schema(tool.definition), self.reader.lexicon))
        tool.flow = made
        return made

    # results

    def observed(self, judgement: Judgement, raw: bytes, *, untrusted: bool) -> str:
        """Take in what a call returned. `untrusted`: its own labels say so. Returns the receipt of the write that makes the
        store it was read from untrusted, or nothing."""
        question, profile = judgement.question, judgement.profile
        ledgers = self._of(question.key)
        memory = self._memory(question.principal)
        server = question.server
        reads_marked = not profile.sees_untrusted.value and memory.speaks(server.identity)
        if not ledgers and not reads_marked:
            return ""
        whole = len(raw) <= RESULT_BYTES
        result: Any = None
        try:
            result = msgspec.json.decode(raw) if raw and whole else None
        except (msgspec.MsgspecError, RecursionError):
            result = raw.decode("utf-8", "replace")
        try:
            arguments: Any = reading.load(question.arguments or b"{}")
        except EarnestError:
            arguments = None
        roles = self.ready(question.tool).roles
        marked: str | None = None
        if reads_marked:
            marked = memory.marked(server.identity, objects(roles, arguments, result), texts(result)) if whole else "unknown"
        # What is enforced is the form: a number that a stranger chose sets no label, and is a stranger's number all the same.
        # So it is with a source that a person endorsed: its text sets no label, and is no word of theirs.
        enforced = profile.sees_untrusted.basis is Basis.ENFORCED
        from_home = not (profile.sees_untrusted.value or enforced or judgement.source_endorsed)
        trusted = from_home and not untrusted and marked is None and len(ledgers) == 1
        for ledger in ledgers:
            if not whole:
                ledger.overflowed()
                continue
            ledger.result(
                result,
                judgement.id,
                server.name,
                question.subject,
                trusted=trusted,
                private=profile.reads_private.value,
                arguments=arguments,
            )
        if ledgers and not profile.read_only.value and judgement.labels_before & UNTRUSTED:
            self._remember(question, judgement.id, roles, arguments, result, ledgers, memory)
        return marked or ""

    def _remember(
        self,
        question: Question,
        receipt: str,
        roles: ArgumentRoles,
        arguments: Any,
        result: Any,
        ledgers: list[Ledger],
        memory: Memory,
    ) -> None:
        """A write whose values nobody spoke for marks what it wrote to."""
        stored = [keys for ledger in ledgers for keys in unspoken(ledger, arguments)]
        if not stored:
            return
        fresh = memory.stored(question.server.identity, objects(roles, arguments, result), stored, receipt)
        self._marked = True
        if fresh and self._marks is not None:
            self._marks.save(question.principal, fresh)

    def _memory(self, principal: str) -> Memory:
        found = self._memories.get(principal)
        if found is None:
            found = self._memories[principal] = Memory(self._marks.load(principal) if self._marks is not None else ())
        return found


def _take_in(ledger: Ledger, raw: bytes, source: Source) -> None:
    if not raw:
        ledger.values.untrusted.full = True
        return
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        found = raw.decode("utf-8", "replace")
    for path, value in leaves(found):
        if isinstance(value, str) and path.rpartition(".")[2].removesuffix("[]") in _SPEAKING:
            ledger.untrusted(value, source)


def _shipped() -> Reader:
    return Reader(shipped())


def _schema(definition: bytes) -> Mapping[str, Any] | None:
    try:
        found = msgspec.json.decode(definition or b"{}")
    except msgspec.MsgspecError:
        return None
    schema = found.get("inputSchema") if isinstance(found, dict) else None
    return schema if isinstance(schema, dict) else None


def _as_spoken(arguments: Any, roles: ArgumentRoles, folder: str, ledger: Ledger) -> Any:
    """Arguments with paths below the person's folder as they would name them, where they did not name them in full."""
    if not isinstance(arguments, dict):
        return arguments
    start = folder.rstrip("/") + "/"

    def spoken(name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith(start) or "/../" in value or roles.of(name) == _CONTENT:
            return value
        if ledger.values.user.places([token.key for token in tokens(value)]):
            return value
        return value[len(start) :]

    return {name: spoken(name, value) for name, value in arguments.items()}


def _worst(found: list[Integrity]) -> Integrity:
    """What holds if each of several conversations may be the one that calls."""
    speaking = [one for one in found if one.verdict is not None]
    if not speaking:
        exempt = UNDOABLE if any(one.exempt == UNDOABLE for one in found) else ""
        return Integrity(None, all(one.endorsed for one in found), exempt)
    verdicts = [one.verdict for one in speaking if one.verdict is not None]
    worst = max(verdicts, key=lambda voice: voice.verdict)
    reasons = tuple(dict.fromkeys(reason for voice in verdicts for reason in voice.reasons))
    remedies = tuple(dict.fromkeys(remedy for voice in verdicts for remedy in voice.remedies))
    return Integrity(FlowVerdict(worst.verdict, reasons, remedies), False)
