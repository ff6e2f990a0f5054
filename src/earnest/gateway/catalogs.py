"""The servers of one daemon: configured ones and those that came with a session, with all that is known of each.

A server's entry in the catalog belongs to its identity and to the capabilities it was told (a server may list other tools to
a client that can be asked). Trust, labels, packs and evidence are gathered here for each tool; what they mean is the core's
to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.config import identity as identities
from earnest.config.identity import Identity
from earnest.config.packs import Pack, PackTool, match
from earnest.config.sections import ServerSettings, ToolLabels
from earnest.config.settings import Settings
from earnest.core import pin
from earnest.core.dispatch import DispatchSpec
from earnest.core.errors import EarnestError
from earnest.core.profile import NOTHING, Labels, Trust, entailed, raising
from earnest.core.sanitize import Sanitizer
from earnest.core.scrub import SHORTEST, Scrubber
from earnest.gateway import evidence, lanes
from earnest.gateway.launch import brought, launch_of, settings_beyond, shown
from earnest.gateway.operator import looking, refiners_of
from earnest.gateway.served import Launch, Served
from earnest.pdp.catalog import Refiner, Server, Tool, Words, stricter
from earnest.pdp.persist import KeptPins
from earnest.store.anchor import loss_of
from earnest.store.base import Evidence, OperatorLabel, Store
from earnest.store.base import Server as ServerRow
from earnest.upstream.base import Link
from earnest.upstream.opening import pages

FILE_TRUST: Final = "file-trust:"
"""Prefix of the store's note of which identity a name had when the file's trust was first used."""
_ORDER: Final = {Trust.UNTRUSTED: 0, Trust.VERIFIED: 1, Trust.TRUSTED: 2}
MAX_VARIANTS: Final = 64


class _Entry:
    """One server by name and identity, in all its variants."""

    def __init__(self, name: str, identity: Identity, launch: Launch, settings: ServerSettings, timeout: float) -> None:
        self.name = name
        self.identity = identity
        self.launch = launch
        self.settings = settings
        self.timeout = timeout
        self.variants: dict[str, Served] = {}
        self.offered: dict[Server, tuple[list[bytes], str]] = {}


class Catalogs:
    """See the module."""

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        packs: Sequence[Pack],
        env: Mapping[str, str],
        secrets: Mapping[str, str],
        wall: Callable[[], float],
        log: Callable[[str], None],
        hidden: Scrubber | None = None,
    ) -> None:
        """`env`: what configured servers inherit. `secrets`: what `${env:X}` in the configuration refers to. `hidden` learns
        the secrets that servers are given."""
        self.settings = settings
        self._store = store
        self._packs = packs
        self._env = env
        self._secrets = secrets
        self._wall = wall
        self._log = log
        self._hidden = hidden if hidden is not None else Scrubber()
        self._pins = KeptPins(store)
        self._configured: dict[str, _Entry] = {}
        self._own: dict[tuple[str, str], _Entry] = {}
        self._labels: dict[str, dict[str, OperatorLabel]] = {}
        self._evidence: dict[str, list[Evidence]] = {}
        self.revision = 0
        """Counts what happened to the set of configured servers after it was loaded."""
        self.broken: dict[str, EarnestError] = {}
        """Configured servers that cannot even be started, by name."""

    # which servers there are

    def retry(self, env: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        """The environment has grown: what was broken may be found now."""
        self._env, self._secrets = env, secrets
        self.revision += 1
        broken, self.broken = self.broken, {}
        for name in self.settings.servers:
            if name in broken:
                self._load_one(name, quiet=True)
        order = {name: at for at, name in enumerate(self.settings.servers)}
        self._configured = dict(sorted(self._configured.items(), key=lambda item: order[item[0]]))

    def load(self) -> None:
        """Work out who the configured servers are. One that cannot be (no such command, a missing secret) is kept as broken and
        takes none of the others down."""
        for name, settings in self.settings.servers.items():
            if settings.command or settings.url is not None:
                self._load_one(name, quiet=False)

    def _load_one(self, name: str, *, quiet: bool) -> None:
        try:
            self._configured[name] = self._entry(name, self.settings.servers[name])
        except EarnestError as error:
            self.broken[name] = error
            if not quiet:
                self._log(f"[{name}] {error}")

    def _entry(self, name: str, settings: ServerSettings) -> _Entry:
        found = launch_of(settings, folder=self.settings.folder, env=self._env, secrets=self._secrets)
        found = self._contained(settings, found)
        self._hidden.add(found.secrets)
        timeout = settings.timeout or self.settings.limits.call_timeout_s
        if found.url:
            identity = identities.of_url(found.url)
            identity = msgspec.structs.replace(identity, key=_without(found.secrets, identity.key))
        else:
            identity = identities.of_command(found.argv, found.env, found.cwd or "/")
        return _Entry(name, msgspec.structs.replace(identity, display=shown(settings)), found, settings, timeout)

    def served(self, capabilities: bytes = b"{}") -> list[Served]:
        """The configured servers, in the file's order, as a client with these capabilities sees them."""
        return [self._variant(entry, capabilities) for entry in self._configured.values()]

    def own(self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str, capabilities: bytes = b"{}") -> Served:
        """A server that came with a session: `earnest stdio NAME -- COMMAND`. The operator's settings for that name hold for it
        too. Raises E12xx where the command is none."""
        settings = self.settings.servers.get(name) or ServerSettings(name=name)
        launch = brought(argv, cwd, settings, folder=self.settings.folder, env=env, secrets=self._secrets)
        launch = self._contained(settings, launch)
        self._hidden.add(launch.secrets)
        identity = identities.of_command(argv, env, cwd)
        timeout = settings.timeout or self.settings.limits.call_timeout_s
        key = (name, identity.key)
        entry = self._own.get(key)
        if entry is None:
            entry = self._own[key] = _Entry(name, identity, launch, settings, timeout)
        known = self._variant(entry, capabilities)
        if not known.server.credentialed and settings_beyond(launch.env):
            known.server.credentialed = True
            known.server.resolve()
        return Served(name, known.server, launch, timeout=timeout, shared=False)

    def _contained(self, settings: ServerSettings, launch: Launch) -> Launch:
        found, unnamed = lanes.contained(self.settings, settings, launch, self._secrets)
        for name in unnamed:
            self._log(f"[{settings.name}] {name} looks like a secret and goes to no lane: [contain] secrets or env can name it")
        return found

    def configured(self, name: str) -> bool:
        """Whether the configuration has a server of this name that can be started."""
        return name in self._configured

    def _variant(self, entry: _Entry, capabilities: bytes) -> Served:
        mark = hashlib.sha256(capabilities).hexdigest() if len(entry.variants) < MAX_VARIANTS else ""
        served = entry.variants.get(mark)
        if served is None:
            identity = entry.identity
            credentialed = bool(entry.settings.credentialed)
            server = Server(entry.name, identity.key, credentialed=credentialed, display=identity.display)
            server.cwd = entry.launch.cwd
            server.words = lambda server, tool: self._words(entry, server, tool)
            self._note(entry)
            server.set_trust(*self._trust(entry))
            shared = entry.settings.shared
            served = Served(entry.name, server, entry.launch, timeout=entry.timeout, shared=shared)
            entry.variants[mark] = served
        return served

    def _note(self, entry: _Entry) -> None:
        """The first time an identity is seen it gets its row."""
        identity = entry.identity
        row = self._store.server(identity.key)
        artefact = identity.artefact
        if row is None:
            self._store.put_server(
                ServerRow(
                    identity=identity.key,
                    name=entry.name,
                    artefact=artefact,
                    launch=msgspec.json.encode(_kept(entry)).decode(),
                    seen_at=self._wall(),
                )
            )
        elif row.artefact != artefact or row.name != entry.name:
            self._store.put_server(msgspec.structs.replace(row, artefact=artefact, name=entry.name))

    # trust

    def _trust(self, entry: _Entry) -> tuple[Trust, str]:
        """The stricter of file and store, and which of them it is; never more than a found file's cap."""
        trust, source = self._given(entry)
        cap = self.settings.trust_caps.get(entry.name)
        if cap is not None and _ORDER[cap] < _ORDER[trust]:
            return cap, "the working directory's earnest.toml, which trusts it less"
        return trust, source

    def _given(self, entry: _Entry) -> tuple[Trust, str]:
        row = self._store.server(entry.identity.key)
        loss = loss_of(self._store)
        stored = Trust(row.trust) if row is not None and row.trusted_at > (loss.at if loss is not None else 0.0) else None
        filed = entry.settings.trust
        if loss is not None and stored is None:
            # Which identity the file's trust was for, and whether a person has taken it back, was in the store.
            return Trust.UNTRUSTED, f"the store lost what it kept of trust ({loss.text})"
        if filed is not None and filed is not Trust.UNTRUSTED:
            first = self._store.meta(FILE_TRUST + entry.name)
            if not first:
                self._store.set_meta(FILE_TRUST + entry.name, entry.identity.key)
            elif first != entry.identity.key and stored is None:
                return Trust.UNTRUSTED, f"the file's trust was given to another command or address ({first})"
        if stored is None and filed is None:
            return Trust.UNTRUSTED, "default"
        if stored is None or filed is None:
            return (stored, "store") if stored is not None else (filed or Trust.UNTRUSTED, entry.settings.source)
        if _ORDER[stored] < _ORDER[filed]:
            return stored, "store, stricter than the file"
        if _ORDER[filed] < _ORDER[stored]:
            return filed, f"{entry.settings.source}, stricter than the store"
        return stored, "store and file"

    def set_trust(self, identity: str, trust: Trust) -> None:
        """A person at a terminal gave a server this trust."""
        row = self._store.server(identity)
        if row is None:
            raise EarnestError("E1601", f"no server with identity {identity!r} was ever seen")
        self._store.put_server(msgspec.structs.replace(row, trust=trust.value, trusted_at=self._wall()))
        for entry in self._entries():
            if entry.identity.key == identity:
                for served in entry.variants.values():
                    served.server.set_trust(*self._trust(entry))

    # tools

    async def walk(self, served: Served, link: Link) -> bool:
        """Walk all pages of a server's tools and take them into the catalog; whether what is served changed. Raises E12xx."""
        offered: list[bytes] = []
        if b'"tools"' in link.hello.capabilities:
            offered = [raw async for raw in pages(link, "tools/list")]
        server = served.server
        entry = self._entry_of(server)
        if entry is not None:
            entry.offered[server] = (offered, link.hello.instructions)
        return server.update(offered, link.hello.instructions, self._pins, self._wall())

    def compare_again(self, identity: str) -> bool:
        """A pin was accepted or noise marked: compare what servers offered last with what is accepted now."""
        changed = False
        for entry in self._entries():
            if entry.identity.key == identity:
                for server, (offered, instructions) in entry.offered.items():
                    changed = server.update(offered, instructions, self._pins, self._wall()) or changed
        return changed

    def understood(self) -> None:
        """What the store kept before it lost something counts again, as far as it is there."""
        for entry in self._entries():
            for served in entry.variants.values():
                served.server.set_trust(*self._trust(entry))
            self.compare_again(entry.identity.key)
        self.resolve_again()

    def resolve_again(self, identity: str | None = None) -> None:
        """Labels, evidence or packs changed: resolve profiles anew."""
        self._labels.clear()
        self._evidence.clear()
        for entry in self._entries():
            if identity is None or entry.identity.key == identity:
                for served in entry.variants.values():
                    served.server.resolve()

    def by_name(self, name: str) -> list[Served]:
        """All servers known under a name, configured first."""
        return [s for entry in self._entries() if entry.name == name for s in entry.variants.values()]

    def identity(self, server: Server) -> Identity | None:
        """Who a server of these catalogs is."""
        entry = self._entry_of(server)
        return entry.identity if entry is not None else None

    def _entries(self) -> list[_Entry]:
        return [*self._configured.values(), *self._own.values()]

    def knows(self, server: Server) -> bool:
        """Whether this entry of the catalog is one of these."""
        return self._entry_of(server) is not None

    def _entry_of(self, server: Server) -> _Entry | None:
        for entry in self._entries():
            if any(served.server is server for served in entry.variants.values()):
                return entry
        return None

    # what is said of a tool

    def _words(self, entry: _Entry, server: Server, tool: Tool) -> Words:
        filed = self._filed(entry.name, tool.name)
        stored = self._stored(entry.identity.key, tool)
        pack = match(self._packs, entry.identity)
        said: PackTool | None = pack.tool(tool.name, entry.identity) if pack is not None and not tool.is_method else None
        labels = NOTHING
        operator_pin = ""
        refiners: list[Refiner] = []
        holds = said is not None and bool(tool.definition) and said.speaks_for(tool.definition, pin.pin)
        # Roles and dispatchers can lower, so a pack's count only where its lowering labels do.
        vouched = holds and server.trust is not Trust.UNTRUSTED
        roles: dict[str, str] = dict(said.roles) if said is not None and vouched else {}
        dispatch: DispatchSpec | None = said.dispatcher if said is not None and vouched else None
        if said is not None:
            refiners.extend(looking(rule, from_operator=False) for rule in said.refine)
        if filed is not None:
            labels, operator_pin = entailed(filed.labels), filed.pin
            refiners.extend(refiners_of(filed))
            roles.update(filed.arg_roles)
            if filed.dispatcher is not None:
                dispatch = filed.dispatcher
        if stored is not None:
            labels = stricter(labels, entailed(stored))
        violated, supported, support_pin = self._assayed(entry, tool)
        grants = entry.launch.grants
        lane, contained = lanes.lane_words(grants, tool, labels) if grants is not None else (None, NOTHING)
        return Words(
            operator=labels,
            operator_pin=operator_pin,
            pack=said.labels if said is not None else NOTHING,
            pack_holds=holds,
            roles=roles,
            refiners=tuple(refiners),
            dispatch=dispatch,
            violated=violated,
            supported=supported,
            support_pin=support_pin,
            sanitizer=self._sanitizer(entry.name, tool.name),
            lane=lane,
            contained=contained,
            undoable=grants is not None and lanes.undoable(grants, lane),
        )

    def _sanitizer(self, server: str, tool: str) -> Sanitizer | None:
        for one in self.settings.sanitizers:
            if one.server == server and one.tool == tool:
                return one.sanitizer
        return None

    def _filed(self, server: str, tool: str) -> ToolLabels | None:
        for labels in self.settings.labels:
            if labels.server == server and labels.tool == tool:
                return labels
        return None

    def _stored(self, identity: str, tool: Tool) -> Labels | None:
        """An operator's label from the store. It was written for one pin: for another it only raises."""
        known = self._labels.get(identity)
        if known is None:
            known = self._labels[identity] = {row.tool: row for row in self._store.operator_labels(identity)}
        row = known.get(tool.name)
        if row is None:
            return None
        labels = msgspec.json.decode(row.labels, type=Labels)
        loss = loss_of(self._store)
        if (row.pin and row.pin != tool.pin) or (loss is not None and row.written_at <= loss.at):
            labels = raising(labels)
        return msgspec.structs.replace(labels, source=row.source)

    def _assayed(self, entry: _Entry, tool: Tool) -> tuple[frozenset[str], frozenset[str], str]:
        rows = self._evidence.get(entry.identity.key)
        if rows is None:
            rows = self._evidence[entry.identity.key] = self._store.evidence(entry.identity.key)
        found = evidence.known(rows, tool.name, tool.pin, _artefact(entry), _start(entry))
        return found.violated, found.supported, tool.pin if found.supported else ""

    def start(self, server: Server) -> tuple[str, str]:
        """The artefact and the digest of the start of a server, to which support is bound; the artefact is empty where there
        can
        be none."""
        entry = self._entry_of(server)
        return ("", "") if entry is None else (_artefact(entry), _start(entry))

    def assayed(self, server: Server, tool: Tool) -> list[dict[str, Any]]:
        """What assays have shown of a tool, for a person."""
        entry = self._entry_of(server)
        if entry is None:
            return []
        rows = self._store.evidence(entry.identity.key, tool.name)
        return [evidence.told(row, tool.pin, _artefact(entry), _start(entry)) for row in rows]


def _artefact(entry: _Entry) -> str:
    return entry.identity.artefact if entry.identity.kind == "stdio" else ""


def _start(entry: _Entry) -> str:
    """What a configuration gives a server of variables; of a client's own command also what a login has not."""
    configured = entry.settings.command or entry.settings.url is not None
    return evidence.start_of(entry.launch, entry.settings.env.keys() if configured else settings_beyond(entry.launch.env))


def _without(secrets: Collection[str], key: str) -> str:
    """A key that is written down, with digests in place of the secrets in it: it is still another for another secret."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            key = key.replace(secret, f"~{hashlib.sha256(secret.encode()).hexdigest()[:16]}")
    return key


def _kept(entry: _Entry) -> str:
    """How a server is written down. Of a command that a client brought only what it starts: the client has put values in place
    of its references, and no secret of a person's goes to disk. A configured one stands there with its references."""
    if entry.settings.command or entry.settings.url is not None:
        return entry.identity.display
    return f"{entry.launch.argv[0]} …" if not entry.identity.package else f"{entry.launch.argv[0]} … ({entry.identity.package})"
