"""Asking a person through the client: the form, its sealed state, and what an answer is worth.

Theory. A client may answer by itself: decline at once, accept with nothing, accept with the first value on
offer. So an answer is a person's only if it took longer than a person needs (`floor_s`), and a yes only if it
echoes a value that was made for this one question. Anything else means that nobody was asked, which is never
told as a refusal; the call then waits for another way to a person. `no` stands first in the list, so that a
client that takes the first choice refuses. The floor is a heuristic, the echo is what carries.

In the modern era the question travels in the result (`input_required`), and what must be remembered travels
in `requestState`, sealed by functions that are handed in (authenticated encryption), because a client could
change it.

Sources: MCP 2025-06-18, 2025-11-25 and 2026-07-28, elicitation (form mode) and "Multi round-trip requests".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.protocol.calls import string

FLOOR_S: Final = 0.5
"""Seconds below which no person can have read the question."""

INPUT_KEY: Final = "dev.earnest/approval"
"""The key of our question in `inputRequests` and of its answer in `inputResponses`."""

FIELD: Final = "answer"

Verdict = Literal["yes", "no", "nobody"]


class Form(msgspec.Struct, frozen=True):
    """One question: the text for the person, and the two values that only an answer to this question can
    echo."""

    prompt: str
    yes: str
    no: str


def form(prompt: str, nonce: str) -> Form:
    """A question. `nonce` is unguessable text made for this question alone (at least four characters).

    Raises `ValueError` for a shorter one: a value that can repeat is no echo.
    """
    if len(nonce) < 4:
        raise ValueError("a nonce needs at least four characters")
    return Form(prompt, f"once-{nonce}", f"no-{nonce}")


def elicitation(question: Form, version: str) -> bytes:
    """Raw params of `elicitation/create` for a revision of the protocol.

    2025-06-18 has no modes; titles are `enumNames` up to 2025-11-25 (older clients know no other) and `oneOf`
    after.
    """
    modern = version > "2025-11-25"
    yes, no = string("Yes, once"), string("No")
    parts = [b'"type":"string","title":"Run this call?"']
    parts.append(b'"enum":[%b,%b]' % (string(question.no), string(question.yes)))
    if modern:
        parts.append(
            b'"oneOf":[{"const":%b,"title":%b},{"const":%b,"title":%b}]' % (string(question.no), no, string(question.yes), yes)
        )
    else:
        parts.append(b'"enumNames":[%b,%b]' % (no, yes))
    schema = b'{"type":"object","properties":{"answer":{%b}},"required":["answer"]}' % b",".join(parts)
    mode = b"" if version < "2025-11-25" else b'"mode":"form",'
    return b'{%b"message":%b,"requestedSchema":%b}' % (mode, string(question.prompt), schema)


def input_required(question: Form, version: str, state: str) -> bytes:
    """The raw result that asks in the modern era. `state` is the sealed request state."""
    return b'{"resultType":"input_required","inputRequests":{%b:{"method":"elicitation/create","params":%b}},' % (
        string(INPUT_KEY),
        elicitation(question, version),
    ) + b'"requestState":%b}' % string(state)


class Answer(msgspec.Struct, frozen=True):
    """What an answer is worth. `why` is for the receipt and the operator, never for the model."""

    verdict: Verdict
    why: str


def read_answer(result: bytes | None, question: Form, elapsed_s: float, floor_s: float = FLOOR_S) -> Answer:
    """Judge the raw `ElicitResult` of a client; `None` where none came (timeout, an error response). Never
    raises."""
    if result is None:
        return Answer("nobody", "no answer came")
    if not elapsed_s >= floor_s:
        return Answer("nobody", f"answered after {elapsed_s:.3f} s, faster than a person")
    try:
        seen = members(result)
        action = msgspec.json.decode(seen.get("action", b'""'), type=str)
        content = seen.get("content", b"null")
        raw = members(content).get(FIELD, b"null") if content[:1] == b"{" else b"null"
        value = msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else None
    except (EarnestError, msgspec.MsgspecError, UnicodeDecodeError):
        return Answer("nobody", "the answer could not be read")
    if action == "decline":
        return Answer("no", f"declined after {elapsed_s:.1f} s")
    if action != "accept":
        return Answer("nobody", "dismissed without a choice" if action == "cancel" else "unknown action")
    if value == question.yes:
        return Answer("yes", f"accepted after {elapsed_s:.1f} s")
    if value == question.no:
        return Answer("no", f"chose no after {elapsed_s:.1f} s")
    if value is None:
        return Answer("nobody", "accepted without an answer")
    return Answer("nobody", "accepted with a value of no or another question")


class State(msgspec.Struct, frozen=True):
    """What `requestState` remembers between a question and its retry. Times in milliseconds since the epoch.

    `digest` covers the call itself: what is called, with which arguments, by whom. `lock` covers besides what an approval
    is bound to and the call cannot change (labels, policy); empty where nothing of that kind is bound. `upstream` is the
    request state of the server behind us, to be given back to it (`None` if it gave none), `responses` the answers to that
    server's own questions that were in hand when ours was asked, as raw JSON.
    """

    approval: str
    principal: str
    method: str
    digest: str
    yes: str
    no: str
    asked_ms: int
    expires_ms: int
    upstream: str | None = None
    lock: str = ""
    responses: str = ""


_encode_state: Final = msgspec.json.Encoder().encode
_decode_state: Final = msgspec.json.Decoder(State).decode


def seal(state: State, sealer: Callable[[bytes], str]) -> str:
    """The state as text for `requestState`; `sealer` encrypts and authenticates."""
    return sealer(_encode_state(state))


def read_state(plain: bytes) -> State | None:
    """The state in what was sealed; `None` if something else was."""
    try:
        return _decode_state(plain)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def unseal(
    raw: bytes,
    opener: Callable[[str], bytes | None],
    *,
    principal: str,
    method: str,
    digest: str,
    now_ms: int,
) -> State | None:
    """The state in a raw `requestState`, or `None`: not ours, changed, expired, or of another caller or
    request.

    `opener` gives `None` for what it did not seal. Whether a state was used before is the caller's to know.
    """
    try:
        plain = opener(msgspec.json.decode(raw, type=str))
        state = read_state(plain) if plain is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if state is None or (state.principal, state.method, state.digest) != (principal, method, digest):
        return None
    return state if state.asked_ms <= now_ms < state.expires_ms else None


def read_retry(params: Mapping[str, bytes], state: State, now_ms: int, floor_s: float = FLOOR_S) -> Answer:
    """Judge the answer inside a retry, whose `requestState` gave `state`. Never raises."""
    responses = params.get("inputResponses", b"null")
    try:
        answer = members(responses).get(INPUT_KEY) if responses[:1] == b"{" else None
    except EarnestError:
        return Answer("nobody", "the answer could not be read")
    return read_answer(answer, Form("", state.yes, state.no), (now_ms - state.asked_ms) / 1000, floor_s)


def forwarded(params: Mapping[str, bytes], state: State) -> bytes:
    """The params of a retry as the server behind us is to see them: without our answer, with its own
    state."""
    seen = dict(params)
    responses = members(seen.pop("inputResponses", b"{}"))
    responses.pop(INPUT_KEY, None)
    if responses:
        seen["inputResponses"] = build(responses)
    seen.pop("requestState", None)
    if state.upstream is not None:
        seen["requestState"] = string(state.upstream)
    return build(seen)


def _refusal(text: str, receipt: str, modern: bool) -> bytes:
    said = f"{text} (receipt {receipt})" if receipt else text
    parts = [b'"content":[{"type":"text","text":%b}],"isError":true' % string(said)]
    if receipt:
        parts.append(b'"_meta":{"dev.earnest/receipt":%b}' % string(receipt))
    if modern:
        parts.append(b'"resultType":"complete"')
    return b"{%b}" % b",".join(parts)


def denied(receipt: str, modern: bool = False) -> bytes:
    """The result of a call that policy forbids. Says nothing of the policy: the model is not its audience."""
    return _refusal(
        "This call was not run: it is not allowed here. Repeating it, or doing the same another way, will not help. "
        "Go on without it, and tell the user what you could not do.",
        receipt,
        modern,
    )


def declined(receipt: str, modern: bool = False) -> bytes:
    """The result of a call to which a person said no."""
    return _refusal(
        "This call was not run: the person who was asked said no. Do not repeat it; ask the user how to go on.",
        receipt,
        modern,
    )


def waiting(receipt: str, modern: bool = False) -> bytes:
    """The result of a call that waits for a person; the same call again picks up a later yes."""
    return _refusal(
        "This call was not run yet: it is waiting for a person to approve it. Nobody has said no. Tell the user that "
        "an approval is waiting, then retry this same call with the same arguments.",
        receipt,
        modern,
    )


def expired(receipt: str, modern: bool = False) -> bytes:
    """The result of a call whose approval ran out before it was given or used."""
    return _refusal(
        "This call was not run: nobody approved it in time. Make it again if it is still needed; it will be asked anew.",
        receipt,
        modern,
    )


def used(receipt: str, modern: bool = False) -> bytes:
    """The result of a call whose approval has run a call already."""
    return _refusal(
        "This call was not run again: its approval was used already, and one approval is for one call. Make it again if it is "
        "needed once more; it will be asked anew.",
        receipt,
        modern,
    )


def failed(text: str, receipt: str, modern: bool = False) -> bytes:
    """The result of a call that could not be carried out for a reason that is no decision: a lost server, a
    limit. `receipt` may be empty."""
    words = text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
    return _refusal(words, receipt, modern)
