"""`earnest config`: whether the configuration can be used, and a yes to one that was found in a folder."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec
import typer

from earnest.cli.daemon import connect, output, person
from earnest.cli.found import approved, found_file
from earnest.cli.options import Config, Json
from earnest.cli.style import Terminal, several
from earnest.cli.target import print_json
from earnest.config import overlay as overlays
from earnest.config import settings as reading
from earnest.config.overlay import Overlay
from earnest.config.policy.check import check as examine
from earnest.config.policy.findings import PolicyError, Severity
from earnest.config.policy.load import compose
from earnest.config.sections import ServerSettings
from earnest.config.settings import Settings
from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES
from earnest.gateway.lanes import contained
from earnest.gateway.launch import inherited, launch_of, shown
from earnest.shim import paths
from earnest.upstream.starting import find_executable

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

_Path = Annotated[str, typer.Argument(metavar="[PATH]", help="The file; else earnest.toml in the working directory.")]


@app.callback()
def config_() -> None:
    """The configuration: earnest.toml, yours, and one that lies in a folder you work in.

    \b
    earnest config check      is everything in it usable?
    earnest config approve    read the folder's earnest.toml, and take it as your own

    A file in the working directory may come with a cloned repository. Until you approve it, it can only make things stricter,
    and none of its servers is started.
    """


@app.command("check")
def check(as_json: Json = False, config: Config = "") -> int:
    """Read the configuration with its policy, and look whether every server could be started. Starts nothing.

    \b
    earnest config check
    earnest --config team.toml config check --json

    Exit code 0 if all is well, 1 if something would not work, 2 if the file itself is wrong.
    """
    path, named = paths.config_path(os.environ, config)
    settings = reading.load(path, named, os.environ)
    problems: list[dict[str, str]] = []
    for name, server in settings.servers.items():
        error = _unusable(settings, server)
        if error is not None:
            problems.append(_problem(f"servers.{name}", error))
    try:
        checked = examine(compose(settings.policies, settings.preset).policy)
    except PolicyError as error:
        problems += [{"where": "policy", "code": f.code, "message": str(f), "remedy": ""} for f in error.findings]
    else:
        worse = [finding for finding in checked.findings if finding.severity is not Severity.NOTE]
        problems += [{"where": "policy", "code": f.code, "message": str(f), "remedy": ""} for f in worse]
    found = found_file(path)
    yes = found is not None and approved(found, config)
    if as_json:
        print_json(_told(path, settings, problems, found, yes))
    else:
        _draw_check(output(), path, settings, problems)
        if found is not None:
            _draw_lying(output(), found, yes)
    return 1 if problems else 0


@app.command("approve")
def approve(path: _Path = "", as_json: Json = False, config: Config = "") -> int:
    """Take a folder's earnest.toml as your own, at a terminal, after all it says was shown. Any later change wants a new yes.

    \b
    earnest config approve
    earnest config approve ~/src/project/earnest.toml
    """
    file = os.path.realpath(os.path.join(os.getcwd(), path or overlays.FILE_NAME))
    if os.path.isdir(file):
        file = os.path.join(file, overlays.FILE_NAME)
    own, _ = paths.config_path(os.environ, config)
    if os.path.realpath(own) == file:
        raise EarnestError("E1018", f"{file} is your own configuration; it needs no approval")
    found = overlays.overlay(file, os.environ)
    if found is None:
        raise EarnestError("E1001", f"{file}: there is no such file", "Go to the folder, or give the path.")
    whole = reading.load(file, True, os.environ)
    if whole.sha256 != found.sha256:
        raise EarnestError("E1605", f"{file} changed while it was read", "Run the command again.", exit_code=1)
    with person("approving a configuration") as terminal:
        _draw_found(terminal, found, whole)
        if terminal.ask("Take this file as your own?", {"y": "yes", "n": "no"}, "n") != "y":
            raise EarnestError("E1611", "nothing was changed", exit_code=1)
        with connect(config) as daemon:
            done = daemon.call("approve-config", path=file, sha256=found.sha256)
        if as_json:
            print_json({"path": file, "sha256": found.sha256, **done})
        else:
            terminal.line(f"{file} is approved as it is now (receipt {done['receipt']}).", "good")
    return 0


def _unusable(settings: Settings, server: ServerSettings) -> EarnestError | None:
    """Why a server could not be started here, or None."""
    if not server.command and server.url is None:
        return None
    try:
        launch = launch_of(server, folder=settings.folder, env=inherited(os.environ), secrets=os.environ)
        contained(settings, server, launch, os.environ)
        if launch.argv:
            find_executable(launch.argv[0], launch.env.get("PATH", os.defpath), launch.cwd)
            if not os.path.isdir(launch.cwd or "/"):
                return EarnestError("E1202", f"its folder {launch.cwd!r} does not exist")
    except EarnestError as error:
        return error
    return None


def _problem(where: str, error: EarnestError) -> dict[str, str]:
    return {"where": where, "code": error.code, "message": error.message, "remedy": error.remedy}


def _told(path: str, settings: Settings, problems: list[dict[str, str]], found: Overlay | None, yes: bool) -> dict[str, Any]:
    return {
        "path": path,
        "exists": bool(settings.path),
        "sha256": settings.sha256,
        "preset": settings.preset,
        "servers": [
            {"name": name, "launch": _launch(server), "trust": str(server.trust) if server.trust is not None else None}
            for name, server in settings.servers.items()
        ],
        "problems": problems,
        "found": None
        if found is None
        else {
            "path": found.path,
            "sha256": found.sha256,
            "approved": yes,
            "servers": [{"name": one.name, "launch": shown(one)} for one in found.pending],
            "ignored": list(found.ignored),
        },
    }


def _launch(server: ServerSettings) -> str:
    return shown(server) if server.command or server.url is not None else ""


def _draw_check(out: Terminal, path: str, settings: Settings, problems: list[dict[str, str]]) -> None:
    out.line(path if settings.path else f"{path} (there is none; defaults hold)", "strong")
    out.line(
        f"  preset {settings.preset}, {several(len(settings.servers), 'server')}, {several(len(settings.labels), 'label')}"
    )
    for name, server in settings.servers.items():
        trust = f"   {server.trust}" if server.trust is not None else ""
        out.line(f"  {name}   {_launch(server) or 'brought by its client'}{trust}")
    for problem in problems:
        out.error(EarnestError(problem["code"], f"{problem['where']}: {problem['message']}", problem["remedy"]))
    if not problems:
        out.line("  all usable", "good")


def _draw_lying(out: Terminal, found: Overlay, yes: bool) -> None:
    out.line()
    servers = ", ".join(one.name for one in found.pending)
    if yes:
        out.line(f"{found.path} is approved as it is now; its servers: {servers or 'none'}")
        return
    out.line(f"{found.path} is not approved: it only makes things stricter")
    if servers:
        out.line(f"  Its servers are not started: {servers}. See: earnest config approve")
    for line in found.ignored:
        out.line(f"  does not count: {line}", "dim")


def _draw_found(out: Terminal, found: Overlay, whole: Settings) -> None:
    out.line(found.path, "strong")
    out.line(f"  sha256 {found.sha256}")
    out.line()
    if whole.servers:
        out.line("It names servers. A command runs on this machine with your rights, whatever its tools claim:", "warn")
    for name, server in whole.servers.items():
        _draw_server(out, name, server)
    for labels in whole.labels:
        said = [f"{name}={str(one).lower()}" for name in NAMES if (one := labels.labels.get(name)) is not None]
        said += ["refinements"] * bool(labels.refine) + ["a dispatcher"] * (labels.dispatcher is not None)
        said += [f"roles of {', '.join(labels.arg_roles)}"] * bool(labels.arg_roles)
        out.line(f"  labels {labels.server}/{labels.tool}: {', '.join(said)}")
    for name, view in whole.views.items():
        out.line(f"  view {name}: {msgspec.json.encode(view).decode()}")
    if found.policies or found.preset:
        preset = f", preset {found.preset}" if found.preset else ""
        out.line(f"  policy: its asks and denies count already{preset}")
    for line in _still_ignored(found):
        out.line(f"  does not count even when approved: {line}", "dim")
    out.line()
    out.line("When you approve it, its servers can be started, with the trust it gives them, and its labels and views count.")


def _draw_server(out: Terminal, name: str, server: ServerSettings) -> None:
    out.line(f"  server {name}", "strong")
    if server.command or server.url is not None:
        out.line(f"    {'command' if server.command else 'address'}: {shown(server)}")
    if server.cwd is not None:
        out.line(f"    folder: {server.cwd.shown()}")
    for word, names in (("environment", server.env), ("headers", server.headers)):
        if names:
            out.line(f"    {word}: {', '.join(names)}")
    references = [str(part) for given in (server.env, server.headers) for t in given.values() for part in t.references]
    if references:
        out.line(f"    it is given what you keep at: {', '.join(references)}", "warn")
    if server.forward_headers:
        out.line(f"    the client's headers go on to it: {', '.join(server.forward_headers)}")
    if server.trust is not None:
        out.line(f"    trust: {server.trust}", "warn" if server.trust != "untrusted" else None)


def _still_ignored(found: Overlay) -> list[str]:
    """What a yes does not change: labels and views of an approved file count."""
    return [line for line in found.ignored if "labels that make" not in line and "[views]" not in line]
