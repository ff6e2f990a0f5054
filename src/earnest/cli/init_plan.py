"""What `earnest init` would do: a value, made without writing anything or starting any server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from earnest.config import starting
from earnest.config.clients import changes
from earnest.config.clients.dialect import ClientFile, Dialect, Entry, entries, find, has_credential, read
from earnest.config.clients.names import assign
from earnest.config.clients.registry import Uncovered, uncovered
from earnest.config.clients.wrap import Listener
from earnest.config.settings import load
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust


class Surroundings(msgspec.Struct, frozen=True):
    """Where init runs. `release` is the kernel's (it tells WSL); `project` a folder whose files count too,
    or empty; `config` and `instance` are the paths of `shim.paths`; `named`: a person named that configuration."""

    home: str
    env: Mapping[str, str]
    platform: str = sys.platform
    release: str = ""
    project: str = ""
    config: str = ""
    instance: str = ""
    named: bool = False

    def with_config(self, config: str, instance: str, *, named: bool = False) -> Surroundings:
        """The same, with paths."""
        return msgspec.structs.replace(self, config=config, instance=instance, named=named)

    @property
    def wsl(self) -> bool:
        """Whether this is Linux inside Windows."""
        return "microsoft" in self.release.lower()


class Claims(msgspec.Struct, frozen=True):
    """What a server's tools claim, as a table, and one line for each trust about how often a person would be asked."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prompts: tuple[str, ...] = ()


class Hooks(msgspec.Struct, frozen=True):
    """What only a running daemon can do, handed in; each is optional.

    `claims(name, entry)`: what a server claims (starts it: only called after a yes). `set_trust(name, entry, trust)`: keep a
    person's answer to what was shown. `listener(client)`: the HTTP listener and the client's token. `needs_oauth(url)`: whether
    a server asks for OAuth; None where that cannot be told. `missing(entry)`: why a local server cannot be started, or empty.
    `commit(clients)`: called after the yes and before any server or client is written, with the clients that get a token:
    from then on it counts. `reload()`: called when the configuration has changed and before any client's file has.
    `forwards_headers`: the gateway passes a client's own headers on (`forward_headers`) and takes its token from
    `X-Earnest-Token` as well; without, a remote server with headers stays with its client, since it would lose them.
    """

    claims: Callable[[str, Entry], Claims] | None = None
    set_trust: Callable[[str, Entry, Trust], None] | None = None
    listener: Callable[[str], Listener | None] | None = None
    needs_oauth: Callable[[str], bool | None] | None = None
    missing: Callable[[Entry], str] | None = None
    commit: Callable[[Sequence[str]], None] | None = None
    reload: Callable[[], None] | None = None
    forwards_headers: bool = False


class Found(msgspec.Struct, frozen=True):
    """One server of one client. `name`: what earnest calls it; `action`: `wrap`, `leave` or `wrapped`;
    `why`: of `leave`."""

    client: str
    entry: Entry
    name: str
    action: str
    why: str = ""


class Plan(msgspec.Struct, frozen=True):
    """All that was found and all that would change. `remote`: addresses and headers to forward, by name,
    for the file at `servers_path`."""

    found: tuple[Found, ...] = ()
    changes: tuple[tuple[Dialect, changes.Change], ...] = ()
    errors: tuple[EarnestError, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    remote: dict[str, tuple[str, tuple[str, ...]]] = {}
    servers_path: str = ""


def make_plan(around: Surroundings, clients: Sequence[Dialect], hooks: Hooks) -> Plan:
    """Read every client and the operator's file. Raises where earnest.toml has a mistake or earnest is not
    installed; a client's file that cannot be read is an error in the plan, and the others go on."""
    settings = load(around.config, False, around.env)
    program = program_path(around.env)
    files: list[tuple[Dialect, ClientFile]] = []
    errors: list[EarnestError] = []
    for dialect in clients:
        paths = find(dialect, around.home, around.env, around.platform, around.project)
        if dialect.single and len(paths) > 1:
            errors.append(_candidates(dialect, paths))
            continue
        for path in paths:
            inside = bool(around.project) and os.path.realpath(path).startswith(os.path.realpath(around.project) + os.sep)
            own = not inside or path in find(dialect, around.home, around.env, around.platform)
            try:
                files.append((dialect, read(dialect, path, "" if own else around.project)))
            except EarnestError as error:
                errors.append(error)
    flat = [(dialect, file, entry) for dialect, file in files for entry in entries(dialect, file)]
    known = {
        name: ("url", server.url.shown().replace("$${", "${")) if server.url is not None else None
        for name, server in settings.servers.items()
    }
    names = assign([entry for _, _, entry in flat], known)
    servers_path = os.path.join(os.path.dirname(around.config), starting.SERVERS)
    reachable = not settings.path or servers_path in settings.includes
    remotes = {dialect.name for dialect, _, entry in flat if entry.kind == "http" and not entry.wrapped}
    listeners = {d.name: hooks.listener(d.name) if hooks.listener is not None and d.name in remotes else None for d in clients}
    found: list[Found] = []
    chosen: dict[str, dict[tuple[str, ...], str]] = {}
    for (dialect, file, entry), name in zip(flat, names, strict=True):
        why = entry.leave or _remote_reason(dialect, entry, hooks, listeners[dialect.name])
        if not why and entry.kind == "stdio" and not entry.wrapped and hooks.missing is not None:
            why = hooks.missing(entry)
        if not why and entry.kind == "stdio" and not entry.wrapped and file.project and around.named:
            why = f"others share this file, and {around.config} is a path of this machine; run init without naming one"
        if not why and entry.kind == "http" and not reachable and known.get(name) != ("url", entry.url):
            why = f'write include = ["{starting.SERVERS}"] into {around.config}, and make an empty {servers_path}'
        action = "wrapped" if entry.wrapped else "leave" if why else "wrap"
        found.append(Found(dialect.name, entry, name, action, "" if entry.wrapped else why))
        if action == "wrap":
            chosen.setdefault(file.path, {})[entry.where] = name
    made: list[tuple[Dialect, changes.Change]] = []
    remote: dict[str, tuple[str, tuple[str, ...]]] = {}
    for dialect, file in files:
        if file.path not in chosen:
            continue
        start = "earnest" if file.project else program
        try:
            config = around.config if around.named else ""
            change = changes.wrapping(dialect, file, chosen[file.path], start, listeners[dialect.name], config)
        except EarnestError as error:
            errors.append(error)
            continue
        made.append((dialect, change))
        for entry, name in change.names:
            if entry.kind == "http" and known.get(name) is None:
                old = remote.get(name, ("", ()))[1]
                remote[name] = (entry.url, tuple(dict.fromkeys((*old, *change.forward_headers[name]))))
    return Plan(
        found=tuple(found),
        changes=tuple(made),
        errors=tuple(errors),
        uncovered=tuple(
            item
            for item in uncovered(around.home, around.env, around.platform)
            if item.client in {dialect.name for dialect in clients}
        ),
        remote=remote,
        servers_path=servers_path,
    )


def _remote_reason(dialect: Dialect, entry: Entry, hooks: Hooks, listener: Listener | None) -> str:
    """Why a remote server stays with its client; empty for local ones and where it need not."""
    if entry.kind != "http" or entry.wrapped:
        return ""
    own_login = any(header.lower() == "authorization" for header in entry.headers)
    own_login = own_login or any(entry.node.get(key) is not None for key in dialect.header_sources)
    # What brings its own Authorization does not log in by OAuth, though it would ask whoever comes without.
    oauth = hooks.needs_oauth(entry.url) if hooks.needs_oauth is not None and not own_login else None
    if oauth or (oauth is None and not has_credential(dialect, entry)):
        needs = "it asks for OAuth" if oauth else "it brings no credential, so it will ask for OAuth"
        return f"{needs}, which the client does with the server itself"
    if has_credential(dialect, entry) and not hooks.forwards_headers:
        return "it has headers of its own, which earnest does not pass on yet"
    return "" if listener is not None else _NO_LISTENER


_NO_LISTENER = "earnest's listener has no lasting address: give [listen] a port"


def _candidates(dialect: Dialect, paths: Sequence[str]) -> EarnestError:
    return EarnestError(
        "E1017",
        f"{dialect.title} has {len(paths)} configurations here, and only one is read: {', '.join(paths)}",
        "None was changed. Remove or rename the ones it does not use, then run the command again.",
    )


def program_path(env: Mapping[str, str]) -> str:
    """The absolute path of earnest for client configurations: the script beside this interpreter, else the
    one in PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "earnest")
    for path in (sys.argv[0] if os.path.basename(sys.argv[0]) == "earnest" else "", beside):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return _writable(os.path.abspath(path))
    found = shutil.which("earnest", path=env.get("PATH"))
    if found is None:
        raise EarnestError(
            "E1016",
            "the program earnest is not installed where clients could start it",
            "install the package",
        )
    return _writable(os.path.abspath(found))


def _writable(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise EarnestError("E1016", f"the path of earnest is not UTF-8: {path!r}", "install it elsewhere") from None
    return path
