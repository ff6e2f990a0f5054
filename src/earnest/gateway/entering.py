"""The way of an allowed call into its lane.

A call of a contained server is judged by what its lane can do, so it goes to that lane or nowhere. The lane is opened for the
first call that wants it; what it lists of the tool must be what was judged, for a server may show one face to each lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway.contained import ContainedLink

if TYPE_CHECKING:
    from earnest.gateway.relay import Relay


def begin(call: Relay) -> None:
    """Queue an allowed call for the link of its lane, at once or when that is open, or end it because it cannot go there."""
    link, served, judgement = call.link, call.served, call.judgement
    if served is None or served.list_lane is None or judgement is None or (call.preview is not None and call.preview.real):
        call.gateway.queue(call)
        return
    lane = judgement.lane or call.gateway.tasks.lane(served, call.subject) or served.list_lane
    if isinstance(link, ContainedLink) and link.lane is lane:
        call.gateway.queue(call)
        return
    ready = call.gateway.ready(call.session, served, lane)
    if ready is not None:
        _enter(call, ready)
        return
    call.gateway.flush_soon()  # its decision is recorded while it waits
    call.gateway.spawn(_begin_later(call, lane))


async def _begin_later(call: Relay, lane: Lane) -> None:
    assert call.served is not None
    try:
        link = await call.gateway.prepare(call.session, call.served, lane=lane)
    except EarnestError as error:
        if not call.done:
            call.unavailable(error)
        return
    if not call.done:
        _enter(call, link)


def _enter(call: Relay, link: object) -> None:
    """Have a call go out on the link of its lane, if its tools are there what they were judged to be."""
    assert isinstance(link, ContainedLink) and call.served is not None and call.judgement is not None
    name, tools = call.served.name, call.served.server.tools
    if call.method.kind == "tool":
        judged, now = call.judgement.question.tool, tools.get(call.subject)
        if now is None or (now.offered, now.pin, now.state) != (judged.offered, judged.pin, judged.state):
            text = f"server {name!r} changed {call.subject!r} while its {link.lane} lane was opened; the call was not sent"
            call.unavailable(EarnestError("E1253", text, "Call again: it is then judged as it is now.", exit_code=3))
            return
        for tool in (now, tools.get(call.judgement.judged_as)):
            if tool is not None and not link.offers(tool):
                text = (
                    f"server {name!r} shows another {tool.name!r} in its {link.lane} lane than in the one that its list is from"
                )
                remedy = "Set `list_lane` to the lane whose list is the right one (docs/containment.md)."
                call.unavailable(EarnestError("E1253", f"{text}; the call was not sent", remedy, exit_code=3))
                return
    call._link = link
    call.gateway.queue(call)
