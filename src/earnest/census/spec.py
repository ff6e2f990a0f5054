"""Which servers a census asks: the list, read from TOML or JSON.

A list says of each server where it comes from (exactly one of `npm`, `pypi`, `url`, `command`), how it is started and which
dummy values it is given; and of each recording where it lies and which cohort it belongs to. Nothing in a list is expanded
from the environment of who runs it: a value is what is written, `{PREFIX}` and `{HOME}` alone stand for folders of the server's
own. What looks like a real credential is refused (E1901), because what a server is given can come back in what it says.

docs/census.md describes the format. A file of the shape `{"servers": {NAME: {"package": "npm:…", "command", "args", "env",
"setup"}}}`, with which recordings tell how they were made, is read as well.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.audits.secret_default import TOKEN

Source = Literal["npm", "pypi", "url", "command", "file"]
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MAX_SERVERS: Final = 10_000
MAX_BYTES: Final = 16 << 20
_PACKAGE: Final = {
    # No paths, no addresses, no options: what is installed has a name in a registry and one version.
    "npm": re.compile(r"(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*@[0-9][A-Za-z0-9.+-]*"),
    "pypi": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?==[0-9][A-Za-z0-9.+!-]*"),
}
_WITH: Final = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@/._-]*(?:\[[A-Za-z0-9,._-]+\])?(?:(?:[<>=!~]=?|@)[A-Za-z0-9.*+!<>=,~-]+)?")
_ONLY_OF: Final = {
    "requires": ("npm", "pypi"),
    "program": ("npm", "pypi"),
    "args": ("npm", "pypi", "command"),
    "env": ("npm", "pypi", "command"),
    "setup": ("npm", "pypi", "command"),
    "folders": ("npm", "pypi", "command"),
    "headers": ("url",),
}
"""Members of an entry that mean something for some sources alone."""
_KINDS: Final[tuple[Source, ...]] = ("npm", "pypi", "url", "command")


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server to ask. Everything that its record depends on stands here: the task is a pure function of it."""

    name: str
    source: Source
    cohort: str = "live"
    package: str = ""
    """`name@version` of npm, `name==version` of PyPI."""
    requires: tuple[str, ...] = ()
    """Further requirements of the same install (`mcp<2`)."""
    program: str = ""
    """The executable below the prefix, by its name; of a `command` the first word."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    setup: tuple[str, ...] = ()
    """Lines for `sh`, run in the home before each start, contained like the server."""
    url: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    folders: tuple[str, ...] = ()
    """Folders that a `command` may read besides the system's."""
    licence: str = ""
    """Of the definitions; empty: what the package says of itself."""
    note: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, in hex: a record is of a spec if it carries this."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


class Recording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Recorded answers to be counted: a file or a folder of what `earnest lint` reads."""

    path: str
    cohort: str
    licence: str = "unknown"
    note: str = ""


class Listing(msgspec.Struct, frozen=True):
    """A list: servers to ask and recordings to read."""

    servers: tuple[Spec, ...] = ()
    recordings: tuple[Recording, ...] = ()
    sha256: str = ""
    name: str = ""


class _Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    npm: str = ""
    pypi: str = ""
    url: str = ""
    command: list[str] = []
    requires: list[str] = []
    program: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    setup: list[str] = []
    folders: list[str] = []
    cohort: str = ""
    licence: str = ""
    note: str = ""


class _Launch(msgspec.Struct, frozen=True):
    package: str
    command: str
    install: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    setup: list[str] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cohort: str = "live"
    note: str = ""
    servers: dict[str, _Server] = {}
    recordings: list[Recording] = []


def load(path: Path) -> Listing:
    """Read a list. Raises E1019 for a file that cannot be read, E1900 for what is no list, E1901 for a credential."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EarnestError("E1019", f"{path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise EarnestError("E1900", f"{path} is larger than {MAX_BYTES >> 20} MiB")
    try:
        value = tomllib.loads(data.decode()) if path.suffix == ".toml" else msgspec.json.decode(data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise EarnestError("E1900", f"{path} is no list: {error}", "docs/census.md shows one.") from None
    if isinstance(value, list) or (isinstance(value, Mapping) and value.keys() & {"tools", "result"}):
        raise EarnestError(
            "E1900",
            f"{path} is a recording, no list",
            "Say which cohort it belongs to: add --cohort NAME, or name it in a list.",
        )
    listing = _of_launch(value) if _is_launch(value) else _of_file(value, path)
    if not listing.servers and not listing.recordings:
        raise EarnestError("E1900", f"{path} names no server and no recording", "docs/census.md shows a list.")
    if len(listing.servers) > MAX_SERVERS:
        raise EarnestError("E1900", f"{path} names {len(listing.servers)} servers; more than {MAX_SERVERS} want several lists")
    for spec in listing.servers:
        _check(spec)
    for recording in listing.recordings:
        check_cohort(recording.cohort, recording.path)
    return msgspec.structs.replace(listing, sha256=hashlib.sha256(data).hexdigest(), name=path.stem)


def _of_file(value: object, path: Path) -> Listing:
    try:
        file = msgspec.convert(value, _File)
    except msgspec.ValidationError as error:
        raise EarnestError("E1900", f"{path} is no list: {error}", "docs/census.md shows one.") from None
    base = path.parent
    servers = []
    for name, one in file.servers.items():
        given = [kind for kind in _KINDS if getattr(one, kind)]
        if len(given) != 1:
            raise EarnestError("E1900", f"[servers.{name}] needs exactly one of {', '.join(_KINDS)}")
        source = given[0]
        idle = [member for member in _ONLY_OF if getattr(one, member) and source not in _ONLY_OF[member]]
        if idle:
            raise EarnestError("E1900", f"[servers.{name}] has `{idle[0]}`, which means nothing beside `{source}`")
        program, args = one.program, tuple(one.args)
        if source == "command":
            first = one.command[0]
            program = str((base / first).absolute()) if "/" in first and "{" not in first else first
            args = (*one.command[1:], *args)
        servers.append(
            Spec(
                name=name,
                source=source,
                cohort=one.cohort or file.cohort,
                package=one.npm or one.pypi,
                requires=tuple(one.requires),
                program=program or _program(one.npm or one.pypi),
                args=args,
                env=one.env,
                setup=tuple(one.setup),
                url=one.url,
                headers=one.headers,
                folders=tuple(str((base / folder).absolute()) for folder in one.folders),
                licence=one.licence,
                note=one.note,
            )
        )
    recordings = [msgspec.structs.replace(one, path=str((base / one.path).absolute())) for one in file.recordings]
    return Listing(tuple(servers), tuple(recordings))


def _is_launch(value: object) -> bool:
    servers = value.get("servers") if isinstance(value, Mapping) else None
    return isinstance(servers, Mapping) and any(isinstance(one, Mapping) and "package" in one for one in servers.values())


def _of_launch(value: Any) -> Listing:
    servers = []
    for name, raw in value["servers"].items():
        try:
            one = msgspec.convert(raw, _Launch)
        except msgspec.ValidationError as error:
            raise EarnestError("E1900", f"the server {name!r} of this list cannot be read: {error}") from None
        kind, _, package = one.package.partition(":")
        if kind not in ("npm", "pypi"):
            raise EarnestError("E1900", f"the package of {name!r} is {one.package!r}, not npm:… or pypi:…")
        try:
            words = shlex.split(one.install)
        except ValueError as error:
            raise EarnestError("E1900", f"`install` of {name!r} is no command line: {error}") from None
        after = words[words.index(package) + 1 :] if package in words else []
        servers.append(
            Spec(
                name=name,
                source="npm" if kind == "npm" else "pypi",
                package=package,
                requires=tuple(word for word in after if not word.startswith("-")),
                program=one.command.rsplit("/", 1)[-1],
                args=tuple(one.args),
                env=one.env,
                setup=tuple(one.setup),
            )
        )
    return Listing(tuple(servers))


def _program(package: str) -> str:
    """The name of a package, which is what most call their executable."""
    return re.split(r"==|(?<=.)@", package)[0].rsplit("/", 1)[-1].partition("[")[0]


def check_cohort(cohort: str, whose: str) -> None:
    """Raises E1900 for a name that could not stand in the name of a file, where two could become one."""
    if not NAME.fullmatch(cohort):
        told = f"{whose}: {cohort!r} is no name of a cohort: letters, digits, dot, dash, underscore"
        raise EarnestError("E1900", told)


def _check_url(spec: Spec) -> None:
    try:
        parts = urlsplit(spec.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise EarnestError("E1900", f"{spec.name}: {spec.url!r} is no address of a server", "Write https://HOST/PATH.")
    if parts.username is not None or parts.password is not None:
        # An address stands in the dataset, as provenance.
        told = f"{spec.name}: the address has a user or password in it"
        raise EarnestError("E1901", told, "Take it out; dummy values of `headers` stay out of the dataset.")
    for name, value in spec.headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not re.fullmatch(r"[\t\x20-\x7e\x80-\xff]*", value):
            raise EarnestError("E1900", f"{spec.name}: {name!r} is no header, or its value has more than one line")


def _check(spec: Spec) -> None:
    if not NAME.fullmatch(spec.name):
        raise EarnestError("E1900", f"{spec.name!r} is no name: letters, digits, dot, dash, underscore")
    check_cohort(spec.cohort, spec.name)
    rule = _PACKAGE.get(spec.source)
    if rule is not None and not rule.fullmatch(spec.package):
        example = "name@1.2.3" if spec.source == "npm" else "name==1.2.3"
        raise EarnestError("E1900", f"{spec.name}: {spec.package!r} is no package with one version", f"Write it as {example}.")
    for requirement in spec.requires:
        if not _WITH.fullmatch(requirement):
            raise EarnestError("E1900", f"{spec.name}: {requirement!r} is no requirement with a name in a registry")
    if spec.source in ("npm", "pypi") and ("/" in spec.program or spec.program in ("", ".", "..")):
        raise EarnestError("E1900", f"{spec.name}: `program` is the name of an executable of the package, not a path")
    if spec.source == "command" and not spec.program:
        raise EarnestError("E1900", f"{spec.name}: the first word of `command` is empty")
    if spec.source == "url":
        _check_url(spec)
    if bad := next((name for name in spec.env if not name or "=" in name), None):
        raise EarnestError("E1900", f"{spec.name}: {bad!r} is no name of a variable")
    words = (("args", one) for one in (spec.program, *spec.args, *spec.setup, *spec.folders))
    for where, text in (("url", spec.url), *spec.env.items(), *spec.headers.items(), *words):
        if "\0" in where + text:
            raise EarnestError("E1900", f"{spec.name}: {where} has a null character in it")
        if TOKEN.search(text):
            raise EarnestError(
                "E1901",
                f"{spec.name}: {where} looks like a real credential",
                "A census gives dummy values only; put `dummy` there, and revoke the real one if the list was shared.",
            )
