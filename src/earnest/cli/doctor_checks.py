"""What `earnest doctor` looks at. Each check says what it found, one line a finding, and what to do where something is wrong.

Checks look and change nothing; those of servers start the server once and end it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal

import msgspec

import earnest
from earnest.cli.daemon import running
from earnest.cli.receipts import check as check_receipts
from earnest.config.policy import PolicyError, compose
from earnest.config.sections import ServerSettings
from earnest.config.settings import Settings, load
from earnest.core.errors import EarnestError
from earnest.gateway.glance import glance
from earnest.gateway.lanes import contained, told
from earnest.gateway.launch import inherited, launch_of, shown
from earnest.gateway.loss import REMEDY
from earnest.gateway.ungranted import proposal, ungranted
from earnest.net.tracks import AVAILABLE
from earnest.shim import paths
from earnest.store import read, segments
from earnest.store.sqlite import open_store

State = Literal["ok", "note", "problem"]

START_S: Final = 30.0
LOW_BYTES: Final = 100 << 20
QUICK_BYTES: Final = 64 << 20
RUNNERS: Final = {
    "npx": "Install Node.js (18 or later), which brings npx.",
    "node": "Install Node.js (18 or later).",
    "uvx": "Install uv, which brings uvx.",
    "docker": "Install Docker, or a program that answers to its name.",
}
"""Programs that start servers, and where they come from."""


class Found(msgspec.Struct, frozen=True):
    """One line. A `note` is worth knowing and no problem; `remedy` says what to do."""

    area: str
    state: State
    text: str
    remedy: str = ""


class Place(msgspec.Struct, frozen=True):
    """Where is looked."""

    env: Mapping[str, str]
    flag: str
    config: str
    named: bool
    instance: str
    home: str


def place(env: Mapping[str, str], flag: str) -> Place:
    """The paths of a configuration. Raises `ShimError` where there is no home."""
    config, named = paths.config_path(env, flag)
    return Place(env, flag, config, named, paths.instance(env, flag), paths.home(env))


def programs(at: Place) -> Iterator[Found]:
    """Versions of earnest and of what servers run on."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Found("programs", "ok", f"earnest {earnest.__version__} on Python {version} ({sys.executable})")
    if not AVAILABLE:
        text = "earnest was installed without its compiled piece: calls over HTTP cost several times the processor time"
        yield Found("programs", "note", text, "Install a C compiler and Python's headers, then earnest again.")
    if sys.platform == "win32":
        yield Found("programs", "problem", "this is Windows", "Run earnest inside WSL, with the servers there too.")
    path = at.env.get("PATH", "")
    node = shutil.which("node", path=path)
    if node is None:
        yield Found("programs", "note", "node is not installed; servers from npm need it", RUNNERS["node"])
    else:
        yield _version("node", [node, "--version"])
    if node is not None and shutil.which("npx", path=path) is None:
        yield Found("programs", "note", "node is there, npx is not; most servers from npm are started by it", RUNNERS["npx"])


def _version(name: str, command: list[str]) -> Found:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found("programs", "problem", f"{command[0]} cannot be run: {error}", f"Reinstall {name}.")
    said = (done.stdout or done.stderr).strip()
    major = said.lstrip("v").split(".")[0]
    if done.returncode or not major.isdigit():
        return Found("programs", "problem", f"{command[0]} is broken: {said[:200]}", f"Reinstall {name}.")
    if int(major) < 18:
        return Found("programs", "note", f"{name} {said} is old; many servers want 18 or later", RUNNERS[name])
    return Found("programs", "ok", f"{name} {said}")


def configuration(at: Place) -> tuple[Settings | None, list[Found]]:
    """The configuration and its policy, read as the daemon reads them."""
    found: list[Found] = []
    settings: Settings | None = None
    try:
        settings = load(at.config, at.named, at.env)
        if settings.path:
            found.append(Found("configuration", "ok", f"{at.config}: {_count(len(settings.servers), 'server')}"))
        else:
            text = f"there is no {at.config}; the defaults hold"
            found.append(Found("configuration", "note", text, "`earnest init` makes one."))
        document = compose(settings.policies, settings.preset)
        name = document.policy.preset_name
        found.append(Found("configuration", "ok", f"policy reads well, preset {name} ({document.policy.sha256[:12]})"))
    except EarnestError as error:
        found.append(_error("configuration", error))
    return settings, found


def folders(at: Place) -> Iterator[Found]:
    """The folder of the instance, the files in it, and the space around it."""
    if not os.path.isdir(at.instance):
        above = at.instance
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if os.access(above, os.W_OK | os.X_OK):
            yield Found("folders", "ok", f"{at.instance} is not there yet; the first start makes it")
        else:
            text = f"{at.instance} cannot be made: {above} cannot be written"
            yield Found("folders", "problem", text, "Give yourself that right, or set EARNEST_HOME to a folder you can write.")
    else:
        try:
            os.close(paths.open_folder(at.instance, create=False))
            yield Found("folders", "ok", f"{at.instance} is yours alone")
        except paths.ShimError as error:
            yield Found("folders", "problem", f"{error.code}: {error.message}", error.remedy)
        for name in ("s", "token", "tokens.json", "signing.key", "seal.key", "store.db"):
            path = os.path.join(at.instance, name)
            try:
                about = os.lstat(path)
            except FileNotFoundError:
                continue
            if about.st_mode & 0o077 or about.st_uid != os.geteuid() or stat.S_ISLNK(about.st_mode):
                yield Found("folders", "problem", f"{path} is open to others, or not yours", f"chmod 600 {path}")
    around = at.home
    while not os.path.isdir(around):
        around = os.path.dirname(around)
    free = shutil.disk_usage(around).free
    if free < LOW_BYTES:
        remedy = "Free some: without a receipt no call goes out."
        yield Found("folders", "problem", f"only {free >> 20} MiB are free around {at.home}", remedy)
    else:
        yield Found("folders", "ok", f"{free >> 20} MiB free around {at.home}")


def daemon(at: Place) -> tuple[dict[str, Any] | None, list[Found]]:
    """Whether a daemon runs, of which version, and what it says of itself."""
    try:
        control = running(at.flag)
        if control is None:
            return None, [Found("daemon", "ok", "none runs; a client, or a command that needs it, starts it")]
        with control:
            ping, status = control.call("ping"), control.call("status")
    except EarnestError as error:
        return None, [_error("daemon", error)]
    found = [Found("daemon", "ok", f"process {ping['pid']}, earnest {ping['version']}, {_count(ping['clients'], 'client')}")]
    if ping["version"] != earnest.__version__:
        text = f"the daemon is earnest {ping['version']}, this is {earnest.__version__}"
        found.append(Found("daemon", "problem", text, "`earnest stop` ends it; the next client starts this version."))
    if status["receipts_problem"]:
        text = f"receipts cannot be written, so no call goes out: {status['receipts_problem']}"
        found.append(Found("daemon", "problem", text, "Free space, or mend the folder; calls go on by themselves."))
    if status["store_lost"]:
        text = f"E1416: {status['store_lost']}; until you say so, every conversation counts as private and untrusted"
        found.append(Found("store", "problem", text, REMEDY))
    for server in status["servers"]:
        if server["trust_source"].startswith("the file's trust was given to another"):
            remedy = f"`earnest trust {server['name']} --trusted` gives it to this one, after showing it."
            found.append(Found(f"server {server['name']}", "problem", server["trust_source"], remedy))
    if status["waiting"]:
        text = f"{_count(status['waiting'], 'call')} waiting for you"
        found.append(Found("daemon", "note", text, "`earnest approvals` shows and answers them."))
    return status, found


def listener(settings: Settings, status: dict[str, Any] | None) -> Iterator[Found]:
    """Where HTTP is served, or could be."""
    wanted = settings.listen
    if wanted.host not in ("127.0.0.1", "::1", "localhost"):
        text = f"[listen] host = {wanted.host!r} is reachable from other machines, without TLS"
        yield Found("listener", "note", text, "Put a proxy with TLS in front, or listen on 127.0.0.1.")
    if status is not None and status["address"]:
        yield Found("listener", "ok", f"the daemon listens at {status['address']}")
        return
    if wanted.port == 0:
        return
    family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((wanted.host, wanted.port))
        except OSError as error:
            text = f"{wanted.host}:{wanted.port} cannot be had: {error.strerror}"
            remedy = "Choose another: [listen] port, or `earnest run --port 0`."
            if error.errno == errno.EADDRINUSE:
                remedy += " Perhaps an earnest of another configuration has it (the demo servers of `earnest run`, say)."
            yield Found("listener", "problem", text, remedy)
        else:
            yield Found("listener", "ok", f"not open; {wanted.host}:{wanted.port} is free for `earnest run`")


def servers(at: Place, settings: Settings, *, start: bool) -> tuple[dict[str, int], list[Found]]:
    """Each configured server: its program, its references, whether it starts; and how many tools each has."""
    named = [server for server in settings.servers.values() if server.command or server.url is not None]
    counts: dict[str, int] = {}
    found: list[Found] = []
    with ThreadPoolExecutor(4) as pool:
        for server, (tools, lines) in zip(named, pool.map(lambda s: _server(at, settings, s, start), named), strict=True):
            found += lines
            if tools is not None:
                counts[server.name] = tools
    return counts, found


def _server(at: Place, settings: Settings, server: ServerSettings, start: bool) -> tuple[int | None, list[Found]]:
    area = f"server {server.name}"
    program = server.command[0].shown() if server.command else ""
    try:
        launch = launch_of(server, folder=settings.folder, env=inherited(at.env), secrets=at.env)
        launch, unnamed = contained(settings, server, launch, at.env)
        if launch.argv and os.sep not in program and shutil.which(program, path=launch.env.get("PATH", "")) is None:
            remedy = RUNNERS.get(program, f"Install {program}, or write its absolute path into {server.source}.")
            return None, [Found(area, "problem", f"there is no {program} on the PATH", remedy)]
        if not start:
            return None, [Found(area, "ok", f"{shown(server)} (not started)")]
        seen = asyncio.run(glance(server.name, launch, server.timeout or START_S))
    except EarnestError as error:
        return None, [_error(area, error, f"See {server.source}.")]
    found = [Found(area, "ok", f"starts{told(launch)}, {_count(len(seen.tools), 'tool')}: {shown(server)}")]
    remedy = f"Name the lanes that need it: [servers.{server.name}.contain] secrets = {{ net = [...] }}"
    found += [Found(area, "note", f"{name} looks like a secret and goes to no lane", remedy) for name in unnamed]
    if named := ungranted(launch):
        found.append(Found(area, "note", f"no lane is shown {', '.join(named)}", proposal(server.name, named)))
    found += [Found(area, "problem", text, "The server's author has to mend it.") for text in seen.problems]
    return len(seen.tools), found


def receipts(at: Place) -> Iterator[Found]:
    """The store, the chain of receipts if it is not too long for a quick look, and the clock against it."""
    store = os.path.join(at.instance, "store.db")
    folder = os.path.join(at.instance, "receipts")
    if not os.path.exists(store):
        return
    try:
        open_store(store, read_only=True).close()
        size = sum(os.path.getsize(path) for writer in segments.writers(folder) for path in segments.segments(folder, writer))
        if size > QUICK_BYTES:
            text = f"{size >> 20} MiB, too much for a quick look"
            yield Found("receipts", "note", text, "`earnest receipts verify` takes its time.")
            return
        reports = check_receipts(at.instance)
        last = max((receipt.time for receipt in read.receipts(folder)), default="")
    except EarnestError as error:
        yield _error("receipts", error)
        return
    for report in reports:
        if report.intact:
            yield Found("receipts", "ok", f"{report.writer}: {_count(report.records, 'record')}, whole")
        else:
            text = f"{report.writer}: {_count(len(report.findings), 'finding')}, the first: {report.findings[0].text}"
            yield Found("receipts", "problem", text, "`earnest receipts verify` shows all.")
    yield from _clock(last)


def _clock(last: str) -> Iterator[Found]:
    now = read.stamp(_now())
    if last > now:
        text = f"the clock says {now}, and there are receipts of {last}"
        yield Found("clock", "problem", text, "Set the clock: approvals and receipts go by it.")
    elif last:
        yield Found("clock", "ok", f"{now}, after every receipt")


def _now() -> float:
    import time

    return time.time()


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _error(area: str, error: EarnestError, remedy: str = "") -> Found:
    if isinstance(error, PolicyError):
        return Found(area, "problem", str(error))
    return Found(area, "problem", f"{error.code}: {error.told}", error.remedy or remedy)
