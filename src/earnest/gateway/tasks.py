"""Whose a task is: what a server works on after its call was answered belongs to the principal whose call made it.

A task's id is no proof of anything, and over HTTP many people may reach one server with the same credentials; so earnest
remembers who made which, and nobody else gets, lists, updates or cancels it. What is not remembered (a restart, or too many
since) is nobody's. What a task brings in the end is a result like any other: it is labelled when it is fetched.

Across eras there is one way: a legacy tool that can only be called as a task, for a modern client. The gateway asks for the
task and fetches its result within the one call: the client sees a call that takes long, and neither side a task of the other
era.

Sources: MCP 2025-11-25, "Tasks"; extension `io.modelcontextprotocol/tasks` (SEP-2663).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.pdp.catalog import Tool
from earnest.protocol import calls, envelope
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.outcomes import Outcome
from earnest.upstream.base import Link

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay
    from earnest.gateway.served import Served
    from earnest.gateway.session import Session

MOST: Final = 10_000
"""Tasks that are remembered; the oldest go first."""
CROSSING: Final = "a task of one era of MCP has no form in the other, so this server's tasks cannot be reached from here"

UNKNOWN: Final = (
    "unknown task: a task is known to who made it, until earnest is started anew; if that happened since, its call may have "
    "taken effect, and its result cannot be fetched from here"
)


class _Task(msgspec.Struct):
    taskId: str = ""


class Tasks:
    """Whose the tasks of all servers are."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = {}
        self._lanes: dict[tuple[str, str], Lane] = {}
        self.followed: dict[Relay, bytes] = {}
        """Calls of modern clients that wait for the result of a legacy task, with its raw id."""

    def follow(self, call: Relay, link: Link, outcome: Outcome) -> bool:
        """Fetch the result of the task that a legacy server made of a modern client's call; whether it did."""
        crosses = call.session.modern and not link.hello.modern
        if not crosses or outcome.result_type != "task" or call.method.kind != "tool" or call in self.followed:
            return False
        id = self.followed[call] = calls.string(outcome.task_id)
        call.deadline = call.hard_deadline  # its server said that it takes long
        call._exchange = link.call("tasks/result", canonical.build({"taskId": id}), call)
        return True

    def over(self, call: Relay, outcome: str) -> None:
        """A call is over; where its result is not wanted any more, its task is not either."""
        id = self.followed.pop(call, None)
        if id is not None and outcome in ("cancelled", "timeout") and call._link is not None and call._link.alive:
            call.gateway.spawn(_cancel(call._link, id))

    def made(self, session: Session, served: Served, id: str, lane: Lane | None) -> None:
        """A call of this session's made a task, in a lane of a contained server."""
        key = (served.server.identity, id)
        principal = session.client.principal
        # Two people are given one id: it can be neither's.
        # So too where two lanes, which know nothing of each other, give one.
        own = self._owners.pop(key, principal) == principal and (lane is None or self._lanes.setdefault(key, lane) is lane)
        self._owners[key] = principal if own else ""
        while len(self._owners) > MOST:
            gone = next(iter(self._owners))
            del self._owners[gone]
            self._lanes.pop(gone, None)

    def mine(self, session: Session, served: Served, id: str) -> bool:
        """Whether the principal of this session made it."""
        return self._owners.get((served.server.identity, id)) == session.client.principal

    def lane(self, served: Served, id: str) -> Lane | None:
        """The lane in which a task was made."""
        return self._lanes.get((served.server.identity, id))

    def check(self, call: Relay, link: Link) -> None:
        """Hold what a request says of tasks: to servers of the client's own era, and of the principal's own. Raises
        `WireError`."""
        if link.hello.modern is not call.session.modern:
            raise WireError(envelope.METHOD_NOT_FOUND, CROSSING, http_status=404)
        if call.method.names == "taskId" and call.served is not None and not self.mine(call.session, call.served, call.subject):
            raise WireError(envelope.INVALID_PARAMS, UNKNOWN)

    def hears(self, session: Session, served: Served, message: Message) -> bool:
        """Whether a session may hear a notification: of tasks only its principal's own."""
        if message.method != "notifications/tasks/status":
            return True
        try:
            return self.mine(session, served, msgspec.json.decode(message.params or b"{}", type=_Task).taskId)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False

    def listed(self, session: Session, served: Served, result: bytes) -> bytes:
        """The result of `tasks/list` without what others made."""
        try:
            members = canonical.members(result)
            every = msgspec.json.decode(members.get("tasks", b"[]"), type=list[msgspec.Raw])
            kept = [bytes(one) for one in every if self.mine(session, served, msgspec.json.decode(one, type=_Task).taskId)]
        except (EarnestError, msgspec.MsgspecError):
            return b'{"tasks":[]}'
        return result if len(kept) == len(every) else canonical.build({**members, "tasks": b"[%b]" % b",".join(kept)})


def required(tool: Tool | None) -> bool:
    """Whether a legacy tool can only be called as a task."""
    if tool is None or b'"taskSupport"' not in tool.definition:
        return False
    try:
        execution = canonical.members(canonical.members(tool.definition).get("execution", b"{}"))
    except EarnestError:
        return False
    return execution.get("taskSupport") == b'"required"'


async def _cancel(link: Link, id: bytes) -> None:
    try:
        await link.ask("tasks/cancel", canonical.build({"taskId": id}))
    except EarnestError:
        pass  # it goes on for nobody
