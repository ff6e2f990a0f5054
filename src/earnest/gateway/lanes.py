"""The lanes of a contained server: what runs behind which walls.

A server's grants (`config.containing`) and a lane give one `Plan` of a sandbox. All lanes show the server its own program, the
system without its secrets, the granted folders, and a home that is its own and empty; nothing is shared between two of them but
those folders. Secrets go to the lanes that the operator named, and what else there is of an environment is what programs need.
"""

from __future__ import annotations

import os
import secrets as random
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from earnest.config import identity as identities
from earnest.config.containing import Containment
from earnest.config.sections import ServerSettings
from earnest.config.settings import Settings
from earnest.config.variables import Template
from earnest.core.errors import EarnestError
from earnest.core.lanes import Lane, enforced, lane_of
from earnest.core.profile import NOTHING, Labels
from earnest.gateway.launch import inherited
from earnest.gateway.secrecy import secret_values
from earnest.gateway.served import Grants, Launch
from earnest.pdp.catalog import Tool
from earnest.sandbox.box import Folder, Limits, Plan, Tier, within
from earnest.shim import paths

_NEEDED: Final = frozenset(("PATH", "LANG", "LANGUAGE", "TZ", "TERM"))
_SET: Final = {"PYTHONDONTWRITEBYTECODE": "1"}
"""A cache beside a program is no effect of a tool, and cannot be written where programs lie."""
_FOREVER_S: Final = 10.0 * 365 * 86400
LIMITS: Final = Limits(wall_s=_FOREVER_S, cpu_s=1 << 30, memory=4 << 30, processes=512, disk=2 << 30)
"""A server lives as long as its clients, so time is no limit; the rest keeps it from taking the machine."""
_FETCHING: Final = frozenset(("npx", "uvx", "pipx", "bunx", "pnpx", "docker", "podman"))


def grants_of(
    containment: Containment,
    settings: ServerSettings,
    launch: Launch,
    *,
    folder: str,
    secrets: Mapping[str, str],
    own: Sequence[str],
) -> tuple[Grants, tuple[str, ...]]:
    """What a server is granted, and the names of variables that look like secrets and go to no lane.

    `folder`: where relative paths start from; `secrets`: what references are looked up in; `own`: earnest's own files and
    folders, which no grant may show. Raises E1007 to E1009 where a reference leads nowhere, E1251 for a grant that cannot be.
    """
    read, write = (
        tuple(_path(each, folder, secrets, own) for each in given) for given in (containment.read, containment.write)
    )
    named = frozenset(name for names in containment.secrets.values() for name in names)
    unnamed = {
        name
        for name, template in settings.env.items()
        if name not in named and _is_secret(name, template, launch.env.get(name, ""))
    } - set(containment.env)
    common = (frozenset(settings.env) | frozenset(containment.env)) - named - unnamed
    grants = Grants(
        read=read,
        write=write,
        hosts=containment.hosts,
        env=common,
        secrets={lane: frozenset(names) for lane, names in containment.secrets.items()},
        one_lane=containment.one_lane,
        list_lane=containment.list_lane,
        tier=containment.tier,
        preview=containment.preview,
    )
    return grants, tuple(sorted(unnamed))


def contained(
    settings: Settings, server: ServerSettings, launch: Launch, secrets: Mapping[str, str]
) -> tuple[Launch, tuple[str, ...]]:
    """A launch with what it is granted, where the configuration wants the server contained; and the names of `grants_of`.
    Raises as that does."""
    containment = settings.containment(server)
    if containment is None or launch.url:
        return launch, ()
    own = (paths.home(secrets), *filter(None, (settings.path, *settings.includes)))
    grants, unnamed = grants_of(containment, server, launch, folder=settings.folder, secrets=secrets, own=own)
    grants = msgspec.structs.replace(grants, undo=grants.preview and settings.receipts.undo_days > 0)
    return msgspec.structs.replace(launch, grants=grants), unnamed


def _path(template: Template, folder: str, secrets: Mapping[str, str], own: Sequence[str]) -> str:
    text = template.resolve(secrets, base=folder or ".").reveal()
    if text == "~" or text.startswith("~/"):
        text = secrets.get("HOME", "/nonexistent") + text[1:]
    path = os.path.normpath(os.path.join(os.path.abspath(folder or "."), text))
    for each in own:
        if within(os.path.realpath(each), os.path.realpath(path)) or within(os.path.realpath(path), os.path.realpath(each)):
            raise EarnestError(
                "E1251",
                f"{template.field}: {path} holds files of earnest's own ({each}), and whoever has those decides for it",
                "Grant the folders that the server works on, one by one.",
            )
    if path == "/":
        raise EarnestError("E1251", f"{template.field}: the whole machine cannot be granted", "Grant the folders it works on.")
    return path


def _is_secret(name: str, template: Template, value: str) -> bool:
    looked_up = (each for each in template.references if each.kind != "env" or not inherited({each.name: ""}))
    return any(True for _ in looked_up) or bool(secret_values({name: value}))


def environment(launch: Launch, lane: Lane) -> dict[str, str]:
    """What one lane gets of a launch's environment; HOME is the box's."""
    grants = launch.grants or Grants()
    names = grants.env | grants.secrets.get(lane, frozenset())
    return {
        name: value
        for name, value in launch.env.items()
        if name in _NEEDED or name.startswith("LC_") or (name in names and name != "HOME")
    } | _SET


def plan_for(launch: Launch, lane: Lane, *, home: str = "") -> Plan:
    """The box of one lane of a contained server. `home`: a path inside that is not there on this machine; empty for a new one.

    Raises E1251 where a granted folder is not there, E1252 where the command cannot be run from within a box.
    """
    grants = launch.grants
    assert grants is not None
    home = home or f"{tempfile.gettempdir()}/earnest-lane-{random.token_hex(8)}/home"
    wide = lane in (Lane.ACT, Lane.PREVIEW)
    written = "copy" if lane is Lane.PREVIEW else "write" if wide else "read"
    folders = [Folder(path, path, "read") for path in grants.read]
    folders += [Folder(path, path, written) for path in grants.write]  # type: ignore[arg-type]
    folders.sort(key=lambda each: each.target.count("/"))  # what lies in another lies over it
    for each in folders:
        if not os.path.exists(each.target):
            raise EarnestError("E1251", f"{each.target} was granted and is not there", "Make it, or correct the grant.")
    reaches = bool(grants.hosts) and lane in (Lane.NET, Lane.ACT)
    cwd = launch.cwd if launch.cwd and any(within(launch.cwd, each.target) for each in folders) else home
    argv = _command(launch)
    if cwd == home:
        _check_words(argv, launch.cwd or "")
    return Plan(
        argv=argv,
        env=environment(launch, lane),
        cwd=cwd,
        home=home,
        folders=tuple(folders),
        reach="hosts" if reaches else "none",
        hosts=grants.hosts if reaches else (),
        limits=LIMITS,
        watch=True,
        strict=True,
    )


def _command(launch: Launch) -> tuple[str, ...]:
    """What is started: for a runner (`npx`, `uvx`) what it would start, which has to lie here, since a box has nothing to fetch
    it from. Raises E1252."""
    name = os.path.basename(launch.argv[0])
    if name not in _FETCHING and not (name in ("uv", "npm") and {"run", "exec", "x"} & set(launch.argv[1:3])):
        return launch.argv
    found = identities.installed(launch.argv, launch.env, launch.cwd or "/")
    if found is not None:
        return found
    remedy = {
        "npx": "Start it once without `contain`: then it is in npm's cache. Or install it and give its own program.",
        "uvx": "Install it (`uv tool install NAME`), or give its own program as the command.",
    }
    raise EarnestError(
        "E1252",
        f"`{name}` fetches what it starts, or starts it elsewhere; a contained server has nothing to fetch from",
        remedy.get(name, "Install the server, and give the path of its own program as the command."),
    )


def _check_words(argv: Sequence[str], cwd: str) -> None:
    """Raise E1252 for a command that means something by a working folder, which the box does not show."""
    for number, word in enumerate(argv):
        if os.path.isabs(word) or word.startswith("-") or not cwd or (number == 0 and "/" not in word):
            continue
        path = os.path.join(cwd, word)
        if os.path.isfile(path) or (os.path.isdir(path) and ("/" in word or word in (".", ".."))):
            raise EarnestError(
                "E1252",
                f"{shlex.quote(word)} in the command means something in {cwd}, which is not granted",
                f"Write the whole path, or grant the folder: [servers.NAME.contain] read = [{cwd!r}]",
            )


_found: dict[str, Tier] = {}
"""The tiers that boxes were asked for in this process, by how they were."""


def tier_of(grants: Grants) -> Tier:
    """The tier that a server's boxes are made by; the first time in a process this tries what there is, which takes a while.

    Raises E1254 where there is none: what is to be contained is not started without.
    """
    from earnest.sandbox import tiers  # here, since it loads all that boxes are made by

    try:
        found = _found[grants.tier] = tiers.choose(grants.tier)
    except EarnestError as error:
        shows = "" if "assay doctor" in error.remedy else "`earnest assay doctor` shows what this machine gives. "
        other = "Without `tier` the best that works is taken; " if grants.tier else ""
        remedy = f"{error.remedy} {shows}{other}`contain = false` runs it without."
        raise EarnestError("E1254", f"it is to be contained, and {error.message}", remedy.strip(), exit_code=3) from None
    return found


def letter(tier: Tier) -> str:
    """A tier as persons are told it."""
    from earnest.sandbox import tiers

    return tiers.LETTERS.get(tier.name, tier.name)


def boxed(launch: Launch, lane: Lane) -> tuple[Tier, Plan]:
    """Tier and plan of one lane of a server, for a fresh box. Raises E1251, E1252, E1254."""
    assert launch.grants is not None
    return tier_of(launch.grants), plan_for(launch, lane)


def told(launch: Launch) -> str:
    """How a server is contained, for a line about it; empty where it is not."""
    grants = launch.grants
    if grants is None:
        return ""
    if grants.one_lane:
        return " contained in one lane (nothing is enforced)"
    tier = _found.get(grants.tier)
    return f" contained in lanes (tier {letter(tier)})" if tier is not None else " contained in lanes"


def previewed(grants: Grants | None, lane: Lane | None) -> bool:
    """Whether a call in a lane that has to be asked about is run over a copy first: its server's state is on disk, by its
    operator's word, and it may write somewhere."""
    return grants is not None and lane is Lane.ACT and grants.preview and bool(grants.write) and not grants.one_lane


def undoable(grants: Grants, lane: Lane | None) -> bool:
    """Whether a call in a lane can be run over a copy first, and what is made real of it undone: it reaches no host, and the
    tier, as far as it is known, has copies at their own paths."""
    tier = _found.get(grants.tier)
    if tier is None or grants.hosts or not previewed(grants, lane):
        return False
    return grants.undo and tier.sight.copies_in_place and tier.sight.holds_writes and tier.sight.holds_network


def lane_words(grants: Grants, tool: Tool, operator: Labels) -> tuple[Lane | None, Labels]:
    """The lane that a tool's calls go to, and what it makes impossible, as far as the tier is known: it is once a process of
    the server runs. What is no tool goes where lists come from, and what asks for a task where
    that was made, if that is known."""
    if tool.is_method:
        if tool.name.startswith("tasks/") and tool.lane is None:
            return None, NOTHING
        lane = tool.lane or grants.list_lane
    else:
        lane = lane_of(tool.claims, operator)
    if grants.one_lane:
        return Lane.ACT, NOTHING
    tier = _found.get(grants.tier)
    if tier is None:
        return lane, NOTHING
    return lane, enforced(
        lane,
        closed=not grants.hosts,
        holds_writes=tier.sight.holds_writes,
        holds_network=tier.sight.holds_network,
        source=f"{lane} lane, tier {letter(tier)}",
    )
