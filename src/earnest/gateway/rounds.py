"""A modern server needs input and its client is a legacy one: it is asked inside its call, which then goes on with the answers.

The server's `input_required` names its questions; each becomes the request that the client's era has for it, under an id of
earnest's own and in the call's own stream. An answer carries the client's data to the server, so it is judged like any other
before it is handed over. When all are there, the same call is sent on with them and with the server's state, untouched.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.gateway.answers import Gathering
from earnest.gateway.server_requests import able
from earnest.protocol import calls, methods, quoted
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.methods import Method

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay
    from earnest.protocol.outcomes import Outcome
    from earnest.upstream.base import Link

MOST_ROUNDS: Final = 8
"""Rounds of one call; a server that asks on and on is not followed for ever."""
MOST_QUESTIONS: Final = 16
"""Questions of one round."""


class Rounds:
    """What servers need to know before they can answer, asked of their clients."""

    def begin(self, call: Relay, link: Link, outcome: Outcome) -> bool:
        """Ask the client what the server wants to know, if this is a legacy client's call to a modern server and it can be
        asked all of it. Returns whether it is being asked; if not, the answer is the bridge's to say."""
        if outcome.result_type != "input_required" or call.session.modern or not link.hello.modern:
            return False
        if call.rounds >= MOST_ROUNDS:
            return False
        try:
            wanted = _read(call, outcome.input_requests)
        except (EarnestError, WireError):
            return False
        if wanted is None or not (wanted or outcome.request_state):
            return False
        call.rounds += 1
        call.deadline = call.hard_deadline  # its people take the time they take
        Round(call, link, wanted, outcome.request_state).start()
        return True


def _read(call: Relay, raw: bytes) -> dict[str, tuple[Method, bytes]] | None:
    """The questions by their keys; None where one cannot be put to this client. Raises for what is no question."""
    wanted: dict[str, tuple[Method, bytes]] = {}
    for key, one in (canonical.members(raw) if raw else {}).items():
        seen = canonical.members(one)
        row = methods.answer(calls.text(seen, "method"))
        params = seen.get("params", b"")
        if row is None or not call.session.declared(row.name) or not able(call.session.capabilities, row.name, params):
            return None
        wanted[key] = (row, _for_legacy(params, call.session.version))
    return wanted if len(wanted) <= MOST_QUESTIONS else None


def _for_legacy(params: bytes, version: str) -> bytes:
    """The params of a question as a legacy revision has them: where a page is to be opened with an id, which 2025-11-25 wants
    and 2026-07-28 does not have."""
    if version != "2025-11-25" or b'"url"' not in params:
        return params
    seen = canonical.members(params)
    if seen.get("mode") != b'"url"' or "elicitationId" in seen:
        return params
    return canonical.build({**seen, "elicitationId": calls.string(secrets.token_hex(16))})


class Round(Gathering):
    """The questions of one `input_required`, until all are answered or one is refused."""

    def __init__(self, call: Relay, link: Link, wanted: dict[str, tuple[Method, bytes]], state: bytes) -> None:
        super().__init__(call, link, len(wanted))
        self._questions = wanted
        self._state = state

    def start(self) -> None:
        """Put the questions to the client."""
        for key, (row, params) in self._questions.items():
            asked = quoted.question(self.call.served.name if self.call.served is not None else "", row.name, params)
            self.call.session.ask_client(row.name, asked, self.call.outlet, partial(self._answered, key, row))
        if not self._questions:
            self.complete({})

    def _answered(self, key: str, row: Method, answer: Message) -> None:
        if answer.error:
            # What a client says in an error was judged by nobody, so only that it is one counts.
            self.refused("the client could not answer what the server asked")
        else:
            self.judge(key, row, answer.result)

    def complete(self, given: dict[str, bytes]) -> None:
        self.call.again(canonical.build(given), self._state)
