"""earnest.toml as a whole: found, read, checked.

Theory. The file a person named (`--config`, `$EARNEST_CONFIG`) or keeps in the configuration folder is the
operator's and is read here in full. A file that merely lies in a working directory is read by `overlay`,
and can only tighten. Reading has no effect and starts nothing; references to secrets stay unresolved
(`variables`).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeVar

import msgspec

from earnest.config import sections, toml_ranges
from earnest.config.containing import Containment
from earnest.config.document import Node, nearest
from earnest.config.files import contents
from earnest.config.reading import Source, Table
from earnest.config.sanitizers import ToolSanitizer, sanitizer
from earnest.config.sections import (
    PRESETS,
    Asking,
    ClientSettings,
    Flow,
    HookSettings,
    Limits,
    Listen,
    Receipts,
    ServerSettings,
    ToolLabels,
    View,
)
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust

MAX_BYTES: Final = 4 * 1024 * 1024
"""A larger earnest.toml is refused."""

T = TypeVar("T")


class PolicyText(msgspec.Struct, frozen=True):
    """A policy that was named or written in earnest.toml, not yet parsed.

    `path` and `data` are of the file it stands in, `node` its table there (the whole file for a file of its
    own). `tier` is `rules`, or `floor` for what a found file adds: a rule in the rules tier could answer
    before a stricter preset, one in the floor cannot lower anything.
    """

    path: str
    data: bytes
    node: Node
    tier: Literal["rules", "floor"] = "rules"


class Settings(msgspec.Struct, frozen=True):
    """All of earnest.toml. `path` is empty where there is no file; `sha256` is of its bytes, and changes as
    well with every file that it includes or names as its policy. `folder` is where relative paths start
    from. `trust_caps`: servers that a found file trusts less than the operator does."""

    path: str = ""
    folder: str = ""
    sha256: str = ""
    servers: dict[str, ServerSettings] = {}
    labels: tuple[ToolLabels, ...] = ()
    clients: dict[str, ClientSettings] = {}
    asking: Asking = Asking()
    limits: Limits = Limits()
    listen: Listen = Listen()
    receipts: Receipts = Receipts()
    flow: Flow = Flow()
    hook: HookSettings = HookSettings()
    sanitizers: tuple[ToolSanitizer, ...] = ()
    views: dict[str, View] = {}
    preset: str = "balanced"
    policies: tuple[PolicyText, ...] = ()
    trust_caps: dict[str, Trust] = {}
    includes: tuple[str, ...] = ()
    contain: bool = False
    """Whether servers with a command are contained of which nothing else is said."""

    def client(self, name: str) -> ClientSettings:
        """The settings of a client; the defaults for one that is not named."""
        return self.clients.get(name) or ClientSettings(name=name)

    def containment(self, server: ServerSettings) -> Containment | None:
        """What a server is granted where it is contained, else None. One at an address cannot be."""
        said = server.contain if server.contain is not None else self.contain
        if server.url is not None or said is False:
            return None
        return said if isinstance(said, Containment) else Containment()


def load(path: str, named: bool, env: Mapping[str, str]) -> Settings:
    """Read the operator's file.

    `named`: a person named it, so it must exist; otherwise a missing file means the defaults. `env`
    supplies HOME for a leading `~` in paths. Raises E1001 (missing, unreadable, too large), E1002 (not
    TOML), E1003 (unknown key), E1004 (wrong type), E1005 (wrong value), E1006 (bad or double name), E1007
    (bad reference), E1008 (writable by others), each with line, column and, where there is one, the nearest
    known word.
    """
    data = read(path, missing_is_error=named)
    if data is None:
        return Settings(folder=os.path.dirname(os.path.abspath(path)))
    return parse(path, data, env)


def parse(path: str, data: bytes, env: Mapping[str, str]) -> Settings:
    """Check the bytes of an operator's file; files it names (`policy`, `include`) are read. Raises as
    `load`."""
    source = Source(path, data)
    top = Table(source, toml_ranges.scan(path, data), "")
    folder = os.path.dirname(os.path.abspath(path))
    servers = _all(top, "servers", sections.server)
    includes = tuple(_join(folder, name, env) for name in top.texts("include"))
    digest = hashlib.sha256(data)
    for include in includes:
        beside = read(include, missing_is_error=True) or b""
        digest.update(hashlib.sha256(beside).digest())
        included = _included(include, beside)
        for double in servers.keys() & included.keys():
            raise EarnestError(
                "E1006",
                f'the server "{double}" is written twice: {servers[double].source} and {included[double].source}',
                "remove or rename one",
            )
        servers |= included
    views = _all(top, "views", sections.view)
    policies = policy_text(top, folder, env)
    for policy in policies:
        if policy.path != path:
            digest.update(hashlib.sha256(policy.data).digest())
    settings = Settings(
        path=path,
        folder=folder,
        sha256=digest.hexdigest(),
        servers=servers,
        labels=tuple(_all(top, "labels", sections.tool_labels).values()),
        clients=_all(top, "clients", sections.client),
        asking=_one(top, "asking", sections.asking, Asking()),
        limits=_one(top, "limits", sections.limits, Limits()),
        listen=_one(top, "listen", sections.listen, Listen()),
        receipts=_one(top, "receipts", sections.receipts, Receipts()),
        flow=_one(top, "flow", sections.flow, Flow()),
        hook=_one(top, "hook", sections.hook, HookSettings()),
        sanitizers=tuple(_all(top, "sanitizers", sanitizer).values()),
        views=views,
        preset=top.choice("preset", PRESETS, "balanced"),
        policies=policies,
        includes=includes,
        contain=top.flag("contain", False),
    )
    top.finish()
    sections.check_names(views, servers)
    return settings


def policy_text(top: Table, folder: str, env: Mapping[str, str]) -> tuple[PolicyText, ...]:
    """The policy a file names or holds: none or one. A path is relative to the file's folder."""
    node = top.take("policy")
    if node is None:
        return ()
    if node.kind == "object":
        return (PolicyText(path=top.source.path, data=top.source.data, node=node),)
    path = _join(folder, top.text("policy"), env)
    data = read(path, missing_is_error=True) or b""
    return (PolicyText(path=path, data=data, node=toml_ranges.scan(path, data)),)


def read(path: str, *, missing_is_error: bool) -> bytes | None:
    """The bytes of a configuration file, or None where it is missing and may be.

    Raises E1001 where it cannot be read, E1008 where somebody else could have written it.
    """
    try:
        file = contents(path, MAX_BYTES)
    except FileNotFoundError:
        if not missing_is_error:
            return None
        raise EarnestError("E1001", f"{path}: there is no such file", "create it, or correct the path") from None
    except OSError as error:
        raise EarnestError(
            "E1001", f"{path}: cannot be read: {error.strerror}", "correct the path or its permissions"
        ) from None
    # Group-writable is what a umask of 002 makes, with a group of the user's own; it is left alone.
    if file.mode & stat.S_IWOTH:
        raise EarnestError("E1008", f"{path}: every user of this machine can write it", f"chmod o-w {path}")
    if file.owner not in (os.getuid(), 0):
        raise EarnestError(
            "E1008",
            f"{path}: belongs to user {file.owner}, neither to you nor to root",
            "use a file of your own",
        )
    return file.data


def _included(path: str, data: bytes) -> dict[str, ServerSettings]:
    """The servers of an included file, which may hold nothing else."""
    top = Table(Source(path, data), toml_ranges.scan(path, data), "")
    servers = _all(top, "servers", sections.server)
    for member in top.node.members:
        if member.key != "servers":
            top.fail(
                member.key,
                "E1003",
                f"an included file holds servers only, not {member.key}",
                nearest(member.key, []),
            )
    return servers


def _join(folder: str, path: str, env: Mapping[str, str]) -> str:
    if path.startswith("~/") and env.get("HOME"):
        path = os.path.join(env["HOME"], path[2:])
    return os.path.join(folder, path)


def _all(top: Table, key: str, reader: Callable[[str, Table], T]) -> dict[str, T]:
    return {name: reader(name, table) for name, table in top.named(key)}


def _one(top: Table, key: str, reader: Callable[[Table], T], default: T) -> T:
    table = top.table(key)
    return default if table is None else reader(table)
