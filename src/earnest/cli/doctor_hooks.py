"""What `earnest doctor` says of hosts' hooks: where earnest's are, whether they start this earnest, for this configuration."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator

from earnest.cli.doctor_checks import Found, Place
from earnest.cli.hook import contents
from earnest.cli.hook_hosts import HOSTS, HookHost
from earnest.cli.init_plan import program_path
from earnest.config.clients import hook_edit
from earnest.core.errors import EarnestError


def hooks(at: Place, folder: str) -> Iterator[Found]:
    """Each host's own settings, and those it reads in `folder`, where earnest's hooks are there or could be."""
    home = at.env.get("HOME") or os.path.expanduser("~")
    for name, host in HOSTS.items():
        own = host.settings(at.env, home)
        of_folder = os.path.join(folder, *host.of_project.split("/"))
        some = False
        for path in dict.fromkeys((own, of_folder)):
            try:
                found = hook_edit.installed(path, contents(path) or b"", name)
            except EarnestError as error:
                yield Found(_area(name), "problem", f"{error.code}: {error.message}", error.remedy)
                some = True
                continue
            if found:
                some = True
                redo = f"`earnest hook install {name}" + ("`" if path == own else f" --project {shlex.quote(folder)}`")
                yield from _installed(at, name, host, path, found, redo)
        if not some and os.path.isdir(os.path.dirname(own)):
            text = f"no hooks of earnest's in {own}: the host's own tools are not judged, and the user's words not known"
            yield Found(_area(name), "note", text, f"`earnest hook install {name}` writes them, if you want them.")


def _installed(at: Place, name: str, host: HookHost, path: str, found: list[tuple[str, str]], redo: str) -> Iterator[Found]:
    area, events = _area(name), [event for event, _ in found]
    worse = False
    missing = [event for event in host.wire.events if event not in events]
    if missing:
        worse = True
        yield Found(area, "problem", f"{path}: no hook for {', '.join(missing)}", f"{redo} writes all of them anew.")
    for line in dict.fromkeys(line.rsplit(" ", 1)[0] for _, line in found):
        program, config = _parts(line)
        there = shutil.which(program, path=at.env.get("PATH", ""))
        if there is None:
            worse = True
            where = "" if os.sep in program else " on the PATH"
            yield Found(area, "problem", f"{path}: there is no {program}{where}", f"{redo} writes the path of this earnest.")
        elif (mine := _mine(at)) and os.path.realpath(there) != os.path.realpath(mine):
            worse = True
            yield Found(area, "note", f"{path} starts {there}, and this is {mine}", f"{redo} makes it this one.")
        wanted = at.config if at.named else ""
        if config != wanted:
            worse = True
            text = f"{path} is for {config or 'the usual configuration'}, and this looked at {at.config}"
            remedy = f"`earnest doctor{f' --config {shlex.quote(config)}' if config else ''}` looks at that one."
            yield Found(area, "note", text, remedy)
    if not worse:
        yield Found(area, "ok", f"{len(set(events))} events go to this earnest ({path})")
    for note in host.notes:
        yield Found(area, "note", note)


def _parts(line: str) -> tuple[str, str]:
    """Program and `--config` of a hook's command, without its event."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    config = words[words.index("--config") + 1] if "--config" in words[:-1] else ""
    return words[0], config


def _mine(at: Place) -> str:
    try:
        return program_path(at.env)
    except EarnestError:
        return ""


def _area(name: str) -> str:
    return f"hooks of {name}"
