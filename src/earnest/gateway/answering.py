"""What a person says of calls: answers to asks, endorsements, the end of a conversation."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, cast

import msgspec

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.core.flow import Key, names
from earnest.gateway.looking import Looking, told_causes
from earnest.gateway.person import person
from earnest.pdp.engine import steering_digest
from earnest.pdp.persist import CallValues, key_text
from earnest.store.anchor import loss_of, note_loss
from earnest.store.base import Approval
from earnest.store.base import Endorsement as EndorsementRow

if TYPE_CHECKING:
    from earnest.gateway.process.control import ControlPeer


class Answering(Looking):
    """The operations about approvals and conversations."""

    # approvals

    async def op_approvals(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What waits for a person, or all that is kept."""
        return [_approval(row) for row in self._app.approvals.listed(bool(request.get("all")))]

    async def op_approvals_watch(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """What waits, and then each new ask as it comes."""
        app = self._app
        queue: asyncio.Queue[Approval] = asyncio.Queue()
        app.gateway.on_asked.add(queue.put_nowait)
        try:
            for row in app.approvals.listed():
                await peer.reply(_approval(row))
            while True:
                await peer.reply(_approval(await queue.get()))
        finally:
            app.gateway.on_asked.discard(queue.put_nowait)

    async def op_approve(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """Answer an ask: once, no, or for this conversation with these destinations."""
        person(peer, "answering an ask")
        app = self._app
        row = app.approvals.get(str(request["id"]))
        if row is None:
            raise EarnestError("E1608", f"there is no ask {request['id']!r}", "`earnest approvals` lists what waits.")
        answer = str(request["answer"])
        if answer not in ("once", "no", "conversation"):
            raise EarnestError("E1608", f"{answer!r} is no answer", "Answer once, no or conversation.")
        by = f"user:{peer.uid}"
        receipt = ""
        if answer == "conversation" and row.state == "pending":
            receipt = self._endorse_ask(row, by)
        valid = app.world.settings.asking.valid_s
        if not app.approvals.decide(row.id, answer != "no", channel="terminal", valid_s=valid, by=by):
            now = app.approvals.get(row.id)
            raise EarnestError(
                "E1609",
                f"the ask {row.id} is {now.state if now is not None else 'gone'} already; the answer changes nothing",
                exit_code=1,
            )
        return {"id": row.id, "answer": answer, "receipt": receipt}

    def _endorse_ask(self, row: Approval, by: str) -> str:
        prompt = msgspec.json.decode(row.prompt)
        key = tuple(prompt["conversation"])
        values = steering_digest(prompt["arguments"].encode(), frozenset(prompt["content_arguments"]))
        bound = CallValues(
            prompt["identity"],
            prompt["tool"],
            prompt["pin"],
            values,
            _steering_text(prompt["arguments"], prompt["content_arguments"]),
        )
        return self._endorse(key, bound, prompt["server"], by)

    def _endorse(self, key: Key, bound: CallValues, server: str, by: str, kind: str = "call") -> str:
        app = self._app
        what = "what it reads sets no label of strangers' text in" if kind == "source" else "endorsed for"
        receipt = app.records.event(
            "endorsement",
            f"{server}/{bound.tool} with {bound.text}: {what} this conversation",
            principal=by,
            server=server,
            tool=bound.tool,
            conversation=key,
        )
        row = EndorsementRow(
            id=app.new_id("e"),
            conversation=key_text(key),
            kind=kind,
            values=msgspec.json.encode(bound).decode(),
            created=app.wall(),
            receipt=receipt,
        )
        app.endorsements.add(row)
        return receipt

    # conversations

    async def op_conversations(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """All known conversations, with what set their labels."""
        app = self._app
        found = []
        for line in app.conversations.list():
            key: Key = tuple(cast(list[str], line["key"]))
            found.append(
                {
                    **line,
                    "name": "/".join(key),
                    "causes": told_causes(app.conversations.causes(key)),
                    "endorsements": [
                        {"id": row.id, "receipt": row.receipt, "kind": row.kind, **msgspec.json.decode(row.values)}
                        for row in app.endorsements.listed(key)
                    ],
                }
            )
        return found

    async def op_conversation_end(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A person says that a conversation is over: its labels go."""
        person(peer, "ending a conversation")
        app = self._app
        key = self._key(request["conversation"], peer)
        labels = names(app.conversations.labels(key))
        receipt = app.records.event(
            "conversation-ended",
            f"labels {', '.join(labels) or '(none)'} of {'/'.join(key)} end by a person's word",
            principal=f"user:{peer.uid}",
            conversation=key,
        )
        gone = app.conversations.end(key, {session.client.key for session in app.gateway.sessions})
        app.endorsements.end(gone)
        return {"ended": ["/".join(k) for k in gone], "receipt": receipt}

    async def op_store_lost_understood(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A person has understood that the store lost something: conversations begin anew, definitions wait to be looked at."""
        person(peer, "saying that the loss of the store is understood")
        app = self._app
        loss = loss_of(app.store)
        if loss is None:
            raise EarnestError("E1417", "the store has lost nothing", exit_code=1)
        receipt = app.records.event("store-lost-understood", f"understood: {loss.text}", principal=f"user:{peer.uid}")
        note_loss(app.store, None)
        app.conversations.loss = None
        for catalogs in (app.world.catalogs, *app.gateway.overlays.values()):
            catalogs.understood()
        app.gateway.resolved_again()
        return {"receipt": receipt, "text": loss.text}

    async def op_conversation_endorse(self, request: dict[str, Any], peer: ControlPeer) -> Any:
        """A standing yes for one tool with given steering values, in one conversation. `source`: not for the call, but for what
        it reads."""
        person(peer, "endorsing")
        key = self._key(request["conversation"], peer)
        served = (await self._look({"server": request["server"]}, peer))[0]
        kind = "source" if request.get("source") else "call"
        name = str(request["tool"])
        tool = served.server.tools.get(name) or (served.server.methods.get(name) if kind == "source" else None)
        if tool is None:
            raise EarnestError("E1607", f"{served.name} has no tool {request['tool']!r}")
        arguments = str(request["arguments"])
        canonical.canonical(arguments.encode())
        text = _steering_text(arguments, sorted(tool.takes_text))
        bound = CallValues(
            served.server.identity, tool.name, tool.pin, steering_digest(arguments.encode(), tool.takes_text), text
        )
        receipt = self._endorse(key, bound, served.name, f"user:{peer.uid}", kind)
        return {"receipt": receipt, "values": text}


def _approval(row: Approval) -> dict[str, Any]:
    return {
        "id": row.id,
        "state": row.state,
        "created": row.created,
        "decided": row.decided,
        "expires": row.expires,
        "channel": row.channel,
        "by": row.by,
        **msgspec.json.decode(row.prompt, type=dict[str, Any]),
    }


def _steering_text(arguments: str, content: list[str]) -> str:
    """The values an endorsement is bound to, for a person."""
    members = canonical.members(arguments.encode() or b"{}")
    words = [f"{name}={shlex.quote(raw.decode())}" for name, raw in members.items() if name not in content]
    return " ".join(words) or "no arguments that steer it"
