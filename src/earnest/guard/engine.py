"""The bare engine: what a program asks before each call of a tool, without daemon, network or files.

    guard = Guard(labels={"send_mail": {"read_only": False, …, "arg_roles": {"to": "destination"}}, …})
    guard.user("Mail the minutes to ann@example.org")
    decision = guard.decide("send_mail", {"to": "ann@example.org", "body": "…"})
    if decision.verdict == "allow":
        guard.observe("send_mail", send_mail(…))

One guard is one conversation. `conversation()` gives another beside it that shares what the stores remember, and nothing else.
A guard is for one thread. Names of tools may carry their server: `server/tool`, `mcp__server__tool`.

The order is the program's to keep: `user` for each prompt, `decide` before and `observe` after each call, with whatever came
back. What
`decide` allowed counts as in flight until it is observed. After a person's yes to an `ask` the program runs the call and
observes it; a yes is for this one call and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from earnest.config import lexicon as shipped_lexicon
from earnest.config import policy as policies
from earnest.core.compile import Compiled
from earnest.core.decide import Subject, Table
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause, FlowState
from earnest.core.integrity import Call, Integrity, judge
from earnest.core.intent import Lexicon, Reader, ToolIntent
from earnest.core.ledger import Ledger
from earnest.core.policy import Policy
from earnest.core.profile import Trust
from earnest.core.provenance import LIMIT
from earnest.core.roles import ArgumentRoles
from earnest.core.storage import Memory, objects, texts, unspoken
from earnest.core.verdict import Reason, Remedy
from earnest.core.vocabulary import ENDORSED, ToolFacts
from earnest.guard.labels import ToolLabels, read

_KEY: Final = ("guard",)


class Word(StrEnum):
    """The answer, as a word."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_WORDS: Final = (Word.ALLOW, Word.ASK, Word.DENY)


class Decided(msgspec.Struct, frozen=True):
    """The decision on one call. `id` stands for its receipt: later decisions name it as where a value came from. `endorsed`:
    all that
    steers the call comes from the user's words or a trusted source. `observed`: what would have been decided without observe
    mode."""

    verdict: Word
    reasons: tuple[Reason, ...]
    remedies: tuple[Remedy, ...]
    id: str
    endorsed: bool
    observed: Word

    @property
    def allowed(self) -> bool:
        """Whether the call may run unasked."""
        return self.verdict is Word.ALLOW


class _Tool:
    """A tool made ready: its decisions, roles and intent."""

    __slots__ = ("intent", "labels", "name", "roles", "server", "table")

    def __init__(self, server: str, name: str, labels: ToolLabels, reader: Reader, policy: Compiled) -> None:
        self.server, self.name, self.labels = server, name, labels
        self.intent: ToolIntent = reader.tool(name, labels.title)
        self.roles = ArgumentRoles(labels.roles, labels.schema, reader.lexicon)
        # The program's labels are its own word, so its tools are as trusted as it says.
        facts = ToolFacts(server or "guard", name, labels.profile, Trust.TRUSTED, labels.title or None)
        self.table = Table(policy.row(facts), Subject(facts, labels.claims), policy.policy.mode)


class _Shared:
    """What the conversations of one program have in common."""

    __slots__ = ("labels", "limit", "memory", "policy", "reader", "steps", "tools")

    def __init__(self, labels: dict[str, ToolLabels], policy: Compiled, reader: Reader, limit: int) -> None:
        self.labels, self.policy, self.reader, self.limit = labels, policy, reader, limit
        self.memory = Memory()
        self.tools: dict[str, _Tool] = {}
        self.steps = 0

    def tool(self, name: str) -> _Tool:
        found = self.tools.get(name)
        if found is None:
            server, bare = split(name)
            labels = self.labels.get(name) or self.labels.get(bare) or ToolLabels(bare)
            found = _Tool(server, bare, labels, self.reader, self.policy)
            if len(self.tools) < 10_000:
                self.tools[name] = found
        return found

    def step(self) -> str:
        self.steps += 1
        return str(self.steps)


def split(name: str) -> tuple[str, str]:
    """Server and tool of a name; the server is empty where the name has none."""
    if name.startswith("mcp__"):
        server, mark, tool = name[5:].partition("__")
        return (server, tool) if mark else ("", name)
    server, mark, tool = name.rpartition("/")
    return (server, tool) if mark else ("", name)


class Guard:
    """Decides on calls of tools in one conversation.

    `labels`: a mapping from tool to what is known of it, or a pack (`labels.read`); a tool without labels is taken for the
    worst. `preset`:
    one of earnest's presets, or `none`. `policy`: a whole policy instead of it. `memory_bytes`: what values of one origin
    may take in memory; past it everything else counts as untrusted. Raises `EarnestError` for labels or a preset that mean
    nothing.
    """

    def __init__(
        self,
        labels: object = None,
        *,
        preset: str = "balanced",
        policy: Policy | None = None,
        lexicon: Lexicon | None = None,
        memory_bytes: int = LIMIT,
        _shared: _Shared | None = None,
    ) -> None:
        if _shared is None:
            said = policy if policy is not None else policies.compose((), preset).policy
            reader = Reader(lexicon or shipped_lexicon.shipped())
            _shared = _Shared(read(labels), Compiled(said), reader, memory_bytes)
        self._shared = _shared
        self._flow = FlowState()
        self._flow.open(_KEY, minted=True)
        self._ledger = Ledger(_shared.reader, _shared.limit)
        self._pending: dict[str, tuple[str, Any, Integrity | None]] = {}
        self._in_flight: dict[str, int] = {}

    def conversation(self) -> Guard:
        """Another conversation of the same program: same labels, same policy; it shares what stores remember, and no value."""
        return Guard(_shared=self._shared)

    def program(self) -> Guard:
        """A program of its own with the same labels and policy: it shares no conversation and no memory of stores with this
        one."""
        shared = self._shared
        fresh = _Shared(shared.labels, shared.policy, shared.reader, shared.limit)
        fresh.tools = shared.tools  # what is made ready of a tool depends on nothing that was seen
        return Guard(_shared=fresh)

    def user(self, text: str) -> None:
        """A prompt of the user. What was pasted, quoted or put in by the host is not taken for their words."""
        step = self._shared.step()
        if self._ledger.user(text, step):
            self._flow.raise_(_KEY, UNTRUSTED, Cause(step, "user", "pasted text"))

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decided:
        """The decision on a call. Has no effect but that an allowed call counts as in flight."""
        known = self._shared.tool(tool)
        given: Any = {} if arguments is None else arguments
        profile = known.labels.profile
        bits = self._flow.effective(_KEY)
        for flying in self._in_flight.values():
            bits |= flying
        integrity: Integrity | None = None
        if not profile.read_only.value or profile.can_exfiltrate.value:
            call = Call(
                known.server,
                known.name,
                known.intent,
                known.roles,
                given,
                read_only=profile.read_only.value,
                destructive=profile.destructive.value,
                open_world=profile.open_world.value,
                can_exfiltrate=profile.can_exfiltrate.value,
                undoable=known.labels.undoable,
            )
            integrity = judge(call, self._ledger, self._shared.reader, untrusted=bool(bits & UNTRUSTED))
            if integrity.endorsed:
                bits |= ENDORSED
        voice = integrity.verdict if integrity is not None else None
        decision = known.table.at(bits, lambda: given, integrity=voice)
        if decision.observed.value:
            causes = self._flow.causes(_KEY)
            decision = known.table.at(bits, lambda: given, integrity=voice, causes=causes)
        step = self._shared.step()
        answer = _WORDS[decision.verdict]
        self._pending[tool] = (step, given, integrity)
        if answer is Word.ALLOW:
            flying = _sources(known)
            if flying:
                self._in_flight[tool] = flying
        return Decided(answer, decision.reasons, decision.remedies, step, bool(bits & ENDORSED), _WORDS[decision.observed])

    def observe(self, tool: str, result: Any, arguments: Mapping[str, Any] | None = None) -> None:
        """What a call returned, an error too: JSON data, an MCP result, or text. `arguments`: if not those of the tool's
        last decision."""
        known = self._shared.tool(tool)
        step, given, integrity = self._pending.pop(tool, ("", None, None))
        self._in_flight.pop(tool, None)
        step = step or self._shared.step()
        if arguments is not None:
            given = arguments
        profile = known.labels.profile
        marked = self._marked(known, given, result)
        trusted = not profile.sees_untrusted.value and marked is None
        private = profile.reads_private.value
        if private:
            self._raise(PRIVATE, step, known, profile.reads_private.basis.value)
        if not trusted and not self._ledger.harmless(result):
            self._raise(UNTRUSTED, step, known, f"stored by {marked}" if marked else profile.sees_untrusted.basis.value)
        self._ledger.result(result, step, known.server, known.name, trusted=trusted, private=private, arguments=given)
        if not profile.read_only.value:
            self._remember(known, given, result, integrity, step)

    def _raise(self, bit: int, step: str, known: _Tool, basis: str) -> None:
        self._flow.raise_(_KEY, bit, Cause(step, known.server or "guard", known.name, basis))

    def _marked(self, known: _Tool, arguments: Any, result: Any) -> str | None:
        if known.labels.profile.sees_untrusted.value:
            return None
        named = objects(known.roles, arguments, result)
        return self._shared.memory.marked(known.server, named, texts(result))

    def _remember(self, known: _Tool, arguments: Any, result: Any, integrity: Integrity | None, step: str) -> None:
        """A write whose values nobody spoke for marks what it wrote to."""
        if not self._flow.effective(_KEY) & UNTRUSTED:
            return
        stored = unspoken(self._ledger, arguments)
        if stored:
            self._shared.memory.stored(known.server, objects(known.roles, arguments, result), stored, step)


def _sources(known: _Tool) -> int:
    profile = known.labels.profile
    return (PRIVATE if profile.reads_private.value else 0) | (UNTRUSTED if profile.sees_untrusted.value else 0)
