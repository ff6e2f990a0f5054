"""A call run first where it changes nothing, so that a person sees what a yes would do, and a yes does just that.

    asked ──> a fresh process in a box: no network, what it may write to is a copy ──> what it changed, its answer withheld
     │          all of it can be made real ──> the ask shows it ──yes──> made real if nothing moved ──> the withheld answer
     │                                                                     └─ moved ──> nothing happens, an error says so
     └────────  else (it failed, hung, tried the network, changed what cannot be made real) ──> the ask says so, and a yes
                lets the call run as ever

What is asked about is bound to the change (`Judgement.change`): another change is another ask. A preview is kept for the retry
of its call, in this process alone; after a restart the retry is previewed again, and the yes fits if the change is the same.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.core.verdict import Reason, Verdict
from earnest.core.visible import visible
from earnest.gateway import spoken
from earnest.gateway.contained import ContainedLink
from earnest.gateway.lanes import previewed, tier_of
from earnest.pdp.approvals import PENDING_S, lock_of
from earnest.protocol import asking as forms
from earnest.protocol import envelope, outcomes
from earnest.protocol.envelope import Message, WireError
from earnest.sandbox import changeset
from earnest.sandbox.box import Folder, Plan
from earnest.sandbox.changeset import ChangeSet, Start, State
from earnest.sandbox.difference import as_json, told
from earnest.sandbox.journalled import Conflict
from earnest.store.base import lock_text
from earnest.upstream.base import Reply
from earnest.upstream.stdio import StdioLink
from earnest.upstream.waiter import Waiter

if TYPE_CHECKING:
    from earnest.gateway.records import Records
    from earnest.gateway.relay import Relay
    from earnest.pdp.facts import Judgement
    from earnest.sandbox.undo import Meta, Undos

AT_ONCE: Final = 4
"""Previews that run at the same time; others wait for one to end."""
LONGEST_S: Final = 20.0
"""Seconds a preview may take, start of the server included."""
MOST: Final = 64
MOST_BYTES: Final = 128 << 20
"""Previews that are kept for a retry, and the bytes in them."""
_SCRATCH: Final = ("/tmp", "/var/tmp", "/dev", "/run", "/proc")
_TICK_S: Final = 5.0


class _Hearer(Waiter):
    """Waits for a previewed call's answer, or for the server to ask the client for something: then there is nothing to show,
    since what it does next goes by an answer that nobody gave."""

    asked = ""

    def request(self, message: Message) -> bool:
        self.asked = message.method
        self.reply(Reply())
        return False


class Preview(msgspec.Struct, frozen=True):
    """What came of one. `why`: because of which a yes does not make `changes` real but lets the call run as ever; empty where
    it does. `reply` is withheld until then."""

    why: str
    changes: ChangeSet = ChangeSet()
    begun: Start = Start(0, ())
    reply: Reply = Reply()
    link: ContainedLink | None = None
    """Closed by now; it tells in which era the reply is."""
    made: float = 0.0
    asked: str = ""
    """Why it is asked about though it can be undone."""
    shown: tuple[str, ...] = ()
    data: dict[str, Any] = {}
    """What changes, for a person and for programs (`sandbox.difference`)."""

    @property
    def real(self) -> bool:
        """Whether a yes makes its changes real."""
        return not self.why

    @property
    def undoable(self) -> bool:
        """Whether its changes can be made real without a question, where only the integrity rule asks."""
        return self.real and not self.asked

    @property
    def digest(self) -> str:
        """What a yes is bound to: the change, or nothing where it lets the call run."""
        return self.changes.digest if self.real else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """As a person reads it before the answer."""
        if self.real:
            head = "Preview: it was run without network over a copy; nothing has happened yet. A yes does this, and no more:"
            more = (f"  It can be undone, and yet is asked about: {visible(self.asked)}.",) if self.asked else ()
            return (head, *(f"  {line}" for line in self.shown or ("nothing is changed",)), *more)
        head = f"Preview: {visible(self.why)}. A yes lets the call run for real, with all that the server may do."
        return (head, *(["  Over a copy it did this:"] if self.shown else []), *(f"    {line}" for line in self.shown))

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {"real": self.real, "why": self.why, **(self.data or as_json(self.changes))}

    def holds(self) -> bool:
        """Whether what it was made from still is as it was, as far as a look shows; a commit looks closer."""
        for item in self.changes.items:
            try:
                status = os.lstat(item.shown)
            except OSError:
                if item.seen is not None:
                    return False
                continue
            if item.seen is None or (status.st_dev, status.st_ino) != (item.seen.device, item.seen.inode):
                return False
            if item.before is not None and item.before.kind == "file" and status.st_ctime_ns != item.seen.changed_ns:
                return False
        return True


class Previews:
    """All previews of one gateway."""

    def __init__(self, undos: Undos, records: Records) -> None:
        self.undos, self.records = undos, records
        self._kept: dict[str, Preview] = {}
        self._asks: dict[str, str] = {}
        """Of those that are kept, the ask that each was shown in."""
        self._running: dict[Relay, asyncio.Task[object]] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @staticmethod
    def offered(relay: Relay) -> bool:
        """Whether a call can be run over a copy first: it acts, and its operator says that its server's state is on disk."""
        served, judgement = relay.served, relay.judgement
        if served is None or judgement is None or relay.method.name != "tools/call":
            return False
        if not previewed(served.launch.grants, judgement.lane):
            return False
        return not relay.upstream_state and not relay.upstream_answers and "task" not in relay.members

    def begin(self, relay: Relay) -> bool:
        """Run an asked call over a copy, unless that was done: then False, and what it showed is the call's. Else
        `Asking.ask` is called again once it is over."""
        judgement = relay.judgement
        assert judgement is not None
        if relay.preview is None and self.offered(relay):
            known = self._known(relay)
            if known is None:
                relay.state = "previewed"
                self._running[relay] = relay.gateway.spawn(self._run(relay))
                return True
            relay.preview = known
        if relay.preview is not None and not judgement.change:
            judgement.change, why = relay.preview.digest, relay.preview.why
            text = f"run over a copy first: {why or f'a yes makes the change {judgement.change[:16]} real'}"
            judgement.reasons = (*judgement.reasons, Reason("preview", text, Verdict.ALLOW))
        return False

    def asked(self, relay: Relay, ask: str) -> None:
        """A call is asked about with its preview shown, which is the call's for as long as that ask is open."""
        if relay.preview is not None and self._kept.get(_key(relay)) is relay.preview:
            self._asks[_key(relay)] = ask

    def _known(self, relay: Relay) -> Preview | None:
        """The preview that a retry of its call goes by: a person was shown it and has not said no, and what it was made from is
        as it was."""
        key = _key(relay)
        known, ask = self._kept.get(key), relay.gateway.asking.approvals.get(self._asks.get(key, ""))
        if known is None or ask is None or ask.state not in ("pending", "approved"):
            return None
        return known if relay.gateway.now() - known.made <= PENDING_S and known.holds() else None

    def stop(self, relay: Relay) -> None:
        """The client no longer wants the call."""
        task = self._running.pop(relay, None)
        if task is not None:
            task.cancel()

    async def _run(self, relay: Relay) -> None:
        gateway = relay.gateway
        ticking = gateway.spawn(_tick(relay)) if relay.progress_token else None
        try:
            async with self._at_once:
                made = await self._made(relay)
        except Exception as error:
            gateway.loop.call_exception_handler({"message": "a call could not be previewed", "exception": error})
            made = Preview("earnest made a mistake when it ran it over a copy", made=gateway.now())
        finally:
            self._running.pop(relay, None)
            if ticking is not None:
                ticking.cancel()
        if relay.done:
            return
        relay.preview = made
        self._keep(_key(relay), made)
        assert relay.judgement is not None
        try:
            if relay.judgement.undoable:
                self.settle(relay)
            else:
                gateway.asking.ask(relay)
        except Exception as error:
            if not isinstance(error, EarnestError):
                gateway.loop.call_exception_handler({"message": "a previewed call could not go on", "exception": error})
                error = EarnestError("E1506", "earnest made a mistake; the call was not sent")
            if not relay.done:
                relay.unavailable(error)

    def settle(self, relay: Relay) -> None:
        """Let a call go on that is allowed because it can be undone: run over a copy it is made real from there, or judged
        again as any other."""
        if self.begin(relay):
            return
        if relay.preview is None:
            relay.preview = Preview("it cannot be run over a copy")
        if relay.preview.undoable:
            relay.release()
        elif relay.link is not None:
            relay.judge(relay.link)

    def _keep(self, key: str, preview: Preview) -> None:
        self._drop(key)
        self._kept[key] = preview
        size = sum(_size(each) for each in self._kept.values())
        for old in list(self._kept):
            if old == key or (len(self._kept) <= MOST and size <= MOST_BYTES):
                break
            size -= _size(self._kept[old])
            self._drop(old)

    def _drop(self, key: str) -> None:
        self._kept.pop(key, None)
        self._asks.pop(key, None)

    # running it

    async def _made(self, relay: Relay) -> Preview:
        assert relay.served is not None and relay.served.launch.grants is not None
        grants = relay.served.launch.grants
        link: StdioLink | None = None
        try:
            async with asyncio.timeout(LONGEST_S):
                if not (await asyncio.to_thread(tier_of, grants)).sight.copies_in_place:
                    why = "the sandbox of this machine can show a copy only at another path"
                    return Preview(why, made=relay.gateway.now())
                begun = await asyncio.to_thread(_start, grants.write)
                opened = await relay.gateway.apart(relay.session, relay.served, Lane.PREVIEW)
                assert isinstance(opened, ContainedLink)
                link = opened
                return await self._called(relay, opened, begun)
        except TimeoutError:
            return Preview(f"it was not over within {LONGEST_S:.0f} s over a copy", made=relay.gateway.now())
        except (EarnestError, WireError, OSError) as error:
            text = error.message if isinstance(error, (EarnestError, WireError)) else str(error.strerror)
            return Preview(f"it could not be run over a copy ({relay.gateway.scrub(text)})", made=relay.gateway.now())
        finally:
            if link is not None:
                await link.close()

    async def _called(self, relay: Relay, link: ContainedLink, begun: Start) -> Preview:
        box, tool = link.box, relay.tool
        assert box is not None and tool is not None
        await link.walk()
        if not link.offers(tool):
            return Preview("over a copy its server shows another tool of that name", made=relay.gateway.now())
        before = len(box.events())
        waiter = _Hearer(relay.gateway.loop)
        id = link.reserve()
        link.call("tools/call", spoken.params(relay, link, id), waiter, id=id, named=relay.subject)
        reply = await waiter.future
        if waiter.asked:
            why = f"over a copy it asked the client for something ({waiter.asked[:80]}), and nobody answered"
            return Preview(why, made=relay.gateway.now())
        await StdioLink.close(link)  # what it writes at its end belongs to the call; the box goes later

        assert relay.served is not None
        now, umask = relay.gateway.now(), relay.gateway.umask_of(relay.session, relay.served)

        def looked() -> Preview:
            scratch = (*_SCRATCH, tempfile.gettempdir())
            changes = changeset.change_set(box.look(), box.bytes_of, begun, box.events(before), scratch, umask)
            loaded = relay.gateway.engine.flows.reader.loaded
            asked, shown, data = self._asked(relay, changes), tuple(told(changes, loaded)), as_json(changes, loaded)
            return Preview(_why(reply, changes), changes, begun, reply, link, now, asked, shown, data)

        return await asyncio.to_thread(looked)

    def _asked(self, relay: Relay, changes: ChangeSet) -> str:
        """Why a change is asked about though it can be undone."""
        if not self.undos.has_room(changes):
            return "there is no room to keep what undoing it would take"
        loaded = relay.gateway.engine.flows.reader.loaded
        found = next((item.shown for item in changes.items if item.after is not None and loaded(item.shown)), "")
        if found:
            return f"it writes {found}, which something runs or obeys later"
        ran = next((item.shown for item in changes.items if _runs(item.after) and not _runs(item.before)), "")
        return f"it makes {ran} a program" if ran else ""

    # making it real

    def commit(self, relay: Relay) -> None:
        """A yes was said and is on record: make the change real, and answer with what was withheld."""
        assert relay.preview is not None
        self._drop(_key(relay))
        served, now = relay.served, relay.gateway.now()
        assert served is not None
        relay.state, relay.deadline, relay.hard_deadline = "sent", now + served.timeout, now + served.timeout
        relay.gateway.spawn(self._commit(relay, relay.preview))

    async def _commit(self, relay: Relay, preview: Preview) -> None:
        judgement, gateway = relay.judgement, relay.gateway
        assert judgement is not None
        question = judgement.question
        try:
            if preview.changes.items:
                meta = await asyncio.to_thread(
                    self.undos.commit, preview.changes, preview.begun, judgement.id, question.server.name, question.subject,
                    question.key, judgement.undoable and not judgement.approval,
                )  # fmt: skip
                self._tell(judgement, preview, meta)
        except Conflict as error:
            if not relay.done:
                text = f"files that this call changes were changed meanwhile; nothing was done ({gateway.scrub(error.message)})"
                relay.refuse("moved", forms.failed(f"{text}. Make the call again", judgement.id, relay.session.modern), text)
            return
        except Exception as error:
            if not isinstance(error, EarnestError):
                gateway.loop.call_exception_handler({"message": "a change could not be made real", "exception": error})
                error = EarnestError("E1506", "earnest made a mistake; the call may or may not have taken effect")
            if not relay.done:
                relay.unavailable(error, "not-sent" if error.code != "E1506" else "lost")
            return
        relay._link = preview.link
        relay.reply(preview.reply)

    def _tell(self, judgement: Judgement, preview: Preview, meta: Meta) -> None:
        """Put on record what was made real, and until when it can be undone."""
        question = judgement.question
        until = datetime.fromtimestamp(meta.expires).isoformat(" ", "minutes")
        self.records.note(
            "committed",
            f"what {question.server.name}/{question.subject} changed over a copy was made real; undo until {until}",
            server=question.server.name,
            tool=question.subject,
            conversation=question.key,
            receipt=judgement.id,
            change=preview.digest,
            paths=len(preview.changes.items),
            undo_until=until,
        )


async def _tick(relay: Relay) -> None:
    """Tell a waiting client that its call goes on, in numbers below those of the ask that follows."""
    for count in range(1, 100):
        await asyncio.sleep(_TICK_S)
        params = b'{"progressToken":%b,"progress":0.%02d,"message":"running over a copy first, for a person to look at"}'
        relay.outlet.send(envelope.notification("notifications/progress", params % (relay.progress_token, count)))


def _runs(state: State | None) -> bool:
    return state is not None and state.kind == "file" and state.mode & 0o111 != 0


def _start(folders: Sequence[str]) -> Start:
    return changeset.start(Plan((), {}, "/", "/", tuple(Folder(path, path, "copy") for path in folders)))


def _why(reply: Reply, changes: ChangeSet) -> str:
    """Why a yes cannot just make the changes real and give the answer."""
    if reply.error:
        return "over a copy its server answered with an error"
    outcome = outcomes.outcome(reply.result)
    if outcome.is_error:
        return "over a copy it failed"
    if outcome.malformed or outcome.result_type != "complete" or outcome.task_id:
        return "over a copy it did not come to an end (it asks for input, or makes a task)"
    if changes.attempted:
        return "it tried to reach the network"
    if changes.refused:
        return f"not all that it changes can be made real ({len(changes.refused)} of its paths cannot)"
    return ""


def _key(relay: Relay) -> str:
    """The call itself, without what moves around it."""
    assert relay.judgement is not None
    return lock_text(msgspec.structs.replace(lock_of(relay.judgement), labels=0, policy_sha256="", change=""))


def _size(preview: Preview) -> int:
    return sum(len(data) for data in preview.changes.contents.values()) + len(preview.reply.result)
