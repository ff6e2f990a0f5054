"""What a legacy server asks a client inside a call (sampling, elicitation, roots), and the answer on its way back.

The question goes to the client that made the call, under an id of earnest's own. The answer carries the client's data to the
server, so it is a call like any other: judged, asked about if need be, recorded, and only then handed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.core.hints import RawHints
from earnest.gateway.relay import REFUSED, Relay
from earnest.gateway.spoken import CONVERSATION_META
from earnest.protocol import envelope, quoted
from earnest.protocol.envelope import Message
from earnest.protocol.methods import Method
from earnest.upstream.base import Link, Reply

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.session import Session

_CLAIMS = RawHints(read_only=True)
"""An answer changes nothing by itself; what it gives away is the facets' matter."""


def able(capabilities: bytes, method: str, params: bytes) -> bool:
    """Whether a client said that it can do what this very question needs: also a page to open, and tools in sampling."""
    try:
        declared = members(capabilities)
        wanted = members(params or b"{}")
        if method == "elicitation/create" and wanted.get("mode") == b'"url"':
            return "url" in members(declared["elicitation"])
        if method == "sampling/createMessage" and ("tools" in wanted or "toolChoice" in wanted):
            return "tools" in members(declared["sampling"])
    except (EarnestError, KeyError):
        return False
    return True


def plain_no(result: bytes) -> bytes | None:
    """An elicitation's answer that says no and nothing else: no data that anybody chose, so there is nothing to judge."""
    try:
        seen = members(result)
    except EarnestError:
        return None
    action = seen.get("action")
    return build(seen) if len(seen) == 1 and action in (b'"decline"', b'"cancel"') else None


class AnswerRelay(Relay):
    """The client's answer to a server's question, on the way to the server."""

    __slots__ = ("answer_to", "call", "reply_raw")

    def __init__(
        self, gateway: Gateway, session: Session, call: Relay, row: Method, message: Message, answer_to: bytes
    ) -> None:
        meta = {name: raw for name, raw in call.meta.items() if name == CONVERSATION_META}
        kept = b"answer %b" % answer_to
        super().__init__(gateway, session, Message("request", b"", row.name), row, call.outlet, None, kept, {}, meta)
        self.call = call
        self.answer_to = answer_to
        self.reply_raw = message.result
        self.served = call.served
        self.arguments = message.result
        self.subject = row.name
        self._link = call._link

    def look_up(self) -> None:
        """What an answer goes to is no tool that could change."""

    def start(self, link: Link) -> None:
        """Judge and go on."""
        assert self.served is not None
        self.tool = self.served.server.method(f"answer to {self.method.name}", _CLAIMS)
        self.session.relays[self.kept] = self
        self.gateway.server_requests.answering.setdefault(self.call, []).append(self)
        self.judge(link)

    def release(self) -> None:
        """Allowed. Nothing comes back to an answer but through its call, so it sets no labels of its own."""
        assert self.judgement is not None
        self.gateway.records.decided(self.judgement, "allow")
        self.state = "queued"
        self.gateway.queue(self)

    def send(self) -> None:
        link = self._link
        if self.done or link is None:
            return
        link.respond(self.answer_to, Reply(result=self.reply_raw))
        self._end("ok", "", b"")

    def cancel(self, reason: str) -> None:
        """The client is gone, or the call is over: the server gets no answer any more."""
        if not self.done:
            self.gateway.asking.withdraw(self)
            self.refuse("cancelled", b"", "the call is over", reason[:200])

    def _end(self, outcome: str, detail: str, result: bytes) -> None:
        self.session.relays.pop(self.kept, None)
        self.gateway.server_requests.answered(self)
        super()._end(outcome, detail, result)

    def refuse(self, outcome: str, result: bytes, text: str, detail: str = "") -> None:
        link = self._link
        if link is not None:
            link.respond(self.answer_to, Reply(error=envelope.error_object(REFUSED, text)))
        self._end(outcome, detail, b"")


class ServerRequests:
    """Passes questions of legacy servers to their clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.answering: dict[Relay, list[AnswerRelay]] = {}
        """Answers that are judged or wait for a person, by the call that they belong to."""

    def answered(self, answer: AnswerRelay) -> None:
        """An answer has gone, or will not go."""
        left = [one for one in self.answering.pop(answer.call, ()) if one is not answer]
        if left:
            self.answering[answer.call] = left

    def over(self, call: Relay) -> None:
        """A call is over: what would have been answered inside it goes nowhere, and no person is asked about it."""
        for answer in self.answering.pop(call, ()):
            answer.cancel("the call is over")

    def forward(self, session: Session, call: Relay, message: Message, row: Method) -> None:
        """Ask the client; the answer comes back judged."""
        link = call._link
        assert link is not None
        server_id = message.id

        def answered(answer: Message) -> None:
            if not link.alive:
                return
            if call.done:
                link.respond(server_id, Reply(error=envelope.error_object(REFUSED, "the call is over")))
            elif answer.error:
                # What a client says in an error was judged by nobody, so only that it is one goes on.
                code = envelope.failure(answer.error).code
                link.respond(server_id, Reply(error=envelope.error_object(code, "the client answered with an error")))
            elif (no := plain_no(answer.result)) is not None:
                link.respond(server_id, Reply(result=no))
            else:
                AnswerRelay(self._gateway, session, call, row, answer, server_id).start(link)

        asked = quoted.question(call.served.name if call.served is not None else "", message.method, message.params)
        session.ask_client(message.method, asked, call.outlet, answered)
