"""What earnest answers a host's hook, and what it learns from it.

Theory. A hook's session is a conversation below its host process: announced by the hook, so it starts clean; but one whose past
is not known (resumed from somewhere, or first heard of in its middle) has seen everything, and one that goes on in another
process takes its labels along. Subagents speak in their parent's session, so they need no key of their own.

Labels rise before a tool is used, whatever the host does with the answer, and are refined after it; a lost event never cleans.
A call of the gateway's is left to the gateway: only if a session of this very host has the tool from it, and only for as long
as the gateway turns out to have had such calls, with these arguments, from this host. A name alone proves nothing: a server of
the same name that earnest does not stand before is found out after its first call, and asked about from then on.
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
from earnest.hook.claude_code import BEFORE, EVENTS, Told, answer, read
from earnest.pdp.catalog import Server
from earnest.pdp.conversations import session_part
from earnest.pdp.facts import Judgement, Question
from earnest.pdp.hooked import Answer, Event, Parts
from earnest.protocol.labels import Facts
from earnest.protocol.outcomes import Outcome

K = TypeVar("K")
V = TypeVar("V")

HOST: Final = builtin.CLAUDE_CODE
MOST: Final = 4000
"""Calls under way, folders and names that are remembered; the oldest is forgotten first."""
_RESULT: Final = Outcome(False, "complete", Facts(), Facts())
_NOTHING: Final = Answer()


def hooks(parts: Parts) -> Callable[[Event], Answer]:
    """Makes what answers hooks (`hooked.Hooks`)."""
    return Hook(parts).answer


class Hook:
    """All hooks of one daemon. One thread."""

    def __init__(self, parts: Parts) -> None:
        self._engine = parts.engine
        self._records = parts.records
        self._served = parts.served
        self._log = parts.log
        self._builtin = builtin.server(HOST)
        self._servers: dict[str, Server] = {}
        self._folders: dict[Key, str] = {}
        self._flying: dict[tuple[Key, str], Judgement] = {}
        self._gateways: dict[tuple[Key, str], bool] = {}
        """By host and name of a server: whether its calls were found to come to the gateway."""

    def answer(self, event: Event) -> Answer:
        """One event. Never raises: what goes wrong is a refusal where something is decided."""
        named = event.argv[1] if len(event.argv) > 1 else ""
        if len(event.argv) != 2 or event.argv[0] != HOST:
            return Answer(b"", b"earnest: E1501: hook wants a host and an event: claude-code PreToolUse\n", 2)
        if named not in EVENTS:
            return _NOTHING
        try:
            if event.too_long:
                raise EarnestError("E1521", "the event is longer than 16 MiB")
            told = read(named, event.body)
            found = self._answer(event, told)
            self._records.flush()
            return found
        except EarnestError as error:
            return self._failed(named, f"{error.code}: {error.message}")
        except Exception as error:
            self._log(f"a hook failed: {type(error).__name__}: {error}")
            return self._failed(named, "E1506: earnest made a mistake; see daemon.log")

    @staticmethod
    def _failed(named: str, why: str) -> Answer:
        if named == BEFORE:
            return Answer(answer(Verdict.DENY, f"earnest: {why}. This call counts as refused."))
        return Answer(b"", f"earnest: {visible(why)}\n".encode("utf-8", "backslashreplace"), 1)

    def _answer(self, event: Event, told: Told) -> Answer:
        key = self._conversation(event, told)
        if told.event == BEFORE:
            return self._before(event.host, key, told)
        if told.event == "UserPromptSubmit":
            self._prompt(event, key, told)
        elif told.event in ("PostToolUse", "PostToolUseFailure"):
            self._after(event.host, key, told)
        elif told.event == "SubagentStop" and told.last:
            self._engine.flows.overheard(key, told.last, Source("", HOST, "Task"))
        return _NOTHING

    # conversations

    def _conversation(self, event: Event, told: Told) -> Key:
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
            fresh = told.event == "SessionStart" and told.source in ("startup", "clear")
            if not before and not fresh:
                bits = PRIVATE | UNTRUSTED
            conversations.open(key, minted=True)
            conversations.keep(key)
            if bits:
                why = "goes on from another process" if before else "what this session saw before is not known"
                receipt = self._records.note("conversation-resumed", why, conversation=key)
                conversations.raise_(key, bits, Cause(receipt, HOST, "session"))
        if key not in self._folders and told.cwd and told.event in ("SessionStart", "UserPromptSubmit"):
            _bounded(self._folders)[key] = told.cwd
        flows.open(key)
        return key

    def _prompt(self, event: Event, key: Key, told: Told) -> None:
        flows = self._engine.flows
        receipt = self._records.note("prompt", "the user's words, as the host's hook told them", conversation=key)
        if event.orphan:
            # Something that left its host behind: nobody's words.
            flows.overheard(key, told.prompt, Source(receipt))
            pasted = True
        else:
            pasted = flows.user(key, told.prompt, receipt)
        if pasted:
            self._engine.conversations.raise_(key, UNTRUSTED, Cause(receipt, HOST, "pasted text"))

    # calls

    def _question(self, host: Key, key: Key, told: Told) -> tuple[Question, str]:
        """The call in the engine's words; the gateway's name of the server where it is one of the gateway's."""
        route, server, tool = "", self._builtin, self._builtin.tools.get(told.tool)
        if told.tool.startswith("mcp__"):
            name, _, bare = told.tool[5:].partition("__")
            found = self._served(host, name, bare) if self._gateways.get((host, name), True) else None
            if found is not None:
                route, server, tool = found
            else:
                server, tool = self._stranger(name), builtin.unknown(bare or told.tool)
        question = Question(
            server=server,
            tool=tool if tool is not None else builtin.unknown(told.tool),
            method="tools/call",
            subject=tool.name if tool is not None else told.tool,
            arguments=told.input,
            client=HOST,
            client_asks=False,
            ask_host=False,
            principal=key[0],
            key=key,
            cwd=told.cwd or None,
            folder=self._folders.get(key, ""),
        )
        return question, route

    def _stranger(self, name: str) -> Server:
        """A server that the host talks to by itself."""
        found = self._servers.get(name)
        if found is None:
            found = _bounded(self._servers)[name] = Server(name or "mcp", f"host:{HOST}/{name}", credentialed=True)
        return found

    def _before(self, host: Key, key: Key, told: Told) -> Answer:
        question, route = self._question(host, key, told)
        judgement = self._engine.judge(question)
        if route and judgement.verdict is not Verdict.DENY:
            self._engine.handoff.announce(host, route, question.tool.name, judgement.arguments_sha256, key)
            name = told.tool[5:].partition("__")[0]
            if self._gateways.get((host, name)):
                return Answer(answer(Verdict.ALLOW, "earnest's gateway decides on this call itself"))
            return _NOTHING
        verdict = judgement.verdict
        word = ("allow", "ask", "deny")[verdict]
        self._records.decided(judgement, word)  # type: ignore[arg-type]
        if verdict is Verdict.DENY:
            self._records.finished(judgement, "denied")
            return Answer(answer(verdict, _denied(judgement)))
        # Whether a person says yes to an ask is not told; so the labels rise as if they had.
        self._engine.admit(judgement)
        _bounded(self._flying)[key, _use(told)] = judgement
        return Answer(answer(verdict, _asked(judgement.reasons, judgement) if verdict is Verdict.ASK else "earnest: allowed"))

    def _after(self, host: Key, key: Key, told: Told) -> None:
        judgement = self._flying.pop((key, _use(told)), None)
        if judgement is None:
            question, route = self._question(host, key, told)
            if route and self._came(host, key, told, question, route):
                return
            # Before it was used nobody told of it, or it went past the gateway.
            judgement = self._engine.judge(question)
            self._records.decided(judgement, "allow")
            self._engine.admit(judgement)
        self._engine.observed(judgement, _RESULT, told.response)
        self._records.finished(judgement, "ok" if told.event == "PostToolUse" else "error", "", told.response)

    def _came(self, host: Key, key: Key, told: Told, question: Question, route: str) -> bool:
        """Whether the gateway had a call that a host was to make through it. If not, what it returned is anybody's."""
        name = told.tool[5:].partition("__")[0]
        try:
            digest = canonical.digest(question.arguments)
        except EarnestError:
            digest = ""
        came = self._engine.handoff.settle(host, route, question.tool.name, digest, key)
        _bounded(self._gateways)[host, name] = came and self._gateways.get((host, name), True)
        if not came:
            text = f"{told.tool} was called, and earnest's gateway never had that call: the host reaches this server by itself"
            receipt = self._records.note("hook-not-through-gateway", text, conversation=key, server=name)
            self._engine.conversations.raise_(key, PRIVATE | UNTRUSTED, Cause(receipt, name, question.subject))
        return came


def _use(told: Told) -> str:
    return told.use or f"{told.tool} {told.input.decode('utf-8', 'replace')}"


def _bounded(known: dict[K, V]) -> dict[K, V]:
    while len(known) >= MOST:
        del known[next(iter(known))]
    return known


def _asked(reasons: tuple[Reason, ...], judgement: Judgement) -> str:
    """For the person, in the host's own question."""
    lines = [reason.text for reason in reasons if reason.verdict is Verdict.ASK]
    lines += [f"{remedy.text}: {remedy.command}" if remedy.command else remedy.text for remedy in judgement.remedies[:2]]
    return visible("earnest asks: " + "; ".join(lines) + f" (receipt {judgement.id})")


def _denied(judgement: Judgement) -> str:
    """For the model: that it is denied, and how to go on; why is for the person (law 9)."""
    return (
        f"earnest's policy denies this call. Do not try it again in another way; go on without it, or tell the person. "
        f"They can see why with `earnest receipts show {judgement.id}`."
    )
