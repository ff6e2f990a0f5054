"""The catalog: every server earnest knows, what its tools are now, what a person was shown, and the profile in force.

Theory. The definitions a person saw are pinned. What a server offers now is compared with them: neutral changes pass,
tightening ones take effect at once and become the pin, anything else is loosening: the tool keeps being served as it was
pinned, what is believed of it is suspended, and its calls ask until a person has seen the difference. A tool that appears
later was never shown and asks too. First contact with a server pins what it shows; that pins words, it trusts nothing.

List and call use the same entries (law 4): a list is a rendering of them and a call looks one up, so no list need ever have
been asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from earnest.core import canonical, pin, receipt
from earnest.core.decide import PinState, Table
from earnest.core.errors import EarnestError
from earnest.core.hints import RawHints, raw_from_wire
from earnest.core.lanes import Lane
from earnest.core.profile import NOTHING, RISKY_VALUES, Labels, Profile, Standing, Trust, resolve, riskier
from earnest.core.sanitize import Sanitizer
from earnest.pdp.schema import only_plain_values
from earnest.protocol.labels import Listed, listed, tool_labels
from earnest.protocol.resolution import is_marked

INSTRUCTIONS: Final = "\0instructions"
"""The name under which a server's instructions are pinned."""


class SavedPin(msgspec.Struct, frozen=True):
    """One pinned definition. `pending` is a definition that waits for a person, empty if none."""

    tool: str
    pin: str
    definition: bytes
    pending: bytes = b""
    seen_at: float = 0.0


class PinBook(Protocol):
    """Where pins are kept, by server identity (and authorization, which is part of the identity key)."""

    def pins(self, identity: str) -> list[SavedPin]:
        """All pins of a server."""

    def save_pins(self, identity: str, pins: Iterable[SavedPin]) -> None:
        """Write pins, in one transaction."""

    def noise(self, identity: str) -> Sequence[str]:
        """Regular expressions of path text that a person marked as noise."""

    def lost_at(self) -> float:
        """When it was found that pins were lost; what was seen before then counts as unseen. 0: nothing was."""


class Words(msgspec.Struct, frozen=True):
    """What the operator and a pack say of one tool, found by whoever reads the configuration.

    `operator_pin` is the pin that the operator's labels were written for, empty for the one first seen. `pack_holds`: the pack
    speaks for this very definition. `refiners` look at arguments.
    """

    operator: Labels = NOTHING
    operator_pin: str = ""
    pack: Labels = NOTHING
    pack_holds: bool = False
    roles: Mapping[str, str] = {}
    refiners: tuple[Refiner, ...] = ()
    dispatch: object | None = None
    violated: frozenset[str] = frozenset()
    supported: frozenset[str] = frozenset()
    support_pin: str = ""
    sanitizer: Sanitizer | None = None
    """What of its results is left, by the operator's word."""
    intent: str = ""
    """What the tool does as a name would say it, where its own name does not."""
    lane: Lane | None = None
    """Which lane its calls go to, where its server is contained."""
    contained: Labels = NOTHING
    """What that lane makes impossible."""
    undoable: bool = False
    """Its calls can be run over a copy first, reach nothing but files, and what is made real of them can be undone."""


Refiner = Callable[[Mapping[str, object]], "Refined | None"]


class Refined(msgspec.Struct, frozen=True):
    """What a refiner says of one call."""

    labels: Labels
    why: str
    from_operator: bool


NO_WORDS: Final = Words()


class Tool:
    """One tool (or method that is judged like one) as it is in force. Only the catalog changes it."""

    __slots__ = (
        "annotations", "claims", "compact", "definition", "difference", "flow", "is_method", "lane", "marked", "name",
        "offered", "output_schema", "pin", "profile", "standing", "state", "tables", "takes_text", "title", "words",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_method = False
        self.lane: Lane | None = None
        """Of a method, where it always goes to one lane, as what asks for a task does."""
        self.definition = b"{}"
        """What is served and judged, raw."""
        self.offered = b"{}"
        """What the server offers now, raw."""
        self.pin = ""
        self.state = PinState.HOLDS
        self.difference: pin.Difference | None = None
        self.title: str | None = None
        self.annotations: bytes = b""
        self.output_schema: bytes = b""
        self.marked = False
        """The server says that it resolves its hints for each call."""
        self.claims = RawHints()
        self.words = NO_WORDS
        self.standing = Standing()
        self.profile: Profile = resolve(self.standing)
        self.compact = receipt.compact(self.profile)
        """The profile in one line, for receipts."""
        self.takes_text: frozenset[str] = frozenset()
        self.tables: dict[object, Table] = {}
        """Decisions that stand ready, by policy, client and refined profile; emptied when anything above changes."""
        self.flow: object | None = None
        """What `pdp.flows` made ready of it; dropped when anything above changes."""

    @property
    def asks_server(self) -> bool:
        """Whether its server is believed enough to be asked about each call (`tools/resolve`)."""
        return self.marked and self.standing.trust is Trust.TRUSTED and self.standing.pin_holds

    @property
    def resolvable(self) -> bool:
        """Whether a call's hints may differ from those listed: by its arguments, or by the server's own word."""
        return bool(self.words.refiners) or self.words.dispatch is not None or self.asks_server

    @property
    def approval_pin(self) -> str:
        """What a yes to one call is bound to: the pin, and where another definition waits for a person, that one as well, so
        that a yes given before the change does not fit after it."""
        if self.state not in (PinState.LOOSENED, PinState.REFUSED):
            return self.pin
        return f"{self.pin} offered {hashlib.sha256(self.offered).hexdigest()}"


class _ToolWire(msgspec.Struct):
    name: str
    title: str | None = None
    annotations: dict[str, object] | None = None
    outputSchema: object = None
    meta: dict[str, object] | None = msgspec.field(default=None, name="_meta")


class Server:
    """One server by its identity: trust, pins, tools."""

    def __init__(self, name: str, identity: str, *, credentialed: bool, display: str = "") -> None:
        self.name = name
        self.identity = identity
        """The store's key for it: command and package, or origin and path; with the authorization it is used under."""
        self.display = display or name
        self.credentialed = credentialed
        self.trust = Trust.UNTRUSTED
        self.trust_source = ""
        self.cwd: str | None = None
        self.tools: dict[str, Tool] = {}
        self.methods: dict[str, Tool] = {}
        self._listed: dict[str, list[Listed]] = {}
        self.instructions = ""
        self.instructions_pending = ""
        self.listed = False
        self.generation = 0
        """Grows with every change of what is served or resolved."""
        self.words: Callable[[Server, Tool], Words] = lambda server, tool: NO_WORDS

    def method(self, name: str, claims: RawHints, lane: Lane | None = None) -> Tool:
        """The entry of a method that is judged like a tool: the server's worst, but for what the method itself claims, and what
        the lane makes impossible that it goes to."""
        key = f"{name} ({lane})" if lane is not None else name
        entry = self.methods.get(key)
        if entry is None:
            entry = Tool(name)
            entry.is_method = True
            entry.claims, entry.lane = claims, lane
            self.methods[key] = entry
            self._resolve(entry)
        return entry

    def note_listed(self, method: str, items: Sequence[bytes]) -> None:
        """Take what a list of prompts, resources or templates labels: what is read or fetched by such a name is that."""
        self._listed[method] = [found for item in items if (found := listed(item)) is not None]

    def listed_labels(self, name: str) -> int:
        """What the lists say of what a prompt's name or a URI brings, in `protocol.labels`' bits: only what restricts."""
        bits = 0
        for known in self._listed.values():
            for item in known:
                if item.bits & ~bits and item.covers(name):
                    bits |= item.bits
        return bits

    def unknown(self, name: str) -> Tool:
        """The entry of a tool the server does not list: nothing is known, no person has seen it."""
        entry = Tool(name)
        entry.state = PinState.UNSEEN
        return entry

    def supposing(self, trust: Trust, *, accepted: bool) -> Server:
        """The server as it would be with another trust and, if `accepted`, with all that it offers now seen by a person.

        A copy that shares nothing with this one that changes; what it says is written nowhere.
        """
        copy = Server(self.name, self.identity, credentialed=self.credentialed, display=self.display)
        copy.trust, copy.trust_source, copy.cwd = trust, "supposed", self.cwd
        copy.words, copy.listed, copy.instructions = self.words, self.listed, self.instructions
        for name, tool in self.tools.items():
            entry = Tool(name)
            entry.offered, entry.definition, entry.pin, entry.state = tool.offered, tool.definition, tool.pin, tool.state
            if accepted and tool.state is not PinState.REFUSED:
                entry.definition, entry.pin, entry.state = tool.offered, pin.pin(tool.offered), PinState.HOLDS
            copy.tools[name] = entry
        copy.resolve()
        return copy

    def set_trust(self, trust: Trust, source: str) -> None:
        """Take another trust (and where it comes from); resolves all entries again."""
        if trust is not self.trust or source != self.trust_source:
            self.trust = trust
            self.trust_source = source
            self.resolve()

    def resolve(self) -> None:
        """Resolve all entries again, after trust, labels, packs, evidence or containment changed."""
        for entry in (*self.tools.values(), *self.methods.values()):
            self._resolve(entry)
        self.generation += 1

    def update(self, offered: Sequence[bytes], instructions: str, book: PinBook, now: float) -> bool:
        """Take what the server lists now. Whether what is served changed. Raises E1210 for a list that cannot be used."""
        known = {saved.tool: saved for saved in book.pins(self.identity)}
        noise = book.noise(self.identity)
        lost = book.lost_at()
        if lost:
            # What a person saw is not known any more, or only an old copy of it: nothing is pinned but by a person.
            known = {name: saved if saved.seen_at > lost else _unseen(saved) for name, saved in known.items()}
        first = not known and not lost
        write: list[SavedPin] = []
        tools: dict[str, Tool] = {}
        for raw in offered:
            entry = self._entry(raw)
            if entry.name in tools:
                raise EarnestError(
                    "E1210", f"server {self.name!r} lists the tool {entry.name!r} twice; neither is served", exit_code=3
                )
            self._compare(entry, known.get(entry.name), first, noise, now, write)
            tools[entry.name] = entry
        changed = self._take_instructions(instructions, known.get(INSTRUCTIONS), first, noise, now, write)
        if write:
            book.save_pins(self.identity, write)
        before = self.tools
        self.tools = tools
        for entry in tools.values():
            self._resolve(entry)
        changed = changed or not self.listed or not _served_alike(before, tools)
        self.listed = True
        if changed:
            self.generation += 1
        return changed

    def _entry(self, raw: bytes) -> Tool:
        try:
            wire = msgspec.json.decode(raw, type=_ToolWire)
        except msgspec.MsgspecError as error:
            raise EarnestError("E1210", f"server {self.name!r} lists a tool that is none: {error}", exit_code=3) from None
        entry = Tool(wire.name)
        entry.offered = entry.definition = raw
        return entry

    def _compare(
        self, entry: Tool, saved: SavedPin | None, first: bool, noise: Sequence[str], now: float, write: list[SavedPin]
    ) -> None:
        twins = pin.ambiguity(entry.offered)
        if twins is not None:
            entry.state = PinState.REFUSED
            entry.pin = saved.pin if saved is not None else ""
            entry.definition = saved.definition if saved is not None else b""
            return
        if saved is None:
            entry.pin = pin.pin(entry.offered)
            if first:
                write.append(SavedPin(entry.name, entry.pin, entry.offered, b"", now))
            else:
                entry.state = PinState.UNSEEN
                write.append(SavedPin(entry.name, "", b"", entry.offered, now))
            return
        if not saved.pin:
            entry.pin = pin.pin(entry.offered)
            entry.state = PinState.UNSEEN
            if saved.pending != entry.offered:
                write.append(SavedPin(entry.name, "", b"", entry.offered, now))
            return
        found = pin.difference(saved.definition, entry.offered, noise)
        if found.kind == "neutral":
            entry.pin = saved.pin
            if saved.pending:
                write.append(SavedPin(entry.name, saved.pin, saved.definition, b"", now))
            elif not pin.holds(saved.pin, saved.definition) or pin.formula(saved.pin) != pin.FORMULA:
                write.append(SavedPin(entry.name, pin.pin(saved.definition), saved.definition, b"", now))
        elif found.kind == "tightening":
            entry.state = PinState.TIGHTENED
            entry.pin = pin.pin(entry.offered)
            write.append(SavedPin(entry.name, entry.pin, entry.offered, b"", now))
        else:
            entry.state = PinState.LOOSENED
            entry.difference = found
            entry.pin = saved.pin
            entry.definition = saved.definition
            if saved.pending != entry.offered:
                write.append(SavedPin(entry.name, saved.pin, saved.definition, entry.offered, now))

    def _take_instructions(
        self, text: str, saved: SavedPin | None, first: bool, noise: Sequence[str], now: float, write: list[SavedPin]
    ) -> bool:
        before = self.instructions
        self.instructions_pending = ""
        if saved is None and first:
            write.append(SavedPin(INSTRUCTIONS, pin.text_pin(text), text.encode(), b"", now))
            self.instructions = text
        else:
            held = saved.definition.decode() if saved is not None else ""
            if pin.text_difference(held, text, noise).kind == "neutral":
                self.instructions = text
            else:
                self.instructions = held
                self.instructions_pending = text
                if saved is None or saved.pending != text.encode():
                    write.append(SavedPin(INSTRUCTIONS, pin.text_pin(held), held.encode(), text.encode(), now))
        return before != self.instructions

    def _resolve(self, entry: Tool) -> None:
        entry.tables.clear()
        entry.flow = None
        server_labels = NOTHING
        if not entry.is_method:
            self._read(entry)
            server_labels = _labels_of(entry.definition) if entry.definition else NOTHING
        words = entry.words = self.words(self, entry)
        holds = entry.state in (PinState.HOLDS, PinState.TIGHTENED)
        entry.takes_text = frozenset(name for name, role in words.roles.items() if role == "content")
        entry.standing = Standing(
            trust=self.trust,
            claims=entry.claims,
            pin_holds=holds,
            operator=words.operator,
            operator_holds=words.operator_pin in ("", entry.pin),
            contained=words.contained,
            pack=words.pack,
            pack_holds=words.pack_holds,
            violated=words.violated,
            supported=words.supported,
            support_holds=words.support_pin == entry.pin and bool(entry.pin),
            server_labels=server_labels,
            credentialed=self.credentialed,
            safe_output=holds and only_plain_values(_json(entry.output_schema)),
            sanitizer=f"sanitizer {words.sanitizer.name} ({words.sanitizer.source})" if words.sanitizer is not None else "",
        )
        entry.profile = resolve(entry.standing)
        entry.compact = receipt.compact(entry.profile)

    def _read(self, entry: Tool) -> None:
        """Claims and titles: of the definition in force, and the riskier of both where a looser one waits."""
        if not entry.definition:
            entry.title, entry.annotations, entry.output_schema, entry.claims = None, b"", b"", RawHints()
            return
        members = canonical.members(entry.definition)
        entry.annotations = members.get("annotations", b"")
        entry.output_schema = members.get("outputSchema", b"")
        entry.claims = raw_from_wire(_json(entry.annotations))
        entry.marked = is_marked(members.get("_meta", b""))
        title = _json(members.get("title", b""))
        if not isinstance(title, str):
            inner = _json(entry.annotations)
            title = inner.get("title") if isinstance(inner, dict) else None
        entry.title = title if isinstance(title, str) else None
        if entry.definition is not entry.offered and entry.state is PinState.LOOSENED:
            offered = canonical.members(entry.offered).get("annotations", b"")
            entry.claims = _riskier(entry.claims, raw_from_wire(_json(offered)))


def stricter(a: Labels, b: Labels) -> Labels:
    """What file and store say of a tool as one statement."""
    if a == NOTHING or b == NOTHING:
        return b if a == NOTHING else a
    return riskier((a, b), f"{a.source}; {b.source}")


def _riskier(held: RawHints, offered: RawHints) -> RawHints:
    """A raising claim is believed from anyone, also in a definition that nobody has seen yet."""

    def worse(name: str) -> bool | None:
        now = offered.get(name)
        return now if now is RISKY_VALUES[name] else held.get(name)

    return RawHints(worse("read_only"), worse("destructive"), worse("idempotent"), worse("open_world"))


def _labels_of(definition: bytes) -> Labels:
    found = tool_labels(definition)
    private, untrusted = found.restrict.private, found.restrict.untrusted
    return Labels(
        reads_private=private if private is not None else found.relax.private,
        sees_untrusted=untrusted if untrusted is not None else found.relax.untrusted,
        source="the server's own labels",
    )


def _served_alike(old: Mapping[str, Tool], new: Mapping[str, Tool]) -> bool:
    return list(old) == list(new) and all(
        (known := old[name]).definition == entry.definition and known.state == entry.state and known.profile == entry.profile
        for name, entry in new.items()
    )


def _unseen(saved: SavedPin) -> SavedPin:
    """A pin that nobody is known to have seen. What is kept of it stays while the same is offered, and counts again once the
    loss is understood."""
    return SavedPin(saved.tool, "", b"", saved.pending or saved.definition, saved.seen_at)


def _json(raw: bytes) -> object:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return None
