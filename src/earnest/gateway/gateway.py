"""The gateway itself: the sessions, the servers behind them, the calls in flight, and the tick that writes before it sends.

Everything runs on one loop. What a call needs is either ready (then it goes from request to dispatch without waiting for
anything but the write of its decision record, one for all calls of a tick) or is made ready by a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from earnest.config.settings import Settings
from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane
from earnest.gateway.answers import Answers
from earnest.gateway.asking import Asking
from earnest.gateway.catalogs import Catalogs
from earnest.gateway.client import Client
from earnest.gateway.contained import ContainedLink
from earnest.gateway.levels import Levels
from earnest.gateway.links import Links, Owner
from earnest.gateway.lists import changed, render
from earnest.gateway.names import Names
from earnest.gateway.previewing import Previews
from earnest.gateway.records import Records
from earnest.gateway.relay import Relay
from earnest.gateway.rounds import Rounds
from earnest.gateway.seal import Seal
from earnest.gateway.served import Served
from earnest.gateway.server_requests import ServerRequests
from earnest.gateway.session import Session
from earnest.gateway.suspended import Suspended
from earnest.gateway.tasks import Tasks
from earnest.gateway.tracks import ORDINARY_S, Layer
from earnest.gateway.views import Views
from earnest.gateway.watches import Watches
from earnest.net.tracks import Ground
from earnest.pdp.approvals import Approvals
from earnest.pdp.catalog import Tool
from earnest.pdp.engine import Engine
from earnest.protocol import bridge
from earnest.protocol.envelope import Message
from earnest.sandbox.undo import Undos
from earnest.store.base import Approval
from earnest.upstream.base import Link
from earnest.upstream.opening import ClientHello

TICK_S: Final = 0.5
FRESH_S: Final = 2.0
"""Seconds for which a walked list answers the next list request without being walked again."""

SAID_CHARS: Final = 200
"""Characters of a server's own words that are logged."""

AGAIN_S: Final = 0.5
"""Seconds between two walks of a list that changed while it was walked."""

_TOLD: Final = ("notifications/message", "notifications/resources/updated", "notifications/tasks/status")
"""What a legacy server says outside any call and its clients hear."""

Connect = Callable[[Served, ClientHello, Mapping[str, str], Lane | None, int], Link]


class Gateway:
    """See the module."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        settings: Settings,
        engine: Engine,
        catalogs: Catalogs,
        records: Records,
        approvals: Approvals,
        seal: Seal,
        connect: Connect,
        wall: Callable[[], float],
        log: Callable[[str], None],
        undos: Undos,
        scrub: Callable[[str], str] = lambda text: text,
        umask: int = 0o022,
    ) -> None:
        """`scrub` takes secrets out of what clients are told in earnest's own words. `umask`: where no client tells one."""
        self.scrub, self._umask = scrub, umask
        self.loop = loop
        self.settings = settings
        self.engine = engine
        self.catalogs = catalogs
        self.overlays: dict[str, Catalogs] = {}
        self.records = records
        self.seal = seal
        self.wall = wall
        self.log = log
        self.now: Callable[[], float] = loop.time
        self.views = Views(settings.views)
        self.links = Links(restarts=settings.limits.restarts, first_pause_s=settings.limits.restart_wait_s)
        self.asking = Asking(self, approvals)
        self.previews = Previews(undos, records)
        self.server_requests = ServerRequests(self)
        self.rounds = Rounds()
        self.answers = Answers()
        self.levels = Levels()
        self.tasks = Tasks()
        self.watches = Watches(self)
        self.suspended = Suspended(self)
        self.names = Names()
        self.sessions: set[Session] = set()
        self.relays: dict[Relay, str] = {}
        """Calls under way, each with what its client's calls are counted under."""
        self.on_asked: set[Callable[[Approval], None]] = set()
        self._connect = connect
        self.by_client: dict[str, int] = {}
        self.by_server: dict[str, int] = {}
        """Calls under way, counted by client and by server."""
        self.layer: Layer | None = None
        """Where calls go along tracks, if they can."""
        self._queue: list[Relay] = []
        self._flushing = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listed_at: dict[Link, float] = {}
        self._stale: set[Link] = set()
        self._renewing: set[Link] = set()
        self._quiet: set[Link] = set()
        self._refreshing: dict[Link, asyncio.Task[bool]] = {}
        self._ticker: asyncio.TimerHandle | None = None
        self._rendered: dict[tuple[int, str], tuple[int, bytes]] = {}

    # life

    def start(self) -> None:
        """Begin to watch deadlines."""
        self._ticker = self.loop.call_later(TICK_S, self._tick)

    async def stop(self) -> None:
        """End calls, sessions and servers; nothing is left running."""
        if self._ticker is not None:
            self._ticker.cancel()
        ending = EarnestError("E1508", "the gateway is ending")
        if self.layer is not None:
            self.layer.close()
        for relay in list(self.relays):
            # Clients hear it now, because nobody could tell them later; what a person was asked stays asked.
            relay.interrupted(ending)
        for session in list(self.sessions):
            session.close()
        await self.links.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self.records.flush()

    @property
    def under_way(self) -> int:
        """How many calls are under way."""
        return len(self.relays) + (len(self.layer.tracks.under_way) if self.layer is not None else 0)

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return bool(self.under_way or self.asking.held)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task that the gateway keeps, and whose failure is told."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, EarnestError):
            self.log(str(error))
        else:
            self.loop.call_exception_handler({"message": "a task of the gateway failed", "exception": error})

    def _tick(self) -> None:
        self._ticker = self.loop.call_later(TICK_S, self._tick)
        now = self.now()
        if self.layer is not None:
            self.layer.settle(ORDINARY_S)
        self.suspended.expire(now)
        self.watches.expire()
        for relay in [r for r in self.relays if r.state == "sent" and (now >= r.deadline or now >= r.hard_deadline)]:
            relay.timed_out()
        self.asking.approvals.expire()
        ended = self.engine.conversations.expire(
            connected={session.client.key for session in self.sessions},
            busy={relay.judgement.question.key for relay in self.relays if relay.judgement is not None},
        )
        for key in ended:
            self.records.note("conversation-expired", "an idle conversation ended, as configured", conversation=key)
        if ended:
            self.flush_soon()

    # sessions and servers

    def join(self, session: Session) -> None:
        """A client came."""
        self.sessions.add(session)
        self.engine.conversations.open(session.client.key, minted=True)

    def forget(self, session: Session) -> None:
        """A client left: its links are closed."""
        self.sessions.discard(session)
        self.names.forget(session)
        self.watches.forget(session)
        self.links.release(lambda owner: owner.session == session.id)

    def catalogs_of(self, client: Client) -> Catalogs:
        """The catalogs of a client: under its working directory's file they are stricter ones. Raises E1027 where that file's
        are not loaded any more: then it is not the operator's own that count."""
        if not client.overlay:
            return self.catalogs
        if client.overlay not in self.overlays:
            raise EarnestError("E1027", "the configuration of this client's folder is not loaded any more", "Connect again.")
        return self.overlays[client.overlay]

    def servers_of(self, session: Session) -> list[Served]:
        """The configured servers of a session's route, as a client with its capabilities sees them."""
        route = session.route
        if session.client.overlay and session.client.overlay not in self.overlays:
            return []
        every = self.catalogs_of(session.client).served(session.capabilities)
        if route.kind == "server":
            return [served for served in every if served.name == route.name]
        if route.kind == "view":
            only = self.views.servers(route.name)
            return [served for served in every if not only or served.name in only]
        return every

    def servers_mark(self, session: Session) -> tuple[object, ...]:
        """What `servers_of` goes by: while it is equal, so is the answer."""
        overlay = session.client.overlay
        catalogs = self.overlays.get(overlay) if overlay else self.catalogs
        return catalogs, catalogs.revision if catalogs is not None else 0, self.views, session.route, session.capabilities

    def owner_of(self, session: Session, served: Served, lane: Lane | None = None) -> Owner:
        """Whose link it is: the session's, one for each set of capabilities, or everyone's where the operator said `shared`. Of
        a contained server in that lane; None for the one that lists come from."""
        behind = lane or served.list_lane or ""
        if served.shared and not session.forwarded:
            # Headers of one client's own never carry another's calls.
            return Owner(served.name, lane=behind)
        capabilities = session.capabilities.decode("utf-8", "replace") if session.modern else ""
        return Owner(served.name, session.id, capabilities, behind)

    def ready(self, session: Session, served: Served, lane: Lane | None = None) -> Link | None:
        """The link for a call, if it is open and its list is walked: the fast path. `lane` as in `owner_of`."""
        link = self.links.ready(self.owner_of(session, served, lane))
        if link is None or link not in self._listed_at or link in self._stale or link in self._renewing:
            return None
        return link

    def link_grounds(self, session: Session, served: Served, link: Link) -> list[Ground]:
        """What it stands on that `ready` gives this link (`net.tracks`)."""
        of_lists: list[Ground] = [("lacks", unready, link, None) for unready in (self._stale, self._renewing)]
        return [*of_lists, self.links.grounds(self.owner_of(session, served), link)]

    async def prepare(self, session: Session, served: Served, *, refresh: bool = False, lane: Lane | None = None) -> Link:
        """The link for a call, opened and with its tools walked. `refresh`: walked again unless it was just now. `lane` as in
        `owner_of`. Raises E12xx, E18xx."""
        owner = self.owner_of(session, served, lane)
        behind = lane or served.list_lane
        hello, umask = session.hello_for_servers(), self.umask_of(session, served)

        def opened(link: Link) -> None:
            link.on_notification = lambda message: self._server_said(served, owner, link, message)
            for gone in [known for known in self._listed_at if not known.alive]:
                del self._listed_at[gone]
                self._stale.discard(gone)

        try:
            link = await self.links.get(owner, lambda: self._connect(served, hello, session.forwarded, behind, umask), opened)
        except EarnestError as error:
            if error.said and error.code != "E1205":  # what a process wrote before its end is in the log already
                self.log(f"[{served.name}] {error.message}; it said: {self.scrub(error.said)[:SAID_CHARS]}")
            raise
        listed = self._listed_at.get(link)
        if listed is None or link in self._stale or link in self._renewing or (refresh and self.now() - listed > FRESH_S):
            await self._refresh(served, link)
            if link in self._stale:
                # It changed again while it was walked; a server that never stops changing is not waited for any longer.
                await self._refresh(served, link)
        return link

    def umask_of(self, session: Session, served: Served) -> int:
        """Its client's own, or, where that is not known or several share it, that of whoever started the daemon."""
        return self._umask if session.client.umask is None or served.shared else session.client.umask

    async def apart(self, session: Session, served: Served, lane: Lane) -> Link:
        """A fresh link to a contained server in a box of its own, for one use; the caller closes it. Raises E12xx, E18xx."""
        hello, umask = session.hello_for_servers(), self.umask_of(session, served)
        link = self._connect(served, hello, session.forwarded, lane, umask)
        await link.open()
        return link

    async def wake(self, session: Session, served: Served) -> None:
        """Open a server ahead of its first call; a failure is only logged, the call will tell."""
        try:
            await self.prepare(session, served)
        except EarnestError as error:
            self.log(f"[{served.name}] {error}")

    async def _refresh(self, served: Served, link: Link) -> bool:
        task = self._refreshing.get(link)
        if task is None:
            task = self.spawn(self._walk(served, link))
            self._refreshing[link] = task
            task.add_done_callback(lambda _: self._refreshing.pop(link, None))
        return await asyncio.shield(task)

    async def _walk(self, served: Served, link: Link) -> bool:
        # Until the walk is done, the list that stands is not the one that the server spoke of: calls wait.
        if link in self._stale:
            self._renewing.add(link)
        self._stale.discard(link)
        first = not served.server.listed
        try:
            if isinstance(link, ContainedLink) and link.lane is not served.list_lane:
                await link.walk()  # compared with each call; what is served is what the other lane lists
                differs = False
            else:
                known = (one for one in (self.catalogs, *self.overlays.values()) if one.knows(served.server))
                differs = await next(known, self.catalogs).walk(served, link)
        except BaseException:
            self._stale.add(link)
            raise
        finally:
            self._renewing.discard(link)
        self._listed_at[link] = self.now()
        if differs:
            self.names.changed()
            if not first:
                self.tell_changed(served, "notifications/tools/list_changed")
        return differs

    def tell_changed(self, served: Served | None, method: str) -> None:
        """What is served changed: tell the sessions that see it. `None`: of any server."""
        for session in list(self.sessions):
            if served is None or any(other.server.identity == served.server.identity for other in session.servers()):
                changed(session, method)

    def resolved_again(self) -> None:
        """Trust, labels, pins or policy changed: every list may read otherwise now."""
        self._rendered.clear()
        self.names.changed()
        self.tell_changed(None, "notifications/tools/list_changed")

    def restart_servers(self) -> None:
        """The configuration was read again: links to configured servers are opened anew at the next call."""
        own = {session.id for session in self.sessions if session.has_own_server}
        self.links.release(lambda owner: owner.session not in own)

    def links_of(self, session: Session) -> list[Link]:
        """The open links that serve only this session."""
        return [link for owner, link in self.links.all() if owner.session == session.id]

    def _server_said(self, served: Served, owner: Owner, link: Link, message: Message) -> None:
        """A notification outside any call."""
        if message.method == "notifications/tools/list_changed":
            # Nothing is told before the new list is pinned and judged; calls wait for it meanwhile.
            self._stale.add(link)
            if link not in self._quiet:
                self._quiet.add(link)
                self.spawn(self._refresh_quietly(served, link))
            return
        for session in list(self.sessions):
            mine = owner.session == session.id if owner.session else any(s.name == served.name for s in session.servers())
            if not mine:
                continue
            if message.method in ("notifications/prompts/list_changed", "notifications/resources/list_changed"):
                self.names.changed()
                changed(session, message.method)
            elif message.method == "notifications/resources/updated" and session.modern:
                self.watches.updated(session, served, message.params)
            elif message.method in _TOLD and session.ready and self.tasks.hears(session, served, message):
                params = message.params
                if message.method == "notifications/resources/updated" and session.route.kind != "server":
                    params = self.names.relabelled(session, served, "resources/list", params)
                raw = bridge.notification_to(session.modern, message.method, params)
                if raw is not None and not session.modern:
                    session.transport.notify(raw)

    async def _refresh_quietly(self, served: Served, link: Link) -> None:
        """Walk until the list walked last is the one the server spoke of last; who sees it is told by the walk."""
        try:
            while link in self._stale and link.alive:
                await self._refresh(served, link)
                if link in self._stale:
                    await asyncio.sleep(AGAIN_S)  # a server that changes its list with each look at it
        except EarnestError as error:
            self.log(f"[{served.name}] {error}")
        finally:
            self._quiet.discard(link)

    def rendered(self, tool: Tool, alias: str) -> bytes:
        """A tool as served; kept while its profile and pin stay as they are."""
        key = (id(tool), alias)
        mark = hash((tool.profile, tool.state, tool.pin, tool.words.lane))
        known = self._rendered.get(key)
        if known is not None and known[0] == mark:
            return known[1]
        if len(self._rendered) > 20_000:
            self._rendered.clear()
        raw = render(tool, alias)
        self._rendered[key] = (mark, raw)
        return raw

    # calls

    def enter(self, relay: Relay) -> EarnestError | None:
        """Count a call in; the limit it would break, if any."""
        limits = self.settings.limits
        client = self.counted_as(relay)
        server = relay.served.name if relay.served is not None else ""
        if self.by_client.get(client, 0) >= limits.in_flight_per_client:
            return EarnestError(
                "E1703", f"too many calls in flight ([limits] in_flight_per_client = {limits.in_flight_per_client})"
            )
        if self.by_server.get(server, 0) >= limits.in_flight_per_server:
            return EarnestError(
                "E1704", f"too many calls in flight ([limits] in_flight_per_server = {limits.in_flight_per_server})"
            )
        self.by_client[client] = self.by_client.get(client, 0) + 1
        self.by_server[server] = self.by_server.get(server, 0) + 1
        relay.session.relays[relay.kept] = relay
        self.relays[relay] = client
        return None

    def counted_as(self, relay: Relay) -> str:
        """What a client's calls are counted under: its name at its process, because many clients go by one name."""
        return f"{relay.session.client.name} {relay.session.client.key[-1]}"

    def take_over(self, relay: Relay) -> None:
        """A call that was counted in along a track."""
        relay.session.relays[relay.kept] = relay
        self.relays[relay] = self.counted_as(relay)

    def leave(self, relay: Relay) -> None:
        """Count a call out."""
        client = self.relays.pop(relay, None)
        if client is None:
            return
        relay.session.relays.pop(relay.kept, None)
        for counts, name in (
            (self.by_client, client),
            (self.by_server, relay.served.name if relay.served is not None else ""),
        ):
            left = counts.get(name, 1) - 1
            if left:
                counts[name] = left
            else:
                counts.pop(name, None)

    def queue(self, relay: Relay) -> None:
        """Send a call after this tick's decision records are with the operating system."""
        self._queue.append(relay)
        self.flush_soon()

    def flush_soon(self) -> None:
        """Write what was recorded, at the end of this tick."""
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        queue, self._queue = self._queue, []
        try:
            self.records.flush()
        except EarnestError as error:
            self.log(str(error))
            if self.layer is not None:
                queue += self.layer.recall()
            for relay in queue:
                if not relay.done:
                    relay.unavailable(error)
            return
        if self.layer is not None:
            try:
                queue += self.layer.depart()
            except Exception as error:
                self.loop.call_exception_handler({"message": "calls along tracks could not be sent", "exception": error})
        for relay in queue:
            try:
                relay.send()
            except Exception as error:  # a mistake with one call keeps none of the others
                self.loop.call_exception_handler({"message": "a call could not be sent", "exception": error})
                relay.lost(EarnestError("E1506", "earnest made a mistake"), sent=True)

    def asked(self, approval: Approval) -> None:
        """A call waits for a person."""
        for told in tuple(self.on_asked):
            told(approval)
