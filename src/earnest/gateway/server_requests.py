"""What a legacy server asks a client inside a call (sampling, elicitation, roots), and the answer on its way back.

The question goes to the client that made the call, under an id of earnest's own. The answer carries the client's data to the
server, so it is a call like any other: judged, asked about if need be, recorded, and only then handed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earnest.core.hints import RawHints
from earnest.core.verdict import Verdict
from earnest.gateway.relay import REFUSED, Relay
from earnest.protocol import envelope
from earnest.protocol.envelope import Message
from earnest.protocol.methods import Method
from earnest.upstream.base import Link, Reply

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.session import Session

_CLAIMS = RawHints(read_only=True)
"""An answer changes nothing by itself; what it gives away is the facets' matter."""


class AnswerRelay(Relay):
    """The client's answer to a server's question, on the way to the server."""

    __slots__ = ("answer_to", "reply_raw")

    def __init__(
        self, gateway: Gateway, session: Session, call: Relay, row: Method, message: Message, answer_to: bytes
    ) -> None:
        super().__init__(gateway, session, Message("request", b"", row.name), row, call.outlet)
        self.answer_to = answer_to
        self.reply_raw = message.result
        self.served = call.served
        self.arguments = message.result
        self.subject = row.name
        self._link = call._link

    def start(self, link: Link) -> None:
        """Judge and go on."""
        assert self.served is not None
        self.tool = self.served.server.method(f"answer to {self.method.name}", _CLAIMS)
        judgement = self.judgement = self.gateway.engine.judge(self.question())
        if judgement.verdict is Verdict.ALLOW:
            self.release()
        elif judgement.verdict is Verdict.ASK:
            self.gateway.asking.ask(self)
        else:
            self.gateway.records.decided(judgement, "deny")
            self.refuse("denied", b"", "the answer was not passed on")

    def send(self) -> None:
        link = self._link
        if self.done or link is None:
            return
        link.respond(self.answer_to, Reply(result=self.reply_raw))
        self._end("ok", "", b"")

    def refuse(self, outcome: str, result: bytes, text: str, detail: str = "") -> None:
        link = self._link
        if link is not None:
            link.respond(self.answer_to, Reply(error=envelope.error_object(REFUSED, text)))
        self._end(outcome, detail, b"")


class ServerRequests:
    """Passes questions of legacy servers to their clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def forward(self, session: Session, call: Relay, message: Message, row: Method) -> None:
        """Ask the client; the answer comes back judged."""
        link = call._link
        assert link is not None
        server_id = message.id

        def answered(answer: Message) -> None:
            if not link.alive:
                return
            if answer.error:
                link.respond(server_id, Reply(error=answer.error))
                return
            AnswerRelay(self._gateway, session, call, row, answer, server_id).start(link)

        session.ask_client(message.method, message.params, call.outlet, answered)
