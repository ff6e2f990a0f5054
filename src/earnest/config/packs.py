"""Packs: curated labels for well-known servers, as TOML files beside the program.

Theory. A pack is matched to a server by identity (a published package, or an address) and speaks for a tool only in
the definitions it was written for, which it lists by pin. For any other definition it still raises: what was once
seen to be dangerous is taken to be so. Whether a lowering counts is settled by `core.profile` (row 4); this file only
reads, matches and says which line said what. `docs/packs.md` is the format for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from earnest.config import tool_tables
from earnest.config.document import Node, position
from earnest.config.identity import Identity
from earnest.config.reading import Source, Table
from earnest.config.toml_ranges import scan
from earnest.core.dispatch import DispatchSpec
from earnest.core.errors import EarnestError
from earnest.core.profile import NOTHING, Labels, entailed
from earnest.refine.enumeration import parse
from earnest.refine.registry import RefineRule

_PACKAGE: Final = re.compile(r"npm:(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*|pypi:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_ADDRESS: Final = re.compile(r"https://[a-z0-9.-]+(?::\d+)?/\S*")
_PIN: Final = re.compile(r"v\d+:[0-9a-f]{64}")


class PackTool(msgspec.Struct, frozen=True):
    """What a pack says of one tool. `pins`: the definitions it was written for. `varies`: regular expressions of text
    that differs between machines and is left out before the pin is taken. `roles`: what an argument steers, by name
    (`path`) or path (`edits[].newText`)."""

    name: str
    labels: Labels = NOTHING
    roles: Mapping[str, str] = {}
    refine: tuple[RefineRule, ...] = ()
    dispatcher: DispatchSpec | None = None
    pins: frozenset[str] = frozenset()
    varies: tuple[str, ...] = ()
    source: str = ""

    def speaks_for(self, definition: bytes, pin: Callable[[bytes], str]) -> bool:
        """Whether this was written for that definition (the raw JSON of the tool). `pin` is `core.pin.pin`.

        A definition that cannot be read has no pin, so nothing was written for it.
        """
        try:
            return pin(without(definition, self.varies)) in self.pins
        except EarnestError:
            return False


class Pack(msgspec.Struct, frozen=True):
    """One file. `versions`: patterns (`2026.*`) of the versions it speaks for, all if empty. `evidence`: where the labels
    come from, for a person."""

    name: str
    path: str
    packages: tuple[str, ...]
    addresses: tuple[str, ...]
    versions: tuple[str, ...]
    evidence: str
    tools: Mapping[str, PackTool]

    def matches(self, identity: Identity) -> bool:
        """Whether the server is one that this pack is about, in whatever version."""
        if identity.kind == "http":
            return identity.key in self.addresses
        return bool(identity.package) and identity.package in self.packages

    def tool(self, name: str, identity: Identity) -> PackTool | None:
        """What it says of a tool; without pins, so that it can only raise, if it does not speak for the version.

        `None` for a tool it does not list: a name that no pack knows is no read because its siblings are.
        """
        found = self.tools.get(name)
        if found is None or not self.versions:
            return found
        if any(fnmatchcase(identity.version, pattern) for pattern in self.versions):
            return found
        return msgspec.structs.replace(found, pins=frozenset())


def without(definition: bytes, varies: Sequence[str]) -> bytes:
    """A definition with every match of `varies` in its texts replaced by nothing, as JSON."""
    if not varies:
        return definition
    text = definition.decode("utf-8", "surrogateescape")
    for pattern in varies:
        text = re.sub(pattern, "", text)
    return text.encode("utf-8", "surrogateescape")


def built_in() -> Path:
    """The folder of the packs that come with earnest."""
    return Path(str(files("earnest").joinpath("packs")))


def load_packs(folder: Path) -> tuple[Pack, ...]:
    """All packs of a folder, in the order of their names.

    Raises `EarnestError`: E1002 not TOML, E1003 unknown key, E1004 wrong type, E1005 wrong value, E1009 unreadable, E1026 two
    packs for one server; each names file and line.
    """
    packs: list[Pack] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EarnestError("E1009", f"{path}: cannot be read: {error.strerror}", "check its permissions") from None
        pack = read(path.stem, str(path), data)
        for other in packs:
            both = sorted({*pack.packages, *pack.addresses} & {*other.packages, *other.addresses})
            if both:
                raise EarnestError("E1026", f"{path}: {both[0]} already has a pack, {other.path}", "keep one of the two")
        packs.append(pack)
    return tuple(packs)


def match(packs: Sequence[Pack], identity: Identity) -> Pack | None:
    """The pack for a server, or `None`."""
    return next((pack for pack in packs if pack.matches(identity)), None)


def read(name: str, path: str, data: bytes) -> Pack:
    """One pack from its bytes. Raises as `load_packs`."""
    return _Reader(name, path, data).pack()


class _Reader:
    def __init__(self, name: str, path: str, data: bytes) -> None:
        self._name, self._path, self._data = name, path, data

    def pack(self) -> Pack:
        root = Table(Source(self._path, self._data), scan(self._path, self._data), "")
        server = root.table("server")
        if server is None:
            root.source.fail(
                root.node, "E1005", "a pack says which server it is about", 'write [server] and packages = ["npm:NAME"]'
            )
        packages, addresses = server.texts("packages"), server.texts("addresses")
        versions, evidence = server.texts("versions"), server.text("evidence")
        server.finish()
        self._each(server, "packages", packages, _PACKAGE, "npm:NAME or pypi:NAME, in lower case, without a version")
        self._each(server, "addresses", addresses, _ADDRESS, "https://HOST/PATH")
        if not packages and not addresses:
            server.source.fail(server.node, "E1005", "[server] names no server", 'write packages = ["npm:NAME"]')
        if not evidence:
            server.source.fail(server.node, "E1005", "[server] has no evidence", "say how the labels were found out")
        tools = {tool: self._tool(tool, table) for tool, table in root.named("tools")}
        root.finish()
        return Pack(self._name, self._path, packages, addresses, versions, evidence, tools)

    def _tool(self, name: str, table: Table) -> PackTool:
        pins, varies = table.texts("pins"), table.texts("varies")
        self._each(table, "pins", pins, _PIN, "v1: and 64 hex digits; scripts/pack-pins prints them")
        for pattern in varies:
            try:
                re.compile(pattern)
            except re.error as error:
                table.fail("varies", "E1005", f"{table.path('varies')}: {pattern!r} is no pattern: {error}")
        found = PackTool(
            name=name,
            labels=self._labels(table),
            roles=tool_tables.roles(table),
            refine=tuple(self._rule(rule) for rule in table.tables("refine")),
            dispatcher=tool_tables.dispatcher(name, table),
            pins=frozenset(pins),
            varies=varies,
            source=self._source(table.node),
        )
        table.finish()
        return found

    def _rule(self, table: Table) -> RefineRule:
        source = self._source(table.node)

        def condition(when: str) -> RefineRule:
            try:
                return parse(when, source)
            except EarnestError as error:
                table.fail("when", error.code, error.message, error.remedy)

        return tool_tables.refinement(table, self._labels(table), source, condition, condition_speaks=True)

    def _labels(self, table: Table) -> Labels:
        """The statements of a table with what they imply."""
        return entailed(tool_tables.labels(table, self._source(table.node)))

    def _source(self, node: Node) -> str:
        return f"pack {self._name}:{position(self._data, node.start)[0]}"

    @staticmethod
    def _each(table: Table, key: str, values: Sequence[str], pattern: re.Pattern[str], wanted: str) -> None:
        for value in values:
            if not pattern.fullmatch(value):
                table.fail(key, "E1005", f"{table.path(key)}: {json.dumps(value)} is not of the form {wanted}")
