"""The bare engine: what a program asks before each call of a tool, without daemon, network or files.

    guard = Guard(labels={"send_mail": {"read_only": False, …, "arg_roles": {"to": "destination"}}, …})
    guard.user("Mail the minutes to ann@example.org")
    await guard.call(send_mail, {"to": "ann@example.org", "body": "…"})

One guard is one conversation. `conversation()` gives another beside it that shares what the stores remember, and nothing else.
A guard is for one thread. Names of tools may carry their server: `server/tool`, `mcp__server__tool`.

`call` (and `call_sync`) keeps the order: `user` for each prompt, `decide` before and `observe` after each call, with whatever
came back. Who keeps it alone: what `decide` allowed counts as in flight until it is observed; after a person's yes to an `ask`
the program runs the call and observes it; a yes is for this one call and changes nothing else. Where calls of one tool run side
by side, `observe` is told the `decision` it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from earnest.config import lexicon as shipped_lexicon
from earnest.config import policy as policies
from earnest.core.compile import Compiled
from earnest.core.decide import Subject, Table
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause, FlowState
from earnest.core.integrity import Call, Integrity, judge
from earnest.core.intent import Lexicon, Reader, ToolIntent
from earnest.core.ledger import RESULT_BYTES, Ledger
from earnest.core.policy import Policy
from earnest.core.profile import Trust
from earnest.core.provenance import LIMIT
from earnest.core.roles import ArgumentRoles
from earnest.core.storage import Memory, objects, texts, unspoken
from earnest.core.vocabulary import ENDORSED, ToolFacts
from earnest.guard import calls
from earnest.guard.decided import Approve, Decided, Word
from earnest.guard.labels import METHODS, Listed, ToolLabels, read
from earnest.guard.plain import TooMuch, Unread, opaque, plain

_KEY: Final = ("guard",)


_WORDS: Final = (Word.ALLOW, Word.ASK, Word.DENY)
_OPEN: Final = 256
"""Decisions without a result that are remembered one by one; of older ones it is taken that they ran and brought the worst."""


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


class _Open(NamedTuple):
    """A decision whose result did not come yet. `flying`: labels its result may set."""

    tool: _Tool
    arguments: Any
    integrity: Integrity | None
    flying: int


class _Shared:
    """What the conversations of one program have in common."""

    __slots__ = ("labels", "limit", "listed", "memory", "policy", "reader", "said", "steps", "tools")

    def __init__(self, labels: dict[str, ToolLabels], policy: Compiled, reader: Reader, limit: int) -> None:
        self.said, self.policy, self.reader, self.limit = labels, policy, reader, limit
        self.labels = dict(labels)
        self.listed: dict[str, Listed] = {}
        self.memory = Memory()
        self.tools: dict[str, _Tool] = {}
        self.steps = 0

    def tool(self, name: str) -> _Tool:
        found = self.tools.get(name)
        if found is None:
            server, bare = split(name)
            labels = self.labels.get(name) or self.labels.get(bare) or METHODS.get(bare) or ToolLabels(bare)
            found = _Tool(server, bare, labels, self.reader, self.policy)
            if len(self.tools) < 10_000:
                self.tools[name] = found
        return found

    def learn(self, name: str, listed: Listed, trust: Trust) -> None:
        first = self.listed.setdefault(name, listed)
        bare = split(name)[1]
        said = self.said.get(name) or self.said.get(bare)
        self.labels[name] = listed.beside(said) if said is not None else listed.labels(trust, first)
        self.tools.pop(name, None)

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


def joined(server: str, tool: str) -> str:
    """The name of a tool with its server, as `split` takes it apart."""
    return f"{server}/{tool}" if server else tool


class Guard:
    """Decides on calls of tools in one conversation.

    `labels`: a mapping from tool to what is known of it, or a pack (`labels.read`); a tool without labels is taken for the
    worst. `preset`: one of earnest's presets, or `none`. `policy`: a whole policy instead of it. `memory_bytes`: what values of
    one origin may take in memory; past it everything else counts as untrusted. `approve`: asks a person about one call, for
    `call`; without it what needs a yes is refused. Raises `EarnestError` for labels or a preset that mean nothing.
    """

    def __init__(
        self,
        labels: object = None,
        *,
        preset: str = "balanced",
        policy: Policy | None = None,
        lexicon: Lexicon | None = None,
        memory_bytes: int = LIMIT,
        approve: Approve | None = None,
        _shared: _Shared | None = None,
    ) -> None:
        if _shared is None:
            said = policy if policy is not None else policies.compose((), preset).policy
            reader = Reader(lexicon or shipped_lexicon.shipped())
            _shared = _Shared(read(labels), Compiled(said), reader, memory_bytes)
        self._shared = _shared
        self._approve = approve
        self._flow = FlowState()
        self._flow.open(_KEY, minted=True)
        self._ledger = Ledger(_shared.reader, _shared.limit)
        self._open: dict[str, _Open] = {}
        self._latest: dict[str, str] = {}

    def conversation(self) -> Guard:
        """Another conversation of the same program: same labels, same policy; it shares what stores remember, and no value."""
        return Guard(approve=self._approve, _shared=self._shared)

    def program(self) -> Guard:
        """A program of its own with the same labels and policy: it shares no conversation and no memory of stores with this
        one."""
        shared = self._shared
        fresh = _Shared(shared.labels, shared.policy, shared.reader, shared.limit)
        fresh.said, fresh.listed, fresh.tools = shared.said, dict(shared.listed), dict(shared.tools)
        return Guard(approve=self._approve, _shared=fresh)

    def user(self, text: str) -> None:
        """A prompt of the user. What was pasted, quoted or put in by the host is not taken for their words."""
        step = self._shared.step()
        if self._ledger.user(text, step):
            self._flow.raise_(_KEY, UNTRUSTED, Cause(step, "user", "pasted text"))

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decided:
        """The decision on a call. Has no effect but that an allowed call counts as in flight. Arguments that are no JSON are
        read as `plain` reads them."""
        known = self._shared.tool(tool)
        # A copy: what is run may change the arguments it is given, and what it wrote is looked up in them afterwards.
        given: Any = {} if arguments is None else plain(arguments, Unread)
        profile = known.labels.profile
        bits = self._flow.effective(_KEY)
        for pending in self._open.values():
            bits |= pending.flying
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
        self._open[step] = _Open(known, given, integrity, _sources(known) if answer is Word.ALLOW else 0)
        self._latest[tool] = step
        while len(self._open) > _OPEN:
            oldest = next(iter(self._open))
            gone = self._open.pop(oldest)
            for bit in (PRIVATE, UNTRUSTED):
                if gone.flying & bit:
                    self._raise(bit, oldest, gone.tool, "never observed")
        return Decided(answer, decision.reasons, decision.remedies, step, bool(bits & ENDORSED), _WORDS[decision.observed])

    def observe(
        self, tool: str, result: Any, arguments: Mapping[str, Any] | None = None, *, decision: Decided | None = None
    ) -> None:
        """What a call returned, an error too: JSON data, an MCP result, text, or what `plain` can read. What it cannot read (a
        generator, a stream), and what holds more than 256 KiB, counts as more than can be compared. `arguments`: if not those
        that were decided on. `decision`: the decision on this call; without it, the tool's last."""
        known = self._shared.tool(tool)
        unread: list[Any] = []

        def noted(value: Any) -> str:
            unread.append(value)
            return opaque(value)

        try:
            result, whole = plain(result, noted, RESULT_BYTES), True
        except TooMuch:
            result, whole = None, False
        step = decision.id if decision is not None else self._latest.pop(tool, "")
        pending = self._open.pop(step, None)
        given, integrity = (pending.arguments, pending.integrity) if pending is not None else (None, None)
        step = step or self._shared.step()
        if arguments is not None:
            given = plain(arguments)
        profile = known.labels.profile
        marked = self._marked(known, given, result) if whole else self._could_be_marked(known)
        trusted = not profile.sees_untrusted.value and marked is None
        private = profile.reads_private.value
        if private:
            self._raise(PRIVATE, step, known, profile.reads_private.basis.value)
        if not trusted and not (whole and self._ledger.harmless(result)):
            self._raise(UNTRUSTED, step, known, f"stored by {marked}" if marked else profile.sees_untrusted.basis.value)
        if whole:
            self._ledger.result(result, step, known.server, known.name, trusted=trusted, private=private, arguments=given)
        else:
            self._ledger.overflowed()
        if unread and not trusted:
            self._ledger.values.untrusted.full = True
        if not profile.read_only.value:
            self._remember(known, given, result, integrity, step)

    def agreed(self, decision: Decided) -> None:
        """A person said yes to an ask, and the call is made now: until it is observed it counts as in flight."""
        pending = self._open.get(decision.id)
        if pending is not None:
            self._open[decision.id] = pending._replace(flying=_sources(pending.tool))

    def forget(self, decision: Decided) -> None:
        """A call that was decided on and is not made."""
        self._open.pop(decision.id, None)

    async def call(
        self, tool: calls.Tool, arguments: Mapping[str, Any] | None = None, *, run: Callable[[], Any] | None = None
    ) -> Any:
        """Make a call if it may be made, and return what it returned: decided on, asked about where it has to be (`approve`),
        run, observed. `tool`: a function, called with `arguments` as keywords, or a name; `run` then makes the call. What is
        awaitable is awaited. Raises `Refused` where it may not be made, and what the call raises."""
        return await calls.call(self, tool, {} if arguments is None else arguments, run, self._approve)

    def call_sync(
        self, tool: calls.Tool, arguments: Mapping[str, Any] | None = None, *, run: Callable[[], Any] | None = None
    ) -> Any:
        """`call` for programs without an event loop. Raises E1004 for a coroutine function, as tool or as `approve`."""
        return calls.call_sync(self, tool, {} if arguments is None else arguments, run, self._approve)

    def learn(self, tools: Iterable[Any], *, server: str = "", trust: str = "untrusted") -> None:
        """What a server lists of its tools: schemas for those that the program labelled, and labels for the others: hints that
        raise from anyone, hints that lower if the program says that it trusts the server (`trust="trusted"`). A definition that
        changed since it was first learned lowers nothing any more. `tools`: objects of `tools/list`, as JSON data or models."""
        for definition in tools:
            listed = Listed.of(plain(definition))
            self._shared.learn(joined(server, listed.name), listed, Trust(trust))

    def _raise(self, bit: int, step: str, known: _Tool, basis: str) -> None:
        self._flow.raise_(_KEY, bit, Cause(step, known.server or "guard", known.name, basis))

    def _marked(self, known: _Tool, arguments: Any, result: Any) -> str | None:
        if known.labels.profile.sees_untrusted.value:
            return None
        named = objects(known.roles, arguments, result)
        return self._shared.memory.marked(known.server, named, texts(result))

    def _could_be_marked(self, known: _Tool) -> str | None:
        return "a call unknown" if self._shared.memory.speaks(known.server) else None

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
