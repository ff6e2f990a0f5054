"""One call on its way: from a client's request to the answer it gets.

The states, and what moves between them:

    begun ──(link and list ready)──> judged ──allow──> queued ──(decision record written)──> sent ──(answer)──> done
                                        │                 ▲
                                        ├──ask──> held ───┤ a person's yes
                                        │          └──────┼──> done: waiting, declined, expired, withdrawn
                                        └──deny──> done   │
    at any time: cancelled by the client ──> done; the server is lost ──> done, with whether it may have taken effect

`done` is entered once. A call is sent at most once: nothing here repeats it, whatever happened to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key
from earnest.core.profile import Labels
from earnest.core.verdict import Verdict
from earnest.gateway import entering, resolving, sanitizing, spoken
from earnest.gateway.outlet import Outlet
from earnest.gateway.served import Served
from earnest.pdp.catalog import Tool
from earnest.pdp.facts import Judgement, Question
from earnest.protocol import asking, bridge, calls, envelope, eras, headers, labels, outcomes, quoted
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.labels import Facts
from earnest.protocol.methods import Method
from earnest.upstream.base import Exchange, Link, Reply

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.previewing import Preview
    from earnest.gateway.session import Session

REFUSED: Final = -31001
WAITING: Final = -31002
UNAVAILABLE: Final = -31003


class Relay:
    """One call of one client. The handler of its exchange with the server (see `ExchangeHandler`)."""

    __slots__ = (
        "_exchange", "_link", "answered_form", "answers_judged", "arguments", "asked", "continues", "deadline", "done",
        "forward", "gateway", "given", "hard_deadline", "headers", "judgement", "kept", "members", "meta", "method", "outlet",
        "own", "params", "preview", "progress_token", "request_id", "rounds", "served", "session", "state", "subject", "tool",
        "upstream_answers", "upstream_state",
    )  # fmt: skip

    def __init__(
        self,
        gateway: Gateway,
        session: Session,
        message: Message,
        method: Method,
        outlet: Outlet,
        fields: headers.Lines | None,
        kept: bytes,
        params: dict[str, bytes],
        meta: Mapping[str, bytes],
    ) -> None:
        """`kept`: what the session keeps this request under. `params` and `meta`: the request's as read, never changed."""
        self.gateway = gateway
        self.session = session
        self.request_id = message.id
        self.kept = kept
        self.params = message.params
        self.method = method
        self.outlet = outlet
        self.headers = fields
        self.forward: tuple[tuple[str, str], ...] = ()
        self.state = "begun"
        self.done = False
        self.served: Served | None = None
        self.tool: Tool | None = None
        self.subject = ""
        self.arguments = b""
        self.members = params
        self.given = params
        """The params as the client gave them; `members` name the object as its server does."""
        self.meta = meta
        self.progress_token = meta.get("progressToken", b"")
        self.judgement: Judgement | None = None
        self.asked = ""
        """The approval this call waits for."""
        self.continues = ""
        """The lock of an approved call that this one goes on with (a retry with `inputResponses`)."""
        self.answered_form = False
        """The request carries earnest's own sealed state, and perhaps the answer to its question."""
        self.upstream_state = b""
        """The server's own request state, raw, that earnest's carried."""
        self.upstream_answers = b""
        """The answers to that server's own questions, raw, that earnest's state carried."""
        self.answers_judged = False
        """The answers that this request brings for its server were looked at (see `answers`)."""
        self.own: Labels | None = None
        """What its server says of this very call, once it was asked (see `resolving`)."""
        self.rounds = 0
        """How often its server asked for input (see `rounds`)."""
        self.deadline = 0.0
        self.hard_deadline = 0.0
        self.preview: Preview | None = None
        """What came of running it over a copy first."""
        self._link: Link | None = None
        self._exchange: Exchange | None = None

    @property
    def link(self) -> Link | None:
        """The link it goes out on, once that is known."""
        return self._link

    # begun

    def begin(self) -> None:
        """Find what is called and get it ready. Raises `WireError` for params that are none."""
        self.served, self.subject = self.session.resolve(self.method, self.members)
        if self.session.route.kind != "server":
            # What is judged, asked about and sent is the server's own name; a rule never sees an alias.
            self.members = spoken.own_name(self)
        self.arguments = self._chosen()
        limit = self.gateway.enter(self)
        if limit is not None:
            self.refuse("busy", asking.failed(limit.message, "", self.session.modern), limit.message)
            return
        link = self.gateway.ready(self.session, self.served)
        if link is not None:
            self.judge(link)
        else:
            self.gateway.spawn(self._begin_later())

    async def _begin_later(self) -> None:
        assert self.served is not None
        try:
            link = await self.gateway.prepare(self.session, self.served)
        except EarnestError as error:
            if not self.done:
                self.unavailable(error)
            return
        if not self.done:
            self.judge(link)

    def _chosen(self) -> bytes:
        """What the client chose in this call, as raw JSON: the arguments of a tool, else all of the params but `_meta`."""
        if self.method.kind == "tool":
            return calls.arguments(self.members)
        rest = {name: raw for name, raw in self.members.items() if name not in ("_meta", "inputResponses", "requestState")}
        return canonical.build(rest)

    # judged

    def judge(self, link: Link) -> None:
        """Decide, record the decision, and go where it leads. Whatever fails on the way is answered: no call hangs."""
        self._link = link
        try:
            if self.method.kind == "task":
                self.gateway.tasks.check(self, link)
            self._judge()
        except WireError as error:
            raw = envelope.error(self.request_id, error.rpc_code, error.message, error.data)
            self.finish(raw, "refused", error.message, status=error.http_status)
        except EarnestError as error:
            if not self.done:
                self.unavailable(error)
        except Exception as error:
            self.gateway.loop.call_exception_handler({"message": "a call could not be judged", "exception": error})
            if not self.done:
                self.unavailable(EarnestError("E1506", "earnest made a mistake; the call was not sent"))

    def look_up(self) -> None:
        """Find what is called as the catalog has it now: a definition may have changed while a person was reading."""
        assert self.served is not None
        server = self.served.server
        if self.method.kind == "tool":
            self.tool = server.tools.get(self.subject) or server.unknown(self.subject)
        else:
            made_in = self.gateway.tasks.lane(self.served, self.subject) if self.method.names == "taskId" else None
            self.tool = server.method(self.method.name, self.method.claims, made_in)

    def _judge(self) -> None:
        assert self.served is not None
        self.state = "judged"
        self.look_up()
        if self.headers is not None and self.method.name == "tools/call":
            spoken.check_headers(self)
            if self.done:
                return
        if self._brings_answers() and self._link is not None and self.gateway.answers.begin(self, self._link):
            return  # they are judged first
        if self.own is None and self._link is not None and resolving.begin(self, self._link):
            return  # its server is asked about this very call first
        judgement = self.judgement = self.gateway.engine.judge(self.question())
        if "requestState" in self.members:
            self.gateway.asking.own_state(self)
        if judgement.verdict is Verdict.ASK:
            if self.method.kind == "tool" and self.subject not in self.served.server.tools:
                # No page of the server's list has it, so there is nothing that a person could be shown and say yes to.
                self.gateway.records.decided(judgement, "deny")
                text = f"unknown tool {self.subject[:200]!r}"
                self.refuse("refused", asking.failed(text, judgement.id, self.session.modern), text)
            elif judgement.host_may_ask:
                self.release()
            else:
                self.gateway.asking.ask(self)
        elif judgement.verdict is Verdict.DENY:
            self.gateway.records.decided(judgement, "deny")
            self.refuse("denied", asking.denied(judgement.id, self.session.modern), DENIED_TEXT)
        elif judgement.undoable:
            self.gateway.previews.settle(self)
        else:
            self.release()

    def _brings_answers(self) -> bool:
        brought = "inputResponses" in self.members or "requestState" in self.members
        return brought and self.session.modern and not self.answers_judged

    def question(self) -> Question:
        """The call in the engine's words."""
        assert self.served is not None and self.tool is not None
        client = self.session.client
        return Question(
            server=self.served.server,
            tool=self.tool,
            method=self.method.name,
            subject=self.subject,
            arguments=self.arguments,
            client=client.name,
            client_asks=client.asks_person,
            ask_host=client.ask_host,
            principal=client.principal,
            key=self._key(),
            cwd=self.served.cwd,
            overlay=client.overlay,
            hidden=self.session.hidden(self.served, self.tool),
            hides=partial(self.session.hidden, self.served),
            own=self.own,
            for_real=self.preview is not None and not self.preview.undoable,
            listed=0 if self.method.kind == "tool" else self.served.server.listed_labels(self.subject),
        )

    def _key(self) -> Key:
        """The narrowest key that is known for this call: a hook may have announced it for one session of the host."""
        key = self.session.key_for(self.meta)
        if self.method.kind != "tool" or key != self.session.client.key or self.served is None:
            return key
        return self.gateway.engine.handoff.owner(key, self.served.name, self.subject, self.arguments)

    # queued and sent

    def release(self) -> None:
        """Allowed: the decision is recorded and the labels of the call's own sources are kept; then it waits for the tick's
        write to reach the operating system."""
        judgement = self.judgement
        assert judgement is not None
        self.gateway.records.decided(judgement, "allow")
        try:
            self.gateway.engine.admit(judgement)
        except EarnestError as error:
            self.unavailable(error, "not-sent")
            return
        self.state = "queued"
        entering.begin(self)

    def send(self) -> None:
        """The decision record is with the operating system: the call goes out."""
        if self.done:
            return
        if self.preview is not None and self.preview.real:
            self.gateway.previews.commit(self)
            return
        link = self._link
        assert link is not None and self.served is not None
        if eras.LOG_LEVEL in self.meta and self.gateway.levels.before(self, link):
            return
        now = self.gateway.now()
        self.deadline = now + self.served.timeout
        self.hard_deadline = now + max(self.gateway.settings.limits.call_hard_timeout_s, self.served.timeout)
        self.state = "sent"
        if self.method.kind == "subscription" and link.hello.modern:
            self.gateway.watches.legacy(self, link)
            return
        id = link.reserve()
        try:
            params = spoken.params(self, link, id)
            fields = self.session.upstream_headers(self, link)
        except WireError as error:
            self.finish(envelope.error(self.request_id, error.rpc_code, error.message, error.data), "refused", error.message)
            return
        except EarnestError as error:
            self.unavailable(error, "refused")
            return
        named = self.subject if self.method.mcp_name else ""
        self._exchange = link.call(self.method.name, params, self, id=id, headers=fields, named=named)

    def sent_before(self, link: Link, exchange: Exchange | None, elapsed: float) -> None:
        """It was judged, and sent if there is an exchange, along a track (`tracks`): from here on it is a call like others.
        `elapsed`: seconds since it was judged."""
        assert self.served is not None
        self._link, self._exchange = link, exchange
        self.state = "sent" if exchange is not None else "queued"
        began = self.gateway.now() - elapsed
        self.deadline = began + self.served.timeout
        self.hard_deadline = began + max(self.gateway.settings.limits.call_hard_timeout_s, self.served.timeout)

    # what the server says (ExchangeHandler)

    def message(self, message: Message) -> None:
        """A notification that belongs to this call: progress under the client's own token, or a log line."""
        if self.done or (self.tool is not None and self.tool.words.sanitizer is not None):
            return  # what a server says on the way is free text
        if message.method == "notifications/progress":
            if not self.progress_token or self._link is None:
                return
            self.deadline = min(self.gateway.now() + self._timeout(), self.hard_deadline)
            params = calls.with_member(message.params, "progressToken", self.progress_token)
        else:
            if self.session.modern and not self.gateway.levels.hears(self, message.params):
                return
            params = message.params
        raw = bridge.notification_to(self.session.modern, message.method, params)
        if raw is not None:
            self.outlet.send(raw)

    def request(self, message: Message) -> bool:
        """A request of the server inside this call (legacy era)."""
        return not self.done and self.session.server_request(self, message)

    def reply(self, reply: Reply) -> None:
        """The server answered: label it, record it, pass it on."""
        if self.done:
            return
        judgement, link = self.judgement, self._link
        assert judgement is not None and link is not None
        failed = bool(reply.error)
        outcome = _ERROR if failed else outcomes.outcome(reply.result)
        try:
            left = sanitizing.sanitized(self, outcome)
            if left:
                reply = Reply(result=left)
                private = outcome.restrict.private
                outcome = msgspec.structs.replace(outcomes.outcome(left), restrict=Facts(private=private))
            self.gateway.engine.observed(judgement, outcome, reply.error or reply.result)
        except EarnestError as error:
            self.unavailable(error, "withheld")
            return
        if self.gateway.rounds.begin(self, link, outcome) or self.gateway.tasks.follow(self, link, outcome):
            return
        try:
            answer, word, status = self._answer(link, judgement, reply, outcome)
        except WireError as error:
            answer, word = envelope.error(self.request_id, error.rpc_code, error.message, error.data), "malformed"
            status = error.http_status
        self.finish(answer, word, "", reply.error or reply.result, status)

    def _answer(self, link: Link, judgement: Judgement, reply: Reply, outcome: outcomes.Outcome) -> tuple[bytes, str, int]:
        """The client's answer, the word for the receipt and the status over HTTP. Raises `WireError` for what cannot be said to
        this client."""
        crossing = link.hello.modern != self.session.modern
        if reply.error:
            raw = envelope.whole_error(reply.error)
            raw = bridge.error_to(self.session.modern, raw, self.method) if crossing else raw
            return envelope.error_raw(self.request_id, raw), "protocol-error", eras.http_status(envelope.failure(raw).code)
        if outcome.malformed:
            # Two readers could take it for two different results, so neither gets it (law 8).
            why = "the server's result cannot be read in one way"
            raise WireError(envelope.INTERNAL_ERROR, why, code="E1311", http_status=200)
        result = reply.result
        if crossing:
            result = bridge.result_to(self.session.modern, self.method, result)
        elif outcome.result_type == "input_required" and judgement.approval:
            result = self.gateway.asking.wrap_state(self, result, outcome)
        if outcome.input_requests and self.served is not None:
            result = quoted.questions(self.served.name, result)
        if outcome.task_id and self.served is not None:
            self.gateway.names.task(self.session, self.served, outcome.task_id)
            if outcome.result_type == "task":
                self.gateway.tasks.made(self.session, self.served, outcome.task_id, judgement.lane)
        elif self.method.name == "tasks/list" and self.served is not None:
            result = self.gateway.tasks.listed(self.session, self.served, result)
        word = "error" if outcome.is_error else "ok" if outcome.result_type == "complete" else outcome.result_type
        if outcome.result_type != "input_required":
            members = outcome.members if result is reply.result else canonical.members(result)
            said = judgement.result_labels
            result = labels.written(result, members, said, annotations=labels.DECLARED in self.session.capabilities)
        return envelope.result(self.request_id, result), word, 200

    def again(self, given: bytes, state: bytes) -> None:
        """Go on with what the server asked for: the same call in a further round (2026-07-28), not another one."""
        if self.done:
            return
        members = {name: raw for name, raw in self.members.items() if name != "requestState"}
        if state:
            members["requestState"] = state
        self.members = {**members, "inputResponses": given}
        self.send()

    def parted(self) -> None:
        """The server wants to be asked again for the rest; so the client may be told to come again as well."""
        if not self.done:
            self.outlet.part()

    def lost(self, error: EarnestError, sent: bool) -> None:
        """No answer will come."""
        if self.done:
            return
        detail = f"{error.code}: {error.message}"
        known = self.gateway.scrub(error.message)
        text = known + ("; the call may or may not have taken effect" if sent else "; the call was not sent")
        word = "malformed" if error.code == "E1311" else "lost" if sent else "not-sent"
        self.refuse(word, asking.failed(text, self._id(), self.session.modern), text, detail)

    # the end

    def timed_out(self) -> None:
        """The call's time is over: the server is told, the client gets an answer; the process goes on (users' reports, 15)."""
        if self.done:
            return
        if self._exchange is not None:
            self._exchange.cancel("timeout")
        text = "the server did not answer in time; the call may or may not have taken effect"
        self.refuse("timeout", asking.failed(text, self._id(), self.session.modern), text)

    def cancel(self, reason: str) -> None:
        """The client does not want the answer any more: nobody gets one, and a pending ask is withdrawn."""
        if self.done:
            return
        self.gateway.asking.withdraw(self)
        if self._exchange is not None:
            self._exchange.cancel(reason)
        self._end("cancelled", reason[:200], b"")
        self.outlet.abandon()

    def interrupted(self, error: EarnestError) -> None:
        """The gateway is about to end. Over HTTP the client gets its answer now, because nobody could give one later; on a pipe
        the call stays owed, and whoever takes the pipe over (or ends it) answers."""
        if self.done:
            return
        sent = self.state == "sent"
        if self._exchange is not None:
            self._exchange.cancel("the gateway is ending")
        if self.session.over_http:
            self.lost(error, sent)
        else:
            self._end("lost" if sent else "not-sent", f"{error.code}: {error.message}", b"")

    def unavailable(self, error: EarnestError, outcome: str = "not-sent") -> None:
        """The call cannot go on for a reason of earnest's or the server's own."""
        text = self.gateway.scrub(error.message)
        self.refuse(outcome, asking.failed(text, self._id(), self.session.modern), text, str(error))

    def refuse(self, outcome: str, result: bytes, text: str, detail: str = "") -> None:
        """End without an answer of the server: a tool call with an error result that a model can act on, others with an
        error."""
        if self.method.kind == "tool":
            self.finish(envelope.result(self.request_id, result), outcome, detail)
        else:
            data = b'{"receipt":%b}' % calls.string(self._id()) if self._id() else b""
            code = WAITING if outcome == "waiting" else REFUSED if outcome in ("denied", "declined", "expired") else UNAVAILABLE
            self.finish(envelope.error(self.request_id, code, text, data), outcome, detail)

    def finish(self, answer: bytes, outcome: str, detail: str = "", result: bytes = b"", status: int = 200) -> None:
        """The one way out with an answer."""
        self._end(outcome, detail, result)
        self.outlet.finish(answer, status)

    def _end(self, outcome: str, detail: str, result: bytes) -> None:
        self.done = True
        self.state = "done"
        self._exchange = None  # which holds this call
        if self.gateway.server_requests.answering:
            self.gateway.server_requests.over(self)
        if self.gateway.tasks.followed:
            self.gateway.tasks.over(self, outcome)
        self.gateway.leave(self)
        if self.judgement is not None and self.judgement.id:
            self.gateway.records.finished(self.judgement, outcome, detail, result)
            self.gateway.flush_soon()

    def _id(self) -> str:
        return self.judgement.id if self.judgement is not None else ""

    def _timeout(self) -> float:
        assert self.served is not None
        return self.served.timeout


_ERROR: Final = outcomes.Outcome(True, "complete", Facts(), Facts())
DENIED_TEXT: Final = "this call is not allowed here"
