"""Answers to what a server asked, on their way to it: each is a call, judged before the request that carries them goes out.

A modern client brings them in its retry (`inputResponses`) and in `tasks/update`; of a legacy client they are gathered by
`rounds`. What they say was chosen on the client's side and goes to the server, so policy, flow and floor read it like the
arguments of a tool call. In a retry nothing says any more what was asked, so the kind of an answer is read from its members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.gateway.server_requests import AnswerRelay, plain_no
from earnest.protocol import asking, calls, envelope, methods
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay
    from earnest.upstream.base import Link

MOST: Final = 16
"""Answers of one request."""
_MARKS: Final = {"action": "elicitation/create", "roots": "roots/list", "model": "sampling/createMessage"}
"""The member that only one kind of answer has."""
_UNKNOWN: Final = Method("input request", "modern", "client", "answer", judged=True)


def kind(raw: bytes) -> Method:
    """What an answer answers, by its members; one that could be two kinds, or none, is of no known kind."""
    try:
        seen = canonical.members(raw)
    except EarnestError:
        return _UNKNOWN
    found = {name for mark, name in _MARKS.items() if mark in seen}
    row = methods.answer(found.pop()) if len(found) == 1 else None
    return row or _UNKNOWN


class Gathering:
    """Answers that are judged one by one, until all may go or one may not."""

    def __init__(self, call: Relay, link: Link, wanted: int) -> None:
        """`wanted`: how many there are."""
        self.call = call
        self.link = link
        self._wanted = wanted
        self._given: dict[str, bytes] = {}
        self._over = False

    def judge(self, key: str, row: Method, raw: bytes) -> None:
        """One answer: judged, unless it is a no that carries nothing."""
        if self.call.done or self._over:
            return
        if (no := plain_no(raw)) is not None:
            self.given(key, no)
        else:
            InputRelay(self, row, Message("response", b"", result=raw), key).start(self.link)

    def given(self, key: str, raw: bytes) -> None:
        """One answer that may go to the server."""
        self._given[key] = raw
        if not self._over and len(self._given) == self._wanted:
            self._over = True
            if not self.call.done:
                self.complete(self._given)

    def refused(self, text: str) -> None:
        """One answer must not go, so the call cannot go on."""
        if not self._over:
            self._over = True
            call = self.call
            if not call.done:
                receipt = call.judgement.id if call.judgement is not None else ""
                call.refuse("declined", asking.failed(text, receipt, call.session.modern), text)

    def complete(self, given: dict[str, bytes]) -> None:
        """All may go."""
        raise NotImplementedError


class InputRelay(AnswerRelay):
    """One answer of the client on its way into a gathering."""

    __slots__ = ("_asked", "_gathering")

    def __init__(self, gathering: Gathering, row: Method, answer: Message, key: str) -> None:
        call = gathering.call
        super().__init__(call.gateway, call.session, call, row, answer, b"%b %b" % (call.kept, calls.string(key)))
        self._gathering = gathering
        self._asked = key

    def send(self) -> None:
        if not self.done:
            self._end("ok", "", b"")
            self._gathering.given(self._asked, self.reply_raw)

    def refuse(self, outcome: str, result: bytes, text: str, detail: str = "") -> None:
        self._end(outcome, detail, b"")
        self._gathering.refused("an answer to what the server asked was not allowed" if outcome == "denied" else text)


class _Retry(Gathering):
    """The answers that a modern request brings; it is judged itself once they are."""

    def complete(self, given: dict[str, bytes]) -> None:
        self.call.judge(self.link)


class Answers:
    """The answers that requests of modern clients bring along."""

    def begin(self, call: Relay, link: Link) -> bool:
        """Judge the answers that a modern request carries for its server, those in earnest's own state too. Returns whether
        there are any; then the request is judged again when they may go. Raises `WireError` for what are no answers."""
        call.answers_judged = True
        if not link.hello.modern:
            self._refuse_foreign(call)
            return False
        brought = call.members.get("inputResponses", b"null")
        if brought[:1] != b"{":
            if brought != b"null":
                raise WireError(envelope.INVALID_PARAMS, "inputResponses must be an object")
            brought = b"{}"
        answers = {**call.gateway.asking.kept_answers(call), **calls.read_object(brought, "inputResponses")}
        answers.pop(asking.INPUT_KEY, None)
        if not answers:
            return False
        if len(answers) > MOST:
            raise WireError(envelope.INVALID_PARAMS, f"a request may bring {MOST} answers at most", code="E1703")
        retry = _Retry(call, link, len(answers))
        for key, raw in answers.items():
            retry.judge(key, kind(raw), raw)
        return True

    def _refuse_foreign(self, call: Relay) -> None:
        """A legacy server gave nobody a state: a request with one that nobody here made may have been sent before, so it is not
        sent. Answers without a state were asked for by nobody, and are left out. Raises `WireError`."""
        if "requestState" not in call.members or call.gateway.asking.holds(call.members["requestState"]):
            return
        raise WireError(envelope.INVALID_PARAMS, "this answers nothing that was asked here; the call was not sent")
