"""One event of a host's hook, as the daemon hands it to whoever answers hooks, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from earnest.core.flow import Key
from earnest.pdp.catalog import Server, Tool
from earnest.pdp.engine import Engine
from earnest.pdp.facts import Judgement


class Event(msgspec.Struct, frozen=True):
    """What arrived. `argv`: the words after `earnest hook`. `body`: all of standard input; empty if it was `too_long`.
    `host`: the key of the host process, its principal alone where the kernel does not tell it. `orphan`: the kernel tells that
    no program that can be a host started it."""

    argv: tuple[str, ...]
    body: bytes
    too_long: bool
    host: Key
    orphan: bool


class Answer(msgspec.Struct, frozen=True):
    """What the host's hook prints, and its exit code."""

    out: bytes = b""
    err: bytes = b""
    code: int = 0


class Recorder(Protocol):
    """Where receipts go. `flush` hands all to the operating system; raises E14xx, and then nothing may go on."""

    def decided(self, judgement: Judgement, decision: Literal["allow", "ask", "deny"]) -> str: ...
    def finished(self, judgement: Judgement, outcome: str, detail: str = "", result: bytes = b"") -> None: ...
    def note(self, what: str, text: str, **facts: object) -> str: ...
    def flush(self) -> None: ...


Served = Callable[[Key, str, str], "tuple[str, Server, Tool] | None"]
"""Of a host process, what it calls a server and a tool: the gateway's name of the server, server and tool, if a session of that
very host has them from the gateway now, on whatever route."""

Asked = Callable[[Judgement], str]
"""Has a call asked about that its host cannot ask about: `yes` where a person has said so (the approval is used), the id of the
ask that waits, or nothing where nobody can be asked. Raises E14xx."""

Unheard = Callable[[Callable[[str], None]], None]
"""Tells of each session that was answered without a daemon, and forgets it once that has been taken in."""


class Parts(msgspec.Struct, frozen=True):
    """What whoever answers hooks works with. `asks_itself`: whether the operator leaves a host's asks to that host."""

    engine: Engine
    records: Recorder
    served: Served
    log: Callable[[str], None]
    asked: Asked
    asks_itself: Callable[[str], bool]
    unheard: Unheard


Hooks = Callable[[Parts], Callable[[Event], Answer]]
"""Makes what answers hooks."""
