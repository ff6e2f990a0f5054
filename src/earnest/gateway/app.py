"""The daemon's application: configuration, store, engine and gateway put together, and the clients that come to them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec

from earnest.config import overlay as overlays
from earnest.config.packs import built_in, load_packs
from earnest.core.errors import EarnestError
from earnest.core.receipt import Checkpoint
from earnest.gateway.client import Client, Route
from earnest.gateway.connect import Connector
from earnest.gateway.gateway import Gateway
from earnest.gateway.hook_side import HookSide
from earnest.gateway.http_front import HttpFront
from earnest.gateway.keys import HostKeys
from earnest.gateway.loss import hold_store, tell_loss
from earnest.gateway.ops import operations
from earnest.gateway.process import files
from earnest.gateway.process.application import DaemonContext, Op
from earnest.gateway.process.handover import StdioPeer
from earnest.gateway.process.hook_peer import HookPeer
from earnest.gateway.process.peers import Process
from earnest.gateway.recognise import Recogniser
from earnest.gateway.records import Records
from earnest.gateway.seal import Seal
from earnest.gateway.served import Served
from earnest.gateway.stdio_front import StdioFront
from earnest.gateway.tokens import Tokens
from earnest.gateway.tracks import layer_for
from earnest.gateway.views import Views
from earnest.gateway.violations import Violations
from earnest.gateway.world import World, Worlds
from earnest.net.checks import loopback_hosts
from earnest.net.limits import ServerLimits
from earnest.net.listener import Listener, serve
from earnest.net.message import Request
from earnest.net.tracks import chain_of
from earnest.pdp.approvals import Approvals
from earnest.pdp.conversations import Conversations, is_below
from earnest.pdp.engine import Engine
from earnest.pdp.floor import Floor
from earnest.pdp.flows import Flows
from earnest.pdp.hooked import Answer, Event, Hooks, Parts
from earnest.pdp.ids import Ids
from earnest.pdp.persist import KeptEndorsements, KeptLabels, KeptMarks
from earnest.protocol.envelope import Limits
from earnest.sandbox import places
from earnest.sandbox.undo import Undos
from earnest.shim import paths
from earnest.store.base import Head
from earnest.store.payloads import Payloads
from earnest.store.receipts import ReceiptLog
from earnest.store.signing import Signer

WRITER: Final = "gateway"
IDLE_S: Final = 900.0
_HOST: Final = "host"
"""Of a connection's state: the host process behind it and its ancestors, nothing where that is not sure."""
SIGNING_KEYS: Final = "signing-keys"
OWN_FILES: Final = 512
"""Open files beside the listener's connections: pipes and sockets of servers, receipts, the store."""
"""The store's note of the public keys that signed checkpoints: a JSON list of JWKs, oldest first."""


class App:
    """See the module. `Application` of the process."""

    idle_s = IDLE_S

    def __init__(self, ctx: DaemonContext, hooks: Hooks | None = None) -> None:
        self.ctx = ctx
        self._hooks = hooks
        self._answers: Callable[[Event], Answer] | None = None
        self.hook_side = HookSide(self)
        self.env = dict(os.environ)
        self.wall = time.time
        ids = Ids(time.time, secrets.token_bytes)
        self.new_id = ids.new
        self.store, self.anchor = hold_store(ctx.instance, time.time)
        self.packs = load_packs(built_in())
        self.worlds = Worlds(
            path=ctx.config,
            named=ctx.named,
            env=self.env,
            store=self.store,
            packs=self.packs,
            wall=self.wall,
            log=ctx.log.info,
            hidden=ctx.scrub,
        )
        self.world = self.worlds.operator()
        self.found: dict[str, World] = {}
        self._overlays: dict[str, tuple[str, overlays.Overlay]] = {}
        settings = self.world.settings
        self.signer = Signer(f"{ctx.instance}/signing.key", self._publish)
        self.receipts = ReceiptLog(
            f"{ctx.instance}/receipts",
            WRITER,
            self.signer,
            time.time,
            known=self._known_head(),
            on_checkpoint=self._checkpointed,
            strict=settings.receipts.strict,
            chain=chain_of(WRITER),
        )
        self.payloads = Payloads(
            f"{ctx.instance}/payloads",
            WRITER,
            time.time,
            enabled=settings.receipts.payloads,
            days=max(1, int(settings.receipts.payload_days)),
            redact=settings.receipts.redact,
            secrets=ctx.scrub,
        )
        self.records = Records(self.receipts, self.payloads, time.time, ctx.scrub)
        self.undos = Undos(f"{ctx.instance}/undo", time.time, settings.receipts.undo_days)
        for line in self.undos.recover():
            self.records.note("commit-recovered", line)
            ctx.log.warning("%s", line)
        self.conversations = Conversations(KeptLabels(self.store), time.time)
        self.conversations.loss = tell_loss(self.store, self.records, ctx.log)
        self.host_keys = HostKeys(self.conversations, ctx.hosts, lambda: ctx.children.alive)
        self.endorsements = KeptEndorsements(self.store, time.time)
        self.engine = Engine(
            self.world.policy,
            self.conversations,
            self._floor(self.world),
            self.endorsements,
            clock=time.time,
            flows=Flows(self.conversations, mode=settings.flow.integrity, marks=KeptMarks(self.store)),
        )
        self.approvals = Approvals(self.store, time.time, self.new_id)
        self.tokens = Tokens(ctx.instance)
        self.gateway: Gateway
        self.listener: Listener | None = None
        self.http: HttpFront | None = None
        self._recogniser = Recogniser()
        self._host = ""
        self.fronts: set[StdioFront] = set()
        self.waiting_ops = 0
        self._ops = operations(self)
        self._housekeeper: asyncio.TimerHandle | None = None

    def _floor(self, world: World) -> Floor:
        """No call reaches earnest's own files, and the policies of this configuration are some of them."""
        home = self.env.get("HOME", "/")
        own = [paths.home(self.env), self.ctx.instance, self.ctx.config, os.path.join(home, ".config", "earnest")]
        own += [text.path for text in world.settings.policies if text.path]
        return Floor(home=home, own=own)

    def _known_head(self) -> Checkpoint | None:
        row, outside = self.store.head(WRITER), self.anchor.checkpoint(WRITER)
        if row is None or (outside is not None and outside.seq > row.seq):
            return outside
        return Checkpoint(row.writer, row.seq, row.head, row.time)

    def _checkpointed(self, checkpoint: Checkpoint, signature: str) -> None:
        self.store.put_head(Head(checkpoint.writer, checkpoint.seq, checkpoint.head, checkpoint.time, signature))
        self.anchor.signed(checkpoint.seq, checkpoint.head)

    # Application

    @property
    def ops(self) -> Mapping[str, Op]:
        """The operations for the command line."""
        return self._ops

    async def start(self) -> None:
        """Ready for the first client."""
        loop = asyncio.get_running_loop()
        log = self.ctx.log.info
        self.gateway = Gateway(
            loop=loop,
            settings=self.world.settings,
            engine=self.engine,
            catalogs=self.world.catalogs,
            records=self.records,
            approvals=self.approvals,
            seal=Seal(f"{self.ctx.instance}/seal.key"),
            connect=Connector(
                log, self.ctx.children.add, self.ctx.children.remove, self.ctx.scrub, Violations(self).stopped
            ),
            wall=time.time,
            log=log,
            undos=self.undos,
            scrub=self.ctx.scrub,
            umask=self.ctx.umask,
        )
        self.gateway.layer = layer_for(self.gateway, self.receipts, self.payloads)
        self.gateway.start()
        self.hook_side.mark()
        self.gateway.spawn(self._load_key())
        self.gateway.spawn(asyncio.to_thread(places.sweep))  # boxes of a daemon that was killed
        self._housekeeper = loop.call_later(60, self._keep_house)

    async def _load_key(self) -> None:
        """The library behind the signing key takes a while to load: in a thread, once the daemon serves."""
        await asyncio.get_running_loop().run_in_executor(None, lambda: self.signer.public)
        self.signer.publish()
        # What an earlier daemon wrote and did not sign, because it was killed, is signed as soon as it can be.
        self.receipts.checkpoint()

    def _publish(self, public: dict[str, str]) -> None:
        """The public half of the signing key goes into the store, so that receipts can be verified by whoever reads both."""
        known = msgspec.json.decode(self.store.meta(SIGNING_KEYS) or "[]", type=list[dict[str, str]])
        if public not in known:
            self.store.set_meta(SIGNING_KEYS, msgspec.json.encode([*known, public]).decode())

    def _keep_house(self) -> None:
        loop = asyncio.get_running_loop()
        self._housekeeper = loop.call_later(60, self._keep_house)
        try:
            self.payloads.flush()
            self.payloads.prune()
            self.gateway.spawn(asyncio.to_thread(self.undos.prune))
            self.receipts.checkpoint()
        except EarnestError as error:
            self.ctx.log.warning("%s", error)
        if self.http is not None:
            self.http.expire()

    def busy(self) -> bool:
        """Whether ending now would lose something."""
        return bool(self.gateway.busy or self.listener is not None or self.waiting_ops or self.fronts)

    async def stop(self) -> None:
        """End what runs, write what is owed."""
        if self._housekeeper is not None:
            self._housekeeper.cancel()
        await self.unlisten()
        await self.gateway.stop()
        self.payloads.flush()
        self.receipts.close()
        self.store.close()

    # clients on pipes

    def on_stdio(self, peer: StdioPeer) -> None:
        """A shim handed its client over."""
        who = peer.who
        self.offer_env(who.env, person=False)
        world, overlay = self.world_at(who.cwd)
        if not who.argv and not world.catalogs.configured(who.name) and self._reload_if_changed():
            world, overlay = self.world_at(who.cwd)  # the server may have been written into the file since
        name = who.client or "stdio"
        own = None
        if who.argv:
            argv, env, cwd = who.argv, who.env, who.cwd

            def own(capabilities: bytes) -> Served:
                return self.world_of(overlay).catalogs.own(who.name, argv, env, cwd, capabilities)

            own(b"{}")
        elif not world.catalogs.configured(who.name):
            broken = world.catalogs.broken.get(who.name)
            if broken is not None:
                raise broken
            known = ", ".join(sorted(world.settings.servers)) or "none"
            raise EarnestError(
                "E1211",
                f"there is no server {who.name!r} in {self.ctx.config} (configured: {known})",
                f"Add [servers.{who.name}] there, or give its command: earnest stdio {who.name} -- COMMAND …",
            )
        client = msgspec.structs.replace(self._client(name, who.uid, who.hosts, world, overlay), umask=who.umask)
        limits = world.settings.limits
        front = StdioFront(
            self.gateway,
            peer,
            client,
            Route("server", who.name),
            Limits(limits.body_bytes, limits.depth),
            lambda: self.new_id("s"),
            own,
            self.fronts.discard,
        )
        self.fronts.add(front)

    def _client(self, name: str, uid: int, chain: Sequence[Process], world: World, overlay: str) -> Client:
        """A client by what the configuration says of its name: its conversation is its host process's, or its user's. `chain`:
        that process and its ancestors."""
        settings = world.settings.client(name)
        principal = f"user:{uid}"
        key = self.host_keys.of(principal, chain)
        below = is_below(key)
        if settings.conversation == "principal":
            key = (principal,)
        if settings.idle_s:
            self.conversations.open(key, minted=True, idle_s=settings.idle_s)
        # A program that a host started is no person's, and it is no host that asks one, whatever name it gives.
        asks, hands_on = settings.asks_person and not below, settings.ask_host and not below
        return Client(name, principal, key, asks, hands_on, overlay, below)

    def world_at(self, cwd: str) -> tuple[World, str]:
        """The configuration for a client that was started in a folder, and the name of what tightens it."""
        found = self.worlds.found(cwd, self.world)
        if found is None:
            return self.world, ""
        world, overlay = found
        key = f"{overlay.path}\0{overlay.sha256}\0{self.store.approved_config(os.path.realpath(overlay.path))}"
        known = self.found.get(key)
        if known is None:
            self.found[key] = known = world
            self._overlays[key] = (os.path.join(cwd, overlays.FILE_NAME), overlay)
            self.engine.overlays[key] = world.policy
            self.gateway.overlays[key] = world.catalogs
            for line in overlay.ignored:
                self.ctx.log.info("%s: %s", overlay.path, line)
        return known, key

    def world_of(self, overlay: str) -> World:
        """The configuration of a client, as it is now: the operator's, or that under the folder's file it came with."""
        if not overlay:
            return self.world
        if overlay not in self.found:
            raise EarnestError("E1027", "the configuration of this client's folder is not loaded any more", "Connect again.")
        return self.found[overlay]

    def offer_env(self, env: Mapping[str, str], *, person: bool) -> None:
        """Whoever talks to the daemon lends it its environment, for servers that could not be started for want of it."""
        if self.worlds.offer(env, person=person):
            for world in (self.world, *self.found.values()):
                self.worlds.again(world)

    def on_hook(self, peer: HookPeer) -> None:
        """A host's hook asks. What answers it is handed in, because it stands beside the gateway."""
        if self._hooks is None:
            peer.finish(b"", b"earnest: E1506: nothing answers hooks here\n", 2)
            return
        if self._answers is None:
            side, log = self.hook_side, self.ctx.log.info
            parts = Parts(self.engine, self.records, side.served, log, side.asked, side.asks_itself, side.unheard)
            self._answers = self._hooks(parts)
        who = peer.who
        host = self.host_keys.of(f"user:{who.uid}", who.hosts)
        orphan = (bool(who.chain) and who.host is None) or len(host) > 2  # a program that a host started is no person's
        answer = self._answers(Event(who.argv, peer.event, peer.too_long, host, orphan))
        peer.finish(answer.out, answer.err, answer.code)

    # clients over HTTP

    async def listen(self, host: str | None, port: int | None) -> str:
        """Open the HTTP listener, or find it open; returns its address. Raises E1540 (port in use) and E1541 (another
        address)."""
        settings = self.world.settings.listen
        wanted = (host or settings.host, settings.port if port is None else port)
        if self.listener is None:
            limits = self.world.settings.limits
            self._allow_files(limits.connections)
            self.http = HttpFront(
                self.gateway,
                tokens=self.tokens.digests(),
                hosts=frozenset(),
                origins=frozenset(settings.origins),
                limits=Limits(limits.body_bytes, limits.depth),
                sessions=limits.sessions,
                client_of=self._http_client,
                recognise=self._recognise,
                new_id=lambda: self.new_id("s"),
            )
            self.listener = await serve(
                asyncio.get_running_loop(),
                *wanted,
                self.http.handle,
                ServerLimits(
                    body=limits.body_bytes,
                    headers=limits.headers,
                    header_bytes=limits.header_bytes,
                    head_s=limits.head_s,
                    body_s=limits.body_s,
                    connections=limits.connections,
                ),
            )
            if self.gateway.layer is not None:
                self.listener.begin = self.gateway.layer.tracks.begin
            bound = self.listener.address
            self._host = wanted[0]
            own = loopback_hosts(bound[1]) | {f"{bound[0]}:{bound[1]}"}
            self.http.hosts = own | {h.lower() for h in settings.hosts}
            # A request of the listener's own origin is of no page: nothing that a browser would run is served here.
            self.http.origins |= {f"http://{host}" for host in own if host.endswith(f":{bound[1]}")}
            self._write_address(f"http://{bound[0]}:{bound[1]}")
        bound = self.listener.address
        address = f"http://{bound[0]}:{bound[1]}"
        if port not in (None, 0, bound[1]) or host not in (None, self._host, bound[0]):
            raise EarnestError("E1541", f"the daemon already listens at {address}", "`earnest stop` ends it.")
        return address

    def _allow_files(self, connections: int) -> None:
        wanted = connections + OWN_FILES
        if (allowed := files.allow(wanted)) < wanted:
            self.ctx.log.warning(
                "only %d files may be open here, and [limits] connections = %d needs %d: raise `ulimit -Hn`",
                allowed, connections, wanted,
            )  # fmt: skip

    async def unlisten(self) -> None:
        """Close the HTTP listener, if it is open."""
        if self.listener is not None:
            listener, http, self.listener, self.http = self.listener, self.http, None, None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.ctx.instance}/http")
            await listener.close()
            if http is not None:
                http.expire(-1.0)

    def _write_address(self, address: str) -> None:
        path = f"{self.ctx.instance}/http"
        fresh = f"{path}.new"
        with open(fresh, "wb") as file:
            file.write(msgspec.json.encode({"address": address}))
        os.replace(fresh, path)

    def _http_client(self, name: str, request: Request) -> Client:
        """Who is behind a connection: the token names the client, the kernel the process (same machine, same user)."""
        state = request.connection.state
        read_from, known = state.get(name, (None, None))
        if known is None or read_from is not self.world:
            known = self._client(name, os.getuid(), cast(tuple[Process, ...], state.get(_HOST, ())), self.world, "")
            state[name] = (self.world, known)
        found: Client = known
        return found

    async def _recognise(self, request: Request) -> None:
        """Find the process behind a connection, once, on a thread: it means looking through the machine's processes."""
        listener = self.listener.address if self.listener is not None else None
        request.connection.state[_HOST] = await self._recogniser.host(request.peer, listener)

    # what the command line changes

    def _reload_if_changed(self) -> bool:
        if self.worlds.operator().settings.sha256 == self.world.settings.sha256:
            return False
        self.reload()
        return True

    def reload(self) -> World:
        """Read the configuration again. Raises what reading raises; then all stays as it was."""
        world = self.worlds.operator()
        views = Views(world.settings.views)
        # What tightens the calls of clients that are there holds on, over what is read now.
        used = {front.client.overlay for front in self.fronts} & self._overlays.keys()
        found = {key: self.worlds.under(*self._overlays[key], world) for key in used}
        self.world, self.found = world, found
        self._overlays = {key: self._overlays[key] for key in used}
        self.engine.overlays = {key: under.policy for key, under in found.items()}
        self.engine.policy = world.policy
        self.engine.floor = self._floor(world)
        self.engine.flows.become(world.settings.flow.integrity)
        self.gateway.overlays = {key: under.catalogs for key, under in found.items()}
        self.gateway.settings = world.settings
        self.gateway.catalogs = world.catalogs
        self.gateway.views = views
        for front in self.fronts:
            client = front.client
            settings = self.world_of(client.overlay).settings.client(client.name)
            asks, hands_on = settings.asks_person and not client.below, settings.ask_host and not client.below
            front.become(msgspec.structs.replace(client, asks_person=asks, ask_host=hands_on))
        self.gateway.restart_servers()
        self.gateway.resolved_again()
        self.hook_side.mark()
        return world


def build(ctx: DaemonContext, hooks: Hooks | None = None) -> App:
    """The application of a daemon. Raises `EarnestError` for a configuration, policy or store that cannot be used."""
    return App(ctx, hooks)
