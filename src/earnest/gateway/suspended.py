"""A legacy server asks inside a call and its client is a modern one: the call is answered `input_required` and stays under way.

    sent ──(the server asks)──> suspended ──(the client's retry)──> sent, with the retry as the request that gets the answer
                                    └──(nobody comes back in time)──> the server is told, the call is over

The upstream call is one call all the time: nothing here sends it again. What the client carries meanwhile is a sealed state
that names the call and fits it alone: the same caller, conversation, method and params, each state once. A state whose call is
not under way any more (time, a lost server, a restart) is told so; it never becomes a fresh call. The answers are judged like
calls before the server gets them.

Sources: MCP 2025-11-25, elicitation, sampling, roots; 2026-07-28, "Multi round-trip requests".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key
from earnest.gateway import lists
from earnest.gateway.server_requests import AnswerRelay, able, plain_no
from earnest.protocol import asking, calls, envelope, headers, quoted
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method
from earnest.upstream.base import Reply

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.outlet import Outlet
    from earnest.gateway.relay import Relay
    from earnest.gateway.session import Session

HELD_S: Final = 600.0
"""Seconds for which a call waits for its client to come back with answers; its own hard limit may end it earlier."""
GATHER_S: Final = 0.02
"""Seconds for which further questions of a server go into the same round; what asks two people at once sends two messages."""
MOST: Final = 32
"""Calls of one principal that wait so."""
MOST_QUESTIONS: Final = 16
"""Questions of one call that wait at once."""

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Largest answer that is kept for a client that is away."""

_TOO_LARGE: Final = "this call is over, and its result was too large to be kept; it was not sent again"
_GONE: Final = (
    "this call is not under way any more (it took too long, or the gateway or the server was started again); it was not sent "
    "again, and may or may not have taken effect"
)
_NOT_THIS: Final = "requestState does not belong to this request"


class _State(msgspec.Struct, frozen=True, tag_field="kind", tag="suspended"):
    """What the client carries: which call, and which of its states. It says nothing that earnest does not know itself."""

    call: str
    nonce: str


_read_state: Final = msgspec.json.Decoder(_State).decode


class _Question(msgspec.Struct, frozen=True):
    """One request of the server. `id`: the raw id to answer it under."""

    id: bytes
    row: Method
    params: bytes


class _Parked:
    """The way back of a call whose client is away (`Outlet`): what is said on the way is dropped, the answer kept."""

    def __init__(self) -> None:
        self.answer = b""
        self.status = 200
        self.over = False
        self.too_large = False

    def send(self, message: bytes) -> None:
        """Nobody listens."""

    def part(self) -> None:
        """Nobody listens."""

    def finish(self, message: bytes, status: int = 200) -> None:
        self.answer, self.status, self.over = message, status, True
        if len(message) > KEPT_BYTES:
            self.answer, self.too_large = b"", True

    def abandon(self) -> None:
        self.over = True


class _Held:
    """One call that waits, or goes on after having waited."""

    def __init__(self, call: Relay, key: Key, digest: str) -> None:
        self.call = call
        self.key = key
        self.digest = digest
        self.id = secrets.token_hex(16)
        self.nonce = ""
        """Of the state that the client holds; empty while the client is there."""
        self.parked: _Parked | None = None
        self.questions: dict[str, _Question] = {}
        self.asked = 0
        self.until = 0.0
        self.putting = False

    @property
    def over(self) -> bool:
        """Whether nothing is left to come back for."""
        if self.parked is None:
            return self.call.done
        return self.parked.over and not self.parked.answer and not self.parked.too_large


class Suspended:
    """All calls of one gateway that wait for their clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._held: dict[str, _Held] = {}
        self._by_call: dict[Relay, _Held] = {}

    # the server asks

    def ask(self, call: Relay, message: Message, row: Method) -> bool:
        """Take a request of a legacy server inside a modern client's call; False where it cannot be put to this client."""
        if not call.method.may_ask or not able(call.session.capabilities, message.method, message.params):
            return False
        held = self._by_call.get(call)
        if held is None:
            principal = call.session.client.principal
            if sum(one.call.session.client.principal == principal for one in self._held.values()) >= MOST:
                self._gateway.log(f"a question of a server was declined: {MOST} calls wait for answers already")
                return False
            try:
                held = _Held(call, call.session.key_for(call.meta), _digest(call.method, call.given))
            except EarnestError:
                return False
            self._held[held.id] = held
            self._by_call[call] = held
        if len(held.questions) >= MOST_QUESTIONS:
            return False
        held.asked += 1
        asked = quoted.question(call.served.name if call.served is not None else "", row.name, message.params)
        held.questions[f"q{held.asked}"] = _Question(message.id, row, _for_modern(asked))
        self._put_soon(held)
        return True

    def _put_soon(self, held: _Held) -> None:
        """What a server asks at the same time is one round."""
        if not held.putting and held.parked is None:
            held.putting = True
            self._gateway.loop.call_later(GATHER_S, self._put, held)

    def _put(self, held: _Held) -> None:
        """Answer the client's request with the questions, and keep the call."""
        held.putting = False
        call = held.call
        if call.done or held.parked is not None or not held.questions:
            return
        held.nonce = secrets.token_hex(8)
        state = self._gateway.seal.seal(msgspec.json.encode(_State(held.id, held.nonce)))
        asked = canonical.build(
            {key: b'{"method":%b,"params":%b}' % (string(one.row.name), one.params) for key, one in held.questions.items()}
        )
        result = b'{"resultType":"input_required","inputRequests":%b,"requestState":%b}' % (asked, string(state))
        outlet, request_id = call.outlet, call.request_id
        held.parked = call.outlet = _Parked()
        # The client's id is free again; what is under way is known to its session by another name.
        call.session.relays.pop(call.kept, None)
        call.kept = b"suspended %b" % held.id.encode()
        call.session.relays[call.kept] = call
        held.until = min(self._gateway.now() + HELD_S, call.hard_deadline)
        call.deadline = call.hard_deadline
        outlet.finish(envelope.result(request_id, result))

    # the client comes back

    def resume(
        self,
        session: Session,
        message: Message,
        method: Method,
        outlet: Outlet,
        fields: headers.Lines | None,
        kept: bytes,
        params: Mapping[str, bytes],
        meta: Mapping[str, bytes],
    ) -> bool:
        """Go on with the call whose state a request carries; False where it carries none of these. A retry that lost its state
        is asked again, and sends nothing. Raises `WireError` where the state fits another call or caller."""
        state = self._state(params["requestState"]) if "requestState" in params else None
        if state is None and "requestState" in params:
            return False
        held = self._held.get(state.call) if state is not None else self._waiting(session, method, params, meta)
        if held is None and state is None:
            return False
        if held is None or (held.over and held.call.done):
            self._refuse(message, method, outlet, _GONE)
            return True
        call = held.call
        if not _fits(held, session, method, params, meta):
            self._gateway.log(f"client {session.client.name!r} came with the state of another call, which was refused")
            raise WireError(envelope.INVALID_PARAMS, _NOT_THIS)
        if state is not None and held.nonce != state.nonce:
            self._refuse(message, method, outlet, "this state was used already; the call goes on with the request that used it")
            return True
        if fields is not None and method.kind == "tool":
            fields.check(method, params, session.version, lists.declared(call.tool), message.id)
        answers = calls.read_object(params.get("inputResponses", b"{}"), "inputResponses") if state is not None else {}
        parked, held.parked, held.nonce = held.parked, None, ""
        assert parked is not None
        if parked.over:
            self._forget(held)
            if parked.too_large:
                self._refuse(message, method, outlet, _TOO_LARGE)
                return True
            outlet.finish(_answer_as(message.id, parked.answer), parked.status)
            return True
        session.relays.pop(call.kept, None)
        call.kept, call.outlet, call.request_id = kept, outlet, message.id
        call.meta = meta  # of the same conversation, and perhaps another log level
        call.progress_token = meta.get("progressToken", b"")
        session.relays[kept] = call
        call.deadline = min(self._gateway.now() + call._timeout(), call.hard_deadline)
        self._hand_over(held, answers)
        return True

    def _hand_over(self, held: _Held, answers: Mapping[str, bytes]) -> None:
        """Judge each answer and give it to the server; what was not answered is asked again."""
        call = held.call
        link = call._link
        assert link is not None
        for key in [key for key in held.questions if key in answers]:
            one, raw = held.questions.pop(key), answers[key]
            if (no := plain_no(raw)) is not None:
                link.respond(one.id, Reply(result=no))
            else:
                _Answer(self._gateway, call, one, raw).start(link)
        if held.questions:
            self._put_soon(held)

    def _waiting(
        self, session: Session, method: Method, params: Mapping[str, bytes], meta: Mapping[str, bytes]
    ) -> _Held | None:
        """The call that waits for just this request."""
        for held in self._held.values():
            if held.parked is not None and _fits(held, session, method, params, meta):
                return held
        return None

    def _state(self, raw: bytes) -> _State | None:
        try:
            plain = self._gateway.seal.open(msgspec.json.decode(raw, type=str))
            return _read_state(plain) if plain is not None else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _refuse(self, message: Message, method: Method, outlet: Outlet, text: str) -> None:
        if method.kind == "tool":
            outlet.finish(envelope.result(message.id, asking.failed(text, "", modern=True)))
        else:
            outlet.finish(envelope.error(message.id, envelope.INVALID_PARAMS, text), 400)

    # the end

    def expire(self, now: float) -> None:
        """End the calls whose clients did not come back, and forget those that are over."""
        for held in list(self._held.values()):
            if held.parked is not None and now >= held.until:
                if not held.call.done:
                    held.call.cancel("the client did not come back with what the server asked for")
                self._forget(held)
            elif held.over:
                self._forget(held)

    def _forget(self, held: _Held) -> None:
        self._held.pop(held.id, None)
        self._by_call.pop(held.call, None)


class _Answer(AnswerRelay):
    """One answer, on the way to the server that asked; it ends with its call."""

    __slots__ = ()

    def __init__(self, gateway: Gateway, call: Relay, one: _Question, raw: bytes) -> None:
        message = Message("response", b"", result=raw)
        super().__init__(gateway, call.session, call, one.row, message, one.id)
        self.kept = b"%b for %b" % (self.kept, call.kept)


def _fits(held: _Held, session: Session, method: Method, params: Mapping[str, bytes], meta: Mapping[str, bytes]) -> bool:
    """Whether a request is of the same caller, conversation, method and params as a call that is held."""
    return held.call.session is session and held.key == session.key_for(meta) and held.digest == _digest(method, params)


def _for_modern(params: bytes) -> bytes:
    """The params of a legacy server's request as an input request has them: no task, no token, no id of an elicitation."""
    seen = canonical.members(params or b"{}")
    for name in ("task", "elicitationId"):
        seen.pop(name, None)
    if seen.get("_meta", b"")[:1] == b"{":
        inner = canonical.members(seen["_meta"])
        inner.pop("progressToken", None)
        seen["_meta"] = canonical.build(inner)
    return canonical.build(seen)


def _digest(method: Method, params: Mapping[str, bytes]) -> str:
    """Of a request what its retry must have too: all of it but what was asked meanwhile. Raises E13xx."""
    own = {name: raw for name, raw in params.items() if name not in ("_meta", "inputResponses", "requestState")}
    return f"{method.name} {canonical.digest(canonical.build(own))}"


def _answer_as(id: bytes, raw: bytes) -> bytes:
    """An answer that was kept, under the id of the request that came for it."""
    kept = envelope.parse(raw, envelope.Limits(max_bytes=len(raw)))
    return envelope.write(msgspec.structs.replace(kept, id=id))
