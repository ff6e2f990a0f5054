"""Asking a person about a call, in the order that DESIGN gives: in band, in the queue, and where neither is, no.

    ask ──> an approval fits already ──> release
     │  ──> in band (only if the operator said that this client asks a person)
     │        yes ──> take the approval ──> release        no ──> declined, final
     │        nobody was asked (instant, empty, wrong or no answer) ──> queue
     └─> queue: held up to `hold_s`, with progress ──> decided: as above; not decided: "waiting, retry this same call"
         no queue ──> denied

The ask is in the store before anybody is asked. One yes releases one call: whoever takes it from the store first. In the
legacy era the form is a request to the client inside the call; in the modern era it is the result, and the retry carries the
answer and a sealed state, which is worth nothing for any other call, caller or time.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS
from earnest.core.verdict import Verdict
from earnest.gateway import spoken
from earnest.pdp.approvals import Approvals, lock_of
from earnest.pdp.facts import Judgement
from earnest.protocol import asking as forms
from earnest.protocol import envelope
from earnest.protocol.calls import string
from earnest.protocol.envelope import Message
from earnest.protocol.outcomes import Outcome
from earnest.protocol.prompt import HintFact, PromptFacts, render_prompt
from earnest.store.base import Approval, Lock, lock_text

if TYPE_CHECKING:
    from earnest.gateway.gateway import Gateway
    from earnest.gateway.previewing import Preview
    from earnest.gateway.relay import Relay

STATE_S: Final = 900.0
"""Seconds a sealed state may be carried around."""
PROGRESS_EVERY_S: Final = 5.0


class _Hold:
    """What is under way for one asked call."""

    __slots__ = ("approval", "form_id", "stop", "ticker", "timer")

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        self.stop: object = None
        self.timer: asyncio.TimerHandle | None = None
        self.ticker: asyncio.TimerHandle | None = None
        self.form_id = b""


class Asking:
    """All asking of one gateway."""

    def __init__(self, gateway: Gateway, approvals: Approvals) -> None:
        self._gateway = gateway
        self.approvals = approvals
        self._holds: dict[Relay, _Hold] = {}
        self._going_on: dict[bytes, float] = {}
        """Sealed states from which an approved call may still go on, raw, with when that ends."""

    @property
    def held(self) -> int:
        """How many calls wait for a person."""
        return len(self._holds)

    # from the judged call

    def ask(self, relay: Relay) -> None:
        """The verdict was ask: find a yes, or a person. Records the decision."""
        if self._gateway.previews.begin(relay):
            return  # and it is asked about once that is over
        judgement = relay.judgement
        assert judgement is not None
        lock = lock_of(judgement)
        state = self.own_state(relay)
        if state is not None and state.approval == "" and self._continues(relay):
            # The server asked for input inside a call that a person had approved: this is that call going on.
            self._release(relay, "continued")
            return
        if state is not None and state.approval == "":
            state = None
        used = self.approvals.take(lock)
        if used is not None:
            self._release(relay, used.id)
            return
        self._gateway.records.decided(judgement, "ask")
        if state is not None:
            self._read_retry(relay, lock, state)
            return
        client = relay.session.client
        settings = self._gateway.settings.asking
        if not settings.queue and not (client.asks_person and self._can_form(relay)):
            relay.refuse("denied", forms.denied(judgement.id, relay.session.modern), "this call is not allowed here")
            return
        approval = self.approvals.ask(lock, prompt_json(judgement, relay.preview))
        self._gateway.previews.asked(relay, approval.id)
        if client.asks_person and self._can_form(relay):
            self._ask_in_band(relay, lock, approval)
        else:
            self._queue(relay, approval)

    def withdraw(self, relay: Relay) -> None:
        """The client no longer wants the call."""
        self._gateway.previews.stop(relay)
        hold = self._drop(relay)
        if hold is not None and not self.approvals.waited_for(hold.approval.id):
            self.approvals.withdraw(hold.approval.id)

    # in band

    def _can_form(self, relay: Relay) -> bool:
        session = relay.session
        if b'"elicitation"' not in session.capabilities:
            return False
        return relay.method.may_ask if session.modern else True

    def _ask_in_band(self, relay: Relay, lock: Lock, approval: Approval) -> None:
        judgement = relay.judgement
        assert judgement is not None
        form = forms.form(_prompt_text(judgement, relay.preview), secrets.token_hex(4))
        if relay.session.modern:
            now = int(self._gateway.wall() * 1000)
            state = forms.State(
                approval=approval.id,
                principal=lock.principal,
                method=relay.method.name,
                digest=_call_digest(lock),
                yes=form.yes,
                no=form.no,
                asked_ms=now,
                expires_ms=now + int(STATE_S * 1000),
                upstream=_text(relay.upstream_state if relay.answered_form else relay.members.get("requestState", b"")),
                lock=_digest(lock),
                responses=spoken.server_answers(relay).decode(),
            )
            sealed = forms.seal(state, self._gateway.seal.seal)
            result = forms.input_required(form, relay.session.version, sealed)
            relay.finish(envelope.result(relay.request_id, result), "asked")
            return
        hold = self._queue(relay, approval)
        asked = self._gateway.now()

        def answered(message: Message) -> None:
            hold.form_id = b""
            elapsed = self._gateway.now() - asked
            answer = forms.read_answer(message.result or None, form, elapsed, self._gateway.settings.asking.floor_s)
            self._form_answer(relay, hold, answer)

        params = forms.elicitation(form, relay.session.version)
        hold.form_id = relay.session.ask_client("elicitation/create", params, relay.outlet, answered)

    def _form_answer(self, relay: Relay, hold: _Hold, answer: forms.Answer) -> None:
        """A legacy client answered the form; perhaps only after its call was told to wait, and then a retry is served."""
        id = hold.approval.id
        if answer.verdict != "nobody":
            yes, valid = answer.verdict == "yes", self._gateway.settings.asking.valid_s
            self.approvals.decide(id, yes, channel="in-band", valid_s=valid, by=relay.session.client.name)
            return
        self._gateway.log(f"nobody was asked about {id}: {answer.why}")
        if self._gateway.settings.asking.queue or self._holds.get(relay) is not hold:
            return
        self._drop(relay)
        self._unaskable(relay, id)

    def _unaskable(self, relay: Relay, id: str) -> None:
        """No person can be reached: the call does not run."""
        judgement = relay.judgement
        assert judgement is not None
        self.approvals.withdraw(id)
        relay.refuse("denied", forms.denied(judgement.id, relay.session.modern), "this call is not allowed here")

    def _read_retry(self, relay: Relay, lock: Lock, state: forms.State) -> None:
        """A modern retry: the sealed state is ours and fits this call; what is the answer worth?"""
        known = self.approvals.get(state.approval)
        if known is None or known.state != "pending":
            word = known.state if known is not None else "expired"
            if word == "denied":
                self._decline(relay)
            elif word == "used":
                self._used(relay)
            else:
                self._expire(relay)
            return
        now = int(self._gateway.wall() * 1000)
        answer = forms.read_retry(relay.members, state, now, self._gateway.settings.asking.floor_s)
        if answer.verdict == "nobody":
            self._gateway.log(f"nobody was asked about {known.id}: {answer.why}")
            if self._gateway.settings.asking.queue:
                self._queue(relay, known)
            else:
                self._unaskable(relay, known.id)
            return
        yes, valid = answer.verdict == "yes", self._gateway.settings.asking.valid_s
        self.approvals.decide(known.id, yes, channel="in-band", valid_s=valid, by=relay.session.client.name)
        self._decided(relay, lock, yes, known.id)

    def holds(self, raw: bytes) -> bool:
        """Whether a raw request state is one that was sealed for an ask, whomever it fits."""
        text = _text(raw)
        plain = self._gateway.seal.open(text) if text is not None else None
        return plain is not None and forms.read_state(plain) is not None

    def kept_answers(self, relay: Relay) -> dict[str, bytes]:
        """The answers to the server's own questions that earnest's state in this retry holds, whomever it fits."""
        text = _text(relay.members.get("requestState", b""))
        plain = self._gateway.seal.open(text) if text is not None else None
        state = forms.read_state(plain) if plain is not None else None
        return canonical.members(state.responses.encode()) if state is not None and state.responses else {}

    def own_state(self, relay: Relay) -> forms.State | None:
        """The state that earnest sealed into this retry, if all it is bound to still holds.

        Whatever earnest sealed is taken out of the request. What it holds of the server's goes on with the same call, also
        where labels or policy moved meanwhile and a person has to be asked again; with another call it goes nowhere.
        """
        judgement = relay.judgement
        assert judgement is not None
        raw = relay.members.get("requestState", b"")
        text = _text(raw)
        if not relay.session.modern or text is None or self._gateway.seal.open(text) is None:
            return None
        relay.answered_form = True
        lock = lock_of(judgement)
        state = forms.unseal(
            raw,
            self._gateway.seal.open,
            principal=lock.principal,
            method=relay.method.name,
            digest=_call_digest(lock),
            now_ms=int(self._gateway.wall() * 1000),
        )
        if state is None:
            return None
        if state.upstream is not None:
            relay.upstream_state = string(state.upstream)
        relay.upstream_answers = state.responses.encode()
        return state if state.lock == _digest(lock) else None

    def _continues(self, relay: Relay) -> bool:
        """Whether this is the first time that an approved call goes on from this state: one yes is for one call, so each state
        goes on once, and none that was made before this daemon started."""
        return self._going_on.pop(relay.members["requestState"], 0.0) > self._gateway.wall()

    def wrap_state(self, relay: Relay, result: bytes, outcome: Outcome) -> bytes:
        """An approved call's server wants input: its state travels inside ours, so that going on needs no second yes."""
        judgement = relay.judgement
        assert judgement is not None
        now = int(self._gateway.wall() * 1000)
        # The retry comes with the labels that this very call has set; that they are there asks nobody again.
        lock = msgspec.structs.replace(lock_of(judgement), labels=judgement.labels_after)
        state = forms.State(
            approval="",
            principal=lock.principal,
            method=relay.method.name,
            digest=_call_digest(lock),
            yes="",
            no="",
            asked_ms=now,
            expires_ms=now + int(STATE_S * 1000),
            upstream=_text(outcome.request_state),
            lock=_digest(lock),
        )
        members = dict(outcome.members)
        members["requestState"] = sealed = string(forms.seal(state, self._gateway.seal.seal))
        wall = self._gateway.wall()
        self._going_on = {mark: until for mark, until in self._going_on.items() if until > wall}
        self._going_on[sealed] = wall + STATE_S
        return canonical.build(members)

    # the queue

    def _queue(self, relay: Relay, approval: Approval) -> _Hold:
        """Hold the call until somebody decides, up to `hold_s`."""
        settings = self._gateway.settings.asking
        hold = self._hold(relay, approval)
        loop = self._gateway.loop
        hold.stop = self.approvals.on_decision(approval.id, lambda state: self._queue_answer(relay, hold, state))
        assert relay.judgement is not None
        # What a preview took is part of the time a client waits.
        spent = self._gateway.wall() - relay.judgement.time if relay.preview is not None else 0.0
        hold.timer = loop.call_later(max(settings.hold_s - spent, min(1.0, settings.hold_s)), self._held_long_enough, relay)
        if relay.progress_token:
            hold.ticker = loop.call_later(PROGRESS_EVERY_S, self._tick, relay, hold, 1)
        self._gateway.asked(approval)
        return hold

    def _queue_answer(self, relay: Relay, hold: _Hold, state: str) -> None:
        hold.stop = None
        if relay.done or self._holds.get(relay) is not hold:
            return
        self._drop(relay)
        assert relay.judgement is not None
        try:
            if state in ("approved", "denied"):
                self._decided(relay, lock_of(relay.judgement), state == "approved", hold.approval.id)
            else:
                self._expire(relay)
        except EarnestError as error:
            # Without the store nobody knows whether the yes was used; whoever else waits must hear all the same.
            if not relay.done:
                relay.unavailable(error)

    def _held_long_enough(self, relay: Relay) -> None:
        hold = self._drop(relay, keep_form=True)
        if hold is None or relay.done:
            return
        judgement = relay.judgement
        assert judgement is not None
        if not self._gateway.settings.asking.queue:
            self._unaskable(relay, hold.approval.id)
            return
        text = "waiting for a person, retry this same call"
        relay.refuse("waiting", forms.waiting(judgement.id, relay.session.modern), text)

    def _tick(self, relay: Relay, hold: _Hold, count: int) -> None:
        if relay.done or self._holds.get(relay) is not hold:
            return
        params = b'{"progressToken":%b,"progress":%d,"message":"waiting for a person to approve this call"}'
        relay.outlet.send(envelope.notification("notifications/progress", params % (relay.progress_token, count)))
        hold.ticker = self._gateway.loop.call_later(PROGRESS_EVERY_S, self._tick, relay, hold, count + 1)

    # the end of an ask

    def _decided(self, relay: Relay, lock: Lock, yes: bool, id: str) -> None:
        if not yes:
            self._decline(relay)
            return
        used = self.approvals.take(lock)
        if used is None:
            # Another retry of the same call was first, or the yes was withdrawn meanwhile.
            known = self.approvals.get(id)
            (self._used if known is not None and known.state == "used" else self._expire)(relay)
            return
        self._reap(relay)
        self._release(relay, used.id)

    def _release(self, relay: Relay, approval: str) -> None:
        """Judge again now: labels or policy may have moved while a person was reading, and a yes overrules an ask, never a
        no."""
        old = relay.judgement
        assert old is not None
        relay.look_up()
        judgement = self._gateway.engine.judge(relay.question())
        judgement.approval, judgement.change = approval, old.change
        relay.judgement = judgement
        if judgement.verdict is Verdict.DENY:
            self._gateway.records.decided(judgement, "deny")
            relay.refuse("denied", forms.denied(judgement.id, relay.session.modern), "this call is not allowed here")
        elif judgement.verdict is Verdict.ASK and lock_of(judgement) != lock_of(old):
            judgement.approval = judgement.change = ""
            self.ask(relay)
        else:
            relay.release()

    def _reap(self, relay: Relay) -> None:
        """The decision record that said ask has its outcome: a person said yes, and the call goes on under a record of its
        own."""
        judgement = relay.judgement
        assert judgement is not None
        if judgement.id:
            self._gateway.records.finished(judgement, "approved")

    def _decline(self, relay: Relay) -> None:
        judgement = relay.judgement
        assert judgement is not None
        text = "the person who was asked said no"
        relay.refuse("declined", forms.declined(judgement.id, relay.session.modern), text)

    def _expire(self, relay: Relay) -> None:
        judgement = relay.judgement
        assert judgement is not None
        text = "nobody approved this call in time"
        relay.refuse("expired", forms.expired(judgement.id, relay.session.modern), text)

    def _used(self, relay: Relay) -> None:
        judgement = relay.judgement
        assert judgement is not None
        text = "the approval of this call was used already"
        relay.refuse("expired", forms.used(judgement.id, relay.session.modern), text)

    def _hold(self, relay: Relay, approval: Approval) -> _Hold:
        hold = _Hold(approval)
        relay.state = "held"
        relay.asked = approval.id
        self._holds[relay] = hold
        return hold

    def _drop(self, relay: Relay, *, keep_form: bool = False) -> _Hold | None:
        """Let go of a held call. Unless `keep_form`, a form that is still open is taken back from the client."""
        hold = self._holds.pop(relay, None)
        if hold is None:
            return None
        for timer in (hold.timer, hold.ticker):
            if timer is not None:
                timer.cancel()
        if callable(hold.stop):
            hold.stop()
        if hold.form_id and not keep_form:
            relay.session.forget(hold.form_id)
            relay.outlet.send(envelope.notification("notifications/cancelled", b'{"requestId":%b}' % hold.form_id))
            hold.form_id = b""
        return hold


def _digest(lock: Lock) -> str:
    return hashlib.sha256(lock_text(lock).encode()).hexdigest()


def _call_digest(lock: Lock) -> str:
    """Of a lock what the call itself is: without what moves around it."""
    return _digest(msgspec.structs.replace(lock, labels=0, policy_sha256="", change=""))


def _text(raw: bytes) -> str | None:
    """A raw JSON string as text; None for anything else."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def prompt_facts(judgement: Judgement, preview: Preview | None = None) -> PromptFacts:
    """What a person is shown of a call."""
    question = judgement.question
    profile, claims = judgement.profile, question.tool.claims
    return PromptFacts(
        server=question.server.name,
        tool=question.subject if question.method == "tools/call" else f"{question.method} {question.subject}".strip(),
        title=question.tool.title or "",
        hints=tuple(HintFact(name, claims.get(name), profile.get(name).value, profile.get(name).basis.value) for name in HINTS),
        arguments=question.arguments or b"{}",
        reasons=tuple(reason.text for reason in judgement.reasons if reason.verdict is not Verdict.ALLOW),
        client=question.client,
        preview=preview.lines if preview is not None else (),
    )


def _prompt_text(judgement: Judgement, preview: Preview | None = None) -> str:
    return render_prompt(prompt_facts(judgement, preview))


def prompt_json(judgement: Judgement, preview: Preview | None = None) -> str:
    """What the queue keeps of an ask: the text, and the facts that other answers than yes and no need."""
    question = judgement.question
    return msgspec.json.encode(
        {
            "text": _prompt_text(judgement, preview),
            "server": question.server.name,
            "identity": question.server.identity,
            "method": question.method,
            "tool": question.subject,
            "pin": question.tool.pin,
            "client": question.client,
            "conversation": question.key,
            "arguments": question.arguments.decode(),
            "content_arguments": sorted(question.tool.takes_text),
            "reasons": [[r.rule, r.text, r.verdict.word] for r in judgement.reasons],
            "remedies": [[r.text, r.command] for r in judgement.remedies],
            "preview": preview.as_json() if preview is not None else None,
        }
    ).decode()
