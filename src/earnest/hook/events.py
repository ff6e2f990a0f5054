"""What earnest answers a host's hook, and what it learns from it.

Theory. A hook's session is a conversation below its host process: announced by the hook, so it starts clean; but one whose past
is not known (resumed from somewhere, or first heard of in its middle) has seen everything, and one that goes on in another
process takes its labels along. Subagents speak in their parent's session, so they need no key of their own.

Labels rise before a tool is used, whatever the host does with the answer, and are refined after it; a lost event never cleans.
A call of the gateway's is left to the gateway: only if a session of this very host has the tool from it, and only for as long
as the gateway turns out to have had such calls, with these arguments, from this host. A name alone proves nothing: a server of
the same name that earnest does not stand before is found out after its first call, and asked about from then on.

Where a host cannot put a question to its person, or cannot be relied on to, an ask is a denial that says so, and the question
waits in earnest's own queue: a yes there serves the same call when it comes again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause, Key
from earnest.core.provenance import Source
from earnest.core.verdict import Reason, Verdict
from earnest.core.visible import visible
from earnest.hook import builtin
from earnest.hook.hosts import HOSTS
from earnest.hook.wire import Told, Wire
from earnest.pdp.catalog import Server
from earnest.pdp.conversations import session_part
from earnest.pdp.facts import Judgement, Question
from earnest.pdp.hooked import Answer, Event, Parts
from earnest.protocol.labels import Facts
from earnest.protocol.outcomes import Outcome

K = TypeVar("K")
V = TypeVar("V")

MOST: Final = 4000
"""Calls under way, folders and names that are remembered; the oldest is forgotten first."""
_RESULT: Final = Outcome(False, "complete", Facts(), Facts())


def hooks(parts: Parts) -> Callable[[Event], Answer]:
    """Makes what answers hooks (`hooked.Hooks`)."""
    return Hook(parts).answer


class Hook:
    """All hooks of one daemon. One thread."""

    def __init__(self, parts: Parts) -> None:
        self._engine = parts.engine
        self._records = parts.records
        self._parts = parts
        self._builtin: dict[str, Server] = {}
        self._servers: dict[tuple[str, str], Server] = {}
        self._folders: dict[Key, str] = {}
        self._flying: dict[tuple[Key, str], Judgement] = {}
        self._gateways: dict[tuple[Key, str], bool] = {}
        """By host and name of a server: whether its calls were found to come to the gateway."""

    def answer(self, event: Event) -> Answer:
        """One event. Never raises: what goes wrong is a refusal where something is decided."""
        host, named = (*event.argv, "", "")[:2]
        wire = HOSTS.get(host)
        if len(event.argv) != 2 or wire is None:
            known = ", ".join(HOSTS)
            return Answer(b"", f"earnest: E1501: hook wants a host ({known}) and an event of it\n".encode(), 2)
        if named not in wire.events:
            return Answer()
        try:
            if event.too_long:
                raise EarnestError("E1521", "the event is longer than 16 MiB")
            told = wire.read(named, event.body)
            self._parts.unheard(self._missed)
            found = self._answer(wire, event, told)
            self._records.flush()
            return found
        except EarnestError as error:
            return self._failed(wire, named, f"{error.code}: {error.message}")
        except Exception as error:
            self._parts.log(f"a hook failed: {type(error).__name__}: {error}")
            return self._failed(wire, named, "E1506: earnest made a mistake; see daemon.log")

    @staticmethod
    def _failed(wire: Wire, named: str, why: str) -> Answer:
        if named in wire.deciding:
            return wire.decided(named, Verdict.DENY, f"earnest: {why}. This call counts as refused.")
        return Answer(b"", f"earnest: {visible(why)}\n".encode("utf-8", "backslashreplace"), 1)

    def _answer(self, wire: Wire, event: Event, told: Told) -> Answer:
        key = self._conversation(wire, event, told)
        if told.kind == "before":
            return self._before(wire, event, key, told)
        if told.kind == "prompt":
            self._prompt(wire, event, key, told)
        elif told.kind in ("after", "failed"):
            self._after(wire, event.host, key, told)
        elif told.kind == "subagent" and told.last:
            self._engine.flows.overheard(key, told.last, Source("", wire.name, "Task"))
        return wire.silent(told.event)

    # conversations

    def _conversation(self, wire: Wire, event: Event, told: Told) -> Key:
        """The key of the session, opened with what it has to start with."""
        conversations, flows = self._engine.conversations, self._engine.flows
        part = session_part(told.session)
        key = (*event.host, part)
        if key not in conversations:
            known = conversations.keys()
            before = [other for other in known if other[0] == key[0] and other[-1] == part]
            bits = 0
            for other in before:
                bits |= conversations.labels(other)
                flows.carry(other, key)
            fresh = told.kind == "start" and told.fresh
            if not before and not fresh:
                bits = PRIVATE | UNTRUSTED
            conversations.open(key, minted=True)
            conversations.keep(key)
            if bits:
                why = "goes on from another process" if before else "what this session saw before is not known"
                receipt = self._records.note("conversation-resumed", why, conversation=key)
                conversations.raise_(key, bits, Cause(receipt, wire.name, "session"))
        if key not in self._folders and told.cwd and told.kind in ("start", "prompt"):
            _bounded(self._folders)[key] = told.cwd
        flows.open(key)
        return key

    def _missed(self, session: str) -> None:
        """A session read something while there was no daemon to hear of it."""
        part = session_part(session)
        for key in tuple(self._engine.conversations.keys()):
            if key[-1] == part:
                why = "something was read while no daemon was there to hear of it"
                receipt = self._records.note("hook-unheard", why, conversation=key)
                self._engine.conversations.raise_(key, PRIVATE | UNTRUSTED, Cause(receipt, "hook", "unheard"))
                self._engine.flows.open(key).values.untrusted.full = True

    def _prompt(self, wire: Wire, event: Event, key: Key, told: Told) -> None:
        flows = self._engine.flows
        receipt = self._records.note("prompt", "the user's words, as the host's hook told them", conversation=key)
        if event.orphan:
            # Something that left its host behind: nobody's words.
            flows.overheard(key, told.prompt, Source(receipt))
            pasted = True
        else:
            pasted = flows.user(key, told.prompt, receipt)
        if pasted:
            self._engine.conversations.raise_(key, UNTRUSTED, Cause(receipt, wire.name, "pasted text"))
        if told.attached:
            self._engine.conversations.raise_(key, PRIVATE | UNTRUSTED, Cause(receipt, wire.name, "attached files"))

    # calls

    def _question(self, wire: Wire, host: Key, key: Key, told: Told) -> tuple[Question, str]:
        """The call in the engine's words; the gateway's name of the server where it is one of the gateway's."""
        route, server = "", self._own(wire)
        tool = server.tools.get(told.tool)
        if told.server:
            found = self._parts.served(host, told.server, told.tool) if self._gateways.get((host, told.server), True) else None
            if found is not None:
                route, server, tool = found
            else:
                server, tool = self._stranger(wire, told.server), builtin.unknown(told.tool)
        question = Question(
            server=server,
            tool=tool if tool is not None else builtin.unknown(told.tool),
            method="tools/call",
            subject=tool.name if tool is not None else told.tool,
            arguments=told.input,
            client=wire.name,
            client_asks=False,
            ask_host=wire.asks == "operator" and told.asks and self._parts.asks_itself(wire.name),
            principal=key[0],
            key=key,
            cwd=told.cwd or None,
            folder=self._folders.get(key, ""),
        )
        return question, route

    def _own(self, wire: Wire) -> Server:
        """The host's own tools."""
        found = self._builtin.get(wire.name)
        if found is None:
            found = self._builtin[wire.name] = builtin.server(wire.name)
        return found

    def _stranger(self, wire: Wire, name: str) -> Server:
        """A server that the host talks to by itself."""
        found = self._servers.get((wire.name, name))
        if found is None:
            made = Server(name, f"host:{wire.name}/{name}", credentialed=True)
            found = _bounded(self._servers)[wire.name, name] = made
        return found

    def _before(self, wire: Wire, event: Event, key: Key, told: Told) -> Answer:
        host = event.host
        question, route = self._question(wire, host, key, told)
        judgement = self._engine.judge(question)
        verdict = judgement.verdict
        if told.glance and verdict is not Verdict.DENY:
            return wire.silent(told.event)
        if route and verdict is not Verdict.DENY:
            self._engine.handoff.announce(host, route, question.tool.name, judgement.arguments_sha256, key)
            if self._gateways.get((host, told.server)):
                return wire.decided(told.event, Verdict.ALLOW, "earnest's gateway decides on this call itself")
            return wire.silent(told.event)
        asks_here = (wire.asks == "host" and told.asks) or judgement.host_may_ask
        if verdict is Verdict.ASK and not asks_here:
            return self._ask_elsewhere(wire, key, told, judgement)
        word = ("allow", "ask", "deny")[verdict]
        self._records.decided(judgement, word)  # type: ignore[arg-type]
        if verdict is Verdict.DENY:
            self._records.finished(judgement, "denied")
            return wire.decided(told.event, verdict, _denied(judgement))
        # Whether a person says yes to an ask is not told; so the labels rise as if they had.
        self._goes_on(key, told, judgement)
        said = _asked(judgement.reasons, judgement) if verdict is Verdict.ASK else "earnest: allowed"
        return wire.decided(told.event, verdict, said)

    def _goes_on(self, key: Key, told: Told, judgement: Judgement) -> None:
        self._engine.admit(judgement)
        if told.read:
            self._engine.observed(judgement, _RESULT, told.response)
            self._records.finished(judgement, "ok", "", told.response)
        else:
            _bounded(self._flying)[key, _use(told)] = judgement

    def _ask_elsewhere(self, wire: Wire, key: Key, told: Told, judgement: Judgement) -> Answer:
        """A person is asked in earnest's queue; until they have answered, the call is refused and may be tried again."""
        asked = self._parts.asked(judgement)
        if asked == "yes":
            self._records.decided(judgement, "allow")
            self._goes_on(key, told, judgement)
            return wire.decided(told.event, Verdict.ALLOW, "earnest: a person has approved this call")
        self._records.decided(judgement, "ask")
        self._records.finished(judgement, "waiting" if asked else "denied")
        return wire.decided(told.event, Verdict.DENY, _waiting(judgement, asked) if asked else _denied(judgement))

    def _after(self, wire: Wire, host: Key, key: Key, told: Told) -> None:
        judgement = self._flying.pop((key, _use(told)), None)
        if judgement is None:
            question, route = self._question(wire, host, key, told)
            if route and self._came(host, key, told, question, route):
                return
            # Before it was used nobody told of it, or it went past the gateway.
            judgement = self._engine.judge(question)
            self._records.decided(judgement, "allow")
            self._engine.admit(judgement)
        self._engine.observed(judgement, _RESULT, told.response)
        self._records.finished(judgement, "error" if told.kind == "failed" else "ok", "", told.response)

    def _came(self, host: Key, key: Key, told: Told, question: Question, route: str) -> bool:
        """Whether the gateway had a call that a host was to make through it. If not, what it returned is anybody's."""
        try:
            digest = canonical.digest(question.arguments)
        except EarnestError:
            digest = ""
        came = self._engine.handoff.settle(host, route, question.tool.name, digest, key)
        known = self._gateways.get((host, told.server), True)
        _bounded(self._gateways)[host, told.server] = came and known
        if not came:
            text = f"{told.tool} was called, and earnest's gateway never had that call: the host reaches this server by itself"
            receipt = self._records.note("hook-not-through-gateway", text, conversation=key, server=told.server)
            self._engine.conversations.raise_(key, PRIVATE | UNTRUSTED, Cause(receipt, told.server, question.subject))
        return came


def _use(told: Told) -> str:
    return told.use or f"{told.server} {told.tool} {told.input.decode('utf-8', 'replace')}"


def _bounded(known: dict[K, V]) -> dict[K, V]:
    while len(known) >= MOST:
        del known[next(iter(known))]
    return known


def _asked(reasons: tuple[Reason, ...], judgement: Judgement) -> str:
    """For the person, in the host's own question."""
    lines = [reason.text for reason in reasons if reason.verdict is Verdict.ASK]
    lines += [f"{remedy.text}: {remedy.command}" if remedy.command else remedy.text for remedy in judgement.remedies[:2]]
    return visible("earnest asks: " + "; ".join(lines) + f" (receipt {judgement.id})")


def _waiting(judgement: Judgement, approval: str) -> str:
    """For the model, and the person who reads along: who is asked where, and how to go on."""
    return (
        f"earnest: this call waits for a person, who is asked in `earnest approvals` (as {approval}). Do not try it in another "
        f"way; go on without it, or retry this same call once they have said yes (receipt {judgement.id})."
    )


def _denied(judgement: Judgement) -> str:
    """For the model: that it is denied, and how to go on; why is for the person (law 9)."""
    return (
        f"earnest's policy denies this call. Do not try it again in another way; go on without it, or tell the person. "
        f"They can see why with `earnest receipts show {judgement.id}`."
    )
