"""`earnest probe`: one look at a server, kept nowhere."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Annotated, Any

import msgspec
import typer

from earnest.cli.daemon import output
from earnest.cli.found import approved, found_file
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal
from earnest.config import identity as identities
from earnest.config import overlay as overlays
from earnest.config import settings as reading
from earnest.config.document import nearest
from earnest.config.identity import Identity
from earnest.config.sections import ServerSettings
from earnest.config.settings import Settings
from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS, RawHints
from earnest.gateway.glance import Glance, glance
from earnest.gateway.lanes import contained
from earnest.gateway.lanes import told as in_lanes
from earnest.gateway.launch import inherited, launch_of, own_secrets, shown
from earnest.gateway.served import Launch
from earnest.shim import paths

_Target = Annotated[
    list[str], typer.Argument(metavar="NAME | URL | -- COMMAND…", help="A configured server, an address, or a command.")
]
_Timeout = Annotated[float, typer.Option(help="Seconds the server has to answer the opening.", min=0.1)]


def probe(ctx: typer.Context, target: _Target, timeout: _Timeout = 30.0, as_json: Json = False, config: Config = "") -> None:
    """Ask a server once what it is and what its tools claim; nothing is added, trusted or kept.

    \b
    earnest probe files                                   a server of the configuration
    earnest probe https://example.com/mcp                 an address
    earnest probe -- npx -y @scope/some-server /folder    a command, started with your environment

    What is shown is what the server says of itself; `earnest tools` shows what earnest makes of it. Exit code 3 if the server
    fails, with its last words.
    """
    name, launch, command = launch_of_target(target, ctx.obj, config)
    seen = asyncio.run(glance(name, launch, timeout))
    if launch.url:
        identity = identities.of_url(launch.url)
    else:
        identity = identities.of_command(launch.argv, launch.env, launch.cwd or os.getcwd())
    if command:
        identity = msgspec.structs.replace(identity, display=command)
    if as_json:
        typer.echo(msgspec.json.encode(told(seen, identity)).decode())
    else:
        _draw(output(), seen, identity, in_lanes(launch).strip())


def told(seen: Glance, identity: Identity) -> dict[str, Any]:
    """The machine-readable answer. `server` may grow; a tool has exactly `name`, `raw` and `effective`."""
    hello = seen.hello
    return {
        "server": {
            "name": str(seen.info.get("name", "")),
            "version": str(seen.info.get("version", "")),
            "title": str(seen.info.get("title", "")),
            "transport": seen.transport,
            "era": "modern" if hello.modern else "legacy",
            "protocol_version": hello.version,
            "protocol_versions": list(hello.supported),
            "capabilities": seen.capabilities,
            "instructions": hello.instructions,
            "identity": msgspec.to_builtins(identity),
            "malformed": [{"tool": t.name, "hints": list(t.raw.malformed)} for t in seen.tools if t.raw.malformed],
            "problems": list(seen.problems),
        },
        "tools": [
            {"name": t.name, "raw": raw_told(t.raw), "effective": {hint: getattr(t.effective, hint) for hint in HINTS}}
            for t in seen.tools
        ],
    }


def raw_told(raw: RawHints) -> dict[str, bool | None]:
    """The four hints as claimed, `None` where absent."""
    return {hint: raw.get(hint) for hint in HINTS}


def launch_of_target(target: list[str], behind: tuple[str, ...] | None, config: str) -> tuple[str, Launch, str]:
    """A name for messages, the launch, and how it is shown where it holds references to secrets."""
    if behind is not None:
        if len(target) > len(behind):
            raise EarnestError("E1018", "give either a name or a command, not both", "earnest probe -- COMMAND …")
        # Typed by a person, with a person's own environment; that is the yes (SEP-1024).
        launch = Launch(argv=behind, env=dict(os.environ), cwd=os.getcwd(), secrets=own_secrets(os.environ))
        return os.path.basename(behind[0]), launch, ""
    if len(target) > 1:
        raise EarnestError("E1018", "a command stands behind two dashes", f"earnest probe -- {shlex.join(target)}")
    word = target[0]
    if word.startswith(("http://", "https://")):
        return word, Launch(url=word), ""
    settings, server = configured(word, config)
    launch = launch_of(server, folder=settings.folder, env=inherited(os.environ), secrets=os.environ)
    return word, contained(settings, server, launch, os.environ)[0], shown(server)


def configured(name: str, config: str) -> tuple[Settings, ServerSettings]:
    """The configuration and what it says of one server, which it can start or reach. Raises E1211, E1213, E1012, E10xx."""
    path, named = paths.config_path(os.environ, config)
    settings = reading.load(path, named, os.environ)
    server = settings.servers.get(name)
    if server is None:
        found = found_file(path)
        if found is not None and any(one.name == name for one in found.pending):
            if not approved(found, config):
                raise overlays.pending_error(found, name)
            settings = reading.load(found.path, True, os.environ)
            return settings, settings.servers[name]
        known = nearest(name, sorted(settings.servers)) or f"{path} configures none; `earnest probe -- COMMAND …` asks any"
        raise EarnestError("E1211", f"there is no server {name!r} in {path}", known)
    if not server.command and server.url is None:
        raise EarnestError(
            "E1213",
            f"[servers.{name}] has neither command nor url: a client brings its command",
            f"Give it: earnest probe -- COMMAND …, or write it into {server.source}.",
        )
    return settings, server


def _draw(out: Terminal, seen: Glance, identity: Identity, inside: str) -> None:
    hello = seen.hello
    label = " ".join(str(seen.info[key]) for key in ("name", "version") if seen.info.get(key))
    title = f" ({seen.info['title']})" if seen.info.get("title") else ""
    out.line(f"{label or 'a server without a name'}{title}", "strong")
    out.line(f"  {'command' if identity.kind == 'stdio' else 'address'}:  {identity.display}")
    for word, value in (
        ("runs", inside),
        ("package", identity.package),
        ("version", identity.version),
        ("artefact", identity.artefact),
    ):
        if value:
            out.line(f"  {(word + ':').ljust(10)}{value}")
    others = [version for version in hello.supported if version != hello.version]
    also = f", also {', '.join(others)}" if others else ""
    era = "modern" if hello.modern else "legacy"
    out.line(f"  speaks:   MCP {hello.version}{also} ({era} era) over {seen.transport}")
    out.line(f"  offers:   {', '.join(sorted(seen.capabilities)) or 'nothing'}")
    if hello.instructions:
        out.line("  says to the model:")
        for line in hello.instructions.splitlines():
            out.line(f"    {line}")
    out.line()
    if seen.tools:
        rows = [[t.name, *(claim(t.raw.get(h), getattr(t.effective, h)) for h in HINTS)] for t in seen.tools]
        out.table(["tool", *(hint.replace("_", "-") for hint in HINTS)], rows)
        out.line()
        out.line("in brackets: what the specification takes where nothing is claimed, or where read-only makes it moot", "dim")
    else:
        out.line("no tools")
    for tool in seen.tools:
        if tool.raw.malformed:
            out.line(f"{tool.name}: {', '.join(tool.raw.malformed)} is neither true nor false and counts as absent", "warn")
    for problem in seen.problems:
        out.line(problem, "bad")


def claim(raw: bool | None, effective: bool) -> str:
    """A claim and what it comes to: `true`; `(true)` where absent; `false (true)` where the specification overrides it."""
    means = f"({str(effective).lower()})"
    if raw is None:
        return means
    said = str(raw).lower()
    return said if raw is effective else f"{said} {means}"
