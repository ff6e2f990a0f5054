"""What differs between clients, as data, and how a client's files are found and read by it.

Theory. Every client keeps a table of servers somewhere in a JSON or TOML file; what differs is where, under
which keys, what a variable looks like and what a remote entry is called. A `Dialect` says that. An `Entry`
is one server as it stands in one file, with its node, so that `wrap` can edit bytes; `leave` says in a
sentence why it is not to be touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from earnest.config import jsonc, toml_ranges
from earnest.config.document import Node
from earnest.config.files import contents
from earnest.core.errors import EarnestError

MAX_BYTES: Final = 64 * 1024 * 1024
"""`~/.claude.json` also holds histories and grows to megabytes; beyond this a file is refused (E1010)."""

Places = Callable[[str, Mapping[str, str], str], Sequence[str]]
"""`(home, env, platform) -> paths`, possibly with `*`; `platform` is `sys.platform`."""


class Dialect(msgspec.Struct, frozen=True):
    """One client. `name` is what `--client` says, `title` what a person calls it.

    `places` are a person's own files, `project_files` those in a project, relative to it. `containers` are
    the key paths of tables of servers, `*` for any key. `url_keys` are the keys of an address, best first,
    each with the transport it means (`auto`: the entry's type, or the client's guess, decides).
    `streamable_key`: the key for Streamable HTTP. `headers_key` holds literal headers, `header_sources` are
    keys by which headers come from elsewhere (each may fill `Authorization`). `oauth_keys`: an entry with
    one of them logs in by OAuth. `helper_keys`: commands that make headers. `variable`: a pattern of
    references the client resolves, empty where it resolves none. `tool_limit`: the most tools it offers its
    model, 0 where none is known. `single`: it reads one file; of several that are there it cannot be told which.
    """

    name: str
    title: str
    places: Places
    project_files: tuple[str, ...] = ()
    containers: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    url_keys: tuple[tuple[str, str], ...] = (("url", "auto"),)
    streamable_key: str = "url"
    type_http: str = "http"
    headers_key: str = "headers"
    header_sources: tuple[str, ...] = ()
    oauth_keys: tuple[str, ...] = ("oauth", "auth")
    helper_keys: tuple[str, ...] = ()
    variable: str = ""
    tool_limit: int = 0
    note: str = ""
    single: bool = False

    def variables(self, text: str) -> tuple[str, ...]:
        """The references in a value, as the client understands them."""
        return tuple(found.group() for found in re.finditer(self.variable, text)) if self.variable else ()


class ClientFile(msgspec.Struct, frozen=True):
    """A configuration file as it was read. `project`: the folder it belongs to, empty for a person's own."""

    client: str
    path: str
    data: bytes
    root: Node
    project: str = ""

    @property
    def toml(self) -> bool:
        """Whether it is TOML; JSON with comments otherwise."""
        return self.path.endswith(".toml")


class Entry(msgspec.Struct, frozen=True):
    """One server of one file. `where`: its path of keys. `kind`: how the client reaches it. `command`,
    `args`, `url`: as written, references unresolved. `env`, `headers`: names only. `wrapped`: the name
    earnest knows it by, empty where it is not wrapped. `leave`: why it cannot be wrapped, empty where it
    can."""

    file: ClientFile
    where: tuple[str, ...]
    name: str
    node: Node
    kind: Literal["stdio", "http", "unknown"]
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    url_key: str = ""
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    disabled: bool = False
    wrapped: str = ""
    leave: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command a client starts, without earnest where it is wrapped."""
        return self.args[own_words(self.args) - 1 :] if self.wrapped and self.command else (self.command, *self.args)


_PLAIN: Final = 6
"""`stdio NAME --client CLIENT --` and the original command."""


def own_words(args: tuple[str, ...]) -> int:
    """How many of the arguments are what wrapping put there, the original command among them: `stdio NAME --client CLIENT
    [--config PATH] -- COMMAND`; 0 where they are in no form that wrapping writes."""
    if args[:1] != ("stdio",) or args[2:3] != ("--client",):
        return 0
    words = _PLAIN + 2 * (args[4:5] == ("--config",))
    return words if len(args) >= words and args[words - 2] == "--" else 0


def find(dialect: Dialect, home: str, env: Mapping[str, str], platform: str, project: str = "") -> list[str]:
    """The files of a client that are there; the same file by two names once."""
    import glob

    patterns = list(dialect.places(home, env, platform))
    patterns += [os.path.join(glob.escape(project), name) for name in dialect.project_files if project]
    found: dict[str, str] = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern, include_hidden=True)):
            if os.path.isfile(path):
                found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def read(dialect: Dialect, path: str, project: str = "") -> ClientFile:
    """Read one file. Raises E1010 (unreadable, or neither JSON nor TOML) and E1011 (a key twice)."""
    try:
        data = contents(path, MAX_BYTES).data
    except OSError as error:
        raise EarnestError("E1010", f"{path}: cannot be read: {error.strerror}", "check its permissions") from None
    return parsed(dialect, path, data, project)


def parsed(dialect: Dialect, path: str, data: bytes, project: str = "") -> ClientFile:
    """The same from bytes at hand."""
    root = toml_ranges.scan(path, data, "E1010") if path.endswith(".toml") else jsonc.scan(path, data)
    if root.kind != "object":
        raise EarnestError("E1010", f"{path}: the document is no object", "correct the file by hand")
    return ClientFile(client=dialect.name, path=path, data=data, root=root, project=project)


def entries(dialect: Dialect, file: ClientFile) -> tuple[Entry, ...]:
    """The servers of a file, in its order."""
    found: list[Entry] = []
    for container in dialect.containers:
        for where, node in _walk(file.root, container):
            found += [_entry(dialect, file, (*where, m.key), m.node) for m in node.members]
    return tuple(sorted(found, key=lambda entry: entry.node.start))


def _walk(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    if not path:
        if node.kind == "object":
            yield (), node
        return
    for member in node.members:
        if path[0] in ("*", member.key):
            for where, found in _walk(member.node, path[1:]):
                yield (member.key, *where), found


def _entry(dialect: Dialect, file: ClientFile, where: tuple[str, ...], node: Node) -> Entry:
    command = node.text("command")
    args = node.texts("args") if node.get("args") is not None else ()
    url_key = next((key for key, _ in dialect.url_keys if node.text(key)), "")
    kind: Literal["stdio", "http", "unknown"] = "stdio" if command else "http" if url_key else "unknown"
    entry = Entry(
        file=file,
        where=where,
        name=where[-1],
        node=node,
        kind=kind,
        command=command,
        args=args or (),
        url="" if command or not url_key else node.text(url_key),
        url_key="" if command else url_key,
        env=_keys(node.get("env")),
        headers=_keys(node.get(dialect.headers_key)),
        disabled=_flag(node, "disabled") is True or _flag(node, "enabled") is False,
    )
    wrapped = _wrapped_name(entry)
    if wrapped:
        return msgspec.structs.replace(entry, wrapped=wrapped)
    return msgspec.structs.replace(entry, leave=_why_not(dialect, entry, args is None))


def _keys(node: Node | None) -> tuple[str, ...]:
    return tuple(member.key for member in node.members) if node is not None else ()


def _flag(node: Node, key: str) -> object:
    found = node.get(key)
    return None if found is None else found.value


def _wrapped_name(entry: Entry) -> str:
    args = entry.args
    if os.path.basename(entry.command) == "earnest" and args[:1] == ("stdio",) and len(args) > 1:
        return args[1] if own_words(args) else ""
    found = re.fullmatch(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):\d+/s/([a-z0-9][a-z0-9_-]*)/mcp", entry.url)
    return found[1] if found else ""


def _why_not(dialect: Dialect, entry: Entry, odd_args: bool) -> str:
    node = entry.node
    kind = node.text("type") or node.text("transport")
    if entry.kind == "unknown":
        return "it has neither a command nor an address" if not kind else f"its transport {kind} is not known here"
    if entry.kind == "stdio":
        if odd_args:
            return "its arguments are no list of text"
        if os.path.basename(entry.command) == "earnest":
            return "it starts earnest itself, in a form that init did not write"
        first, *more = entry.command.split()
        if more and "/" not in first and "\\" not in first:
            return "its command holds several words, which the client splits; write them as command and args"
        return ""
    if kind in ("ws", "websocket", "sdk"):
        return f"its transport {kind} is not known here"
    helper = next((key for key in dialect.helper_keys if node.get(key) is not None), "")
    if helper:
        return f"{helper} is a command of the client's that makes headers"
    if any(node.get(key) is not None for key in dialect.oauth_keys):
        return "it logs in by OAuth, which the client does with the server itself"
    if held := dialect.variables(entry.url):
        return f"its {entry.url_key} holds {', '.join(held)}, a variable that only the client can resolve"
    if not re.match(r"https?://", entry.url):
        return "its address is neither http nor https"
    return ""


def has_credential(dialect: Dialect, entry: Entry) -> bool:
    """Whether a remote entry brings its own credential, so that it will hardly ask for OAuth."""
    return bool(entry.headers) or any(entry.node.get(key) is not None for key in dialect.header_sources)
