"""`earnest hook install`: put earnest into a host's hooks, and take it out again. The hooks themselves are the shim's."""

from __future__ import annotations

import hashlib
import os
import shlex
from typing import Annotated, Final

import msgspec
import typer

from earnest.cli.daemon import confirm, instance, output
from earnest.cli.hook_hosts import HOSTS, HookHost, command
from earnest.cli.init_plan import program_path
from earnest.cli.options import Config
from earnest.config import files
from earnest.config.clients import hook_edit
from earnest.core.errors import EarnestError
from earnest.shim import paths

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

JOURNAL: Final = "hooks.json"
_LIMIT: Final = 1 << 24


class Written(msgspec.Struct, frozen=True):
    """One settings file as it was changed: digest of what was written, and where what stood there before is kept; empty where
    there was no file."""

    sha256: str
    backup: str


@app.callback()
def hook_() -> None:
    """Let a host ask earnest before it uses a tool, its own too, and tell it what the user said.

    \b
    Examples:
      earnest hook install claude-code --dry-run
      earnest hook install codex
      earnest hook install cursor --undo
    """


@app.command("install")
def install(
    host: Annotated[str, typer.Argument(metavar="HOST", help="claude-code, codex, gemini-cli or cursor.")],
    project: Annotated[str, typer.Option("--project", metavar="DIR", help="That project's settings instead of your own.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show, and change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take earnest out again.")] = False,
    config: Config = "",
) -> int:
    """Write earnest's hooks into a host's settings: shown first, then asked for, with a backup. Takes a person at a terminal.

    \b
    Examples:
      earnest hook install claude-code                   for all your projects (~/.claude/settings.json)
      earnest hook install claude-code --project .       for this one (.claude/settings.local.json)
      earnest hook install codex                         ~/.codex/hooks.json
      earnest hook install gemini-cli                    ~/.gemini/settings.json
      earnest hook install cursor                        ~/.cursor/hooks.json
      earnest hook install cursor --undo
    """
    known = HOSTS.get(host)
    if known is None:
        raise EarnestError("E1031", f"earnest has no hook for {host!r}", f"one of {', '.join(HOSTS)}")
    path = settings_path(known, project)
    before = contents(path)
    folder = instance(config)
    if undo:
        after = _undone(path, before, folder, host)
    else:
        found, named = paths.config_path(os.environ, config)
        if named and project and known.shared:
            text = f"others share {known.of_project}, and {found} is a path of this machine"
            raise EarnestError("E1031", text, "leave out the configuration, or write your own settings")
        program = "earnest" if project and known.shared else shlex.quote(program_path(dict(os.environ)))
        lines = {event: command(program, host, event, found if named else "") for event in known.wire.events}
        items = {event: known.item(line, event) for event, line in lines.items()}
        after = hook_edit.install(path, before or b"", host, items, known.version)
    terminal = output()
    if after == before:
        terminal.line(f"{path}: nothing to do.")
        return 0
    texts = [(data or b"").decode("utf-8", "replace") for data in (before, after)]
    terminal.diff(path, *texts, becomes="without earnest" if undo else "with earnest")
    if dry_run:
        return 0
    question = "Take earnest out of these hooks?" if undo else "Write this?"
    confirm("changing a host's hooks", question, f"{path} decides what {host} asks before it uses a tool.")
    _write(path, before, after, folder, undo)
    terminal.line("Done. Sessions that are open take it up when they start again.", "good")
    for note in () if undo else known.notes:
        terminal.line(note, "warn")
    return 0


def settings_path(host: HookHost, project: str) -> str:
    """The settings of a person, or those of a project."""
    if project:
        return os.path.join(os.path.abspath(project), *host.of_project.split("/"))
    return host.settings(os.environ, os.environ.get("HOME") or os.path.expanduser("~"))


def contents(path: str) -> bytes | None:
    """A settings file, `None` where there is none. Raises E1010."""
    try:
        return files.contents(path, _LIMIT).data
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EarnestError("E1010", f"{path}: cannot be read: {error.strerror}", "check its permissions") from None


def _undone(path: str, before: bytes | None, folder: str, host: str) -> bytes | None:
    """As long as the file is what was written, what stood there before; else earnest's own ranges are taken out."""
    if before is None:
        return None
    written = _journal(folder).get(os.path.realpath(path))
    if written is not None and hashlib.sha256(before).hexdigest() == written.sha256:
        if not written.backup:
            return None
        saved = contents(written.backup)
        if saved is not None:
            # Earlier hooks of earnest's may stand in it, where somebody edited the file between two installations.
            return hook_edit.remove(path, saved, host) if hook_edit.count(path, saved, host) else saved
    return hook_edit.remove(path, before, host)


def _write(path: str, before: bytes | None, after: bytes | None, folder: str, undo: bool) -> None:
    os.close(paths.open_folder(folder))
    known = _journal(folder)
    real = os.path.realpath(path)
    try:
        if undo:
            known.pop(real, None)
        else:
            backup = ""
            if before is not None:
                backups = os.path.join(folder, "backups")
                os.makedirs(backups, mode=0o700, exist_ok=True)
                backup = os.path.join(backups, f"hooks-{hashlib.sha256(before).hexdigest()[:16]}-{os.path.basename(path)}")
                if not os.path.exists(backup):
                    files.create(backup, before)
            earlier = known.get(real)
            if earlier is not None and before is not None and hashlib.sha256(before).hexdigest() == earlier.sha256:
                backup = earlier.backup  # what stood there before the first time
            known[real] = Written(hashlib.sha256(after or b"").hexdigest(), backup)
        temporary = os.path.join(folder, f"{JOURNAL}.{os.getpid()}")
        files.create(temporary, msgspec.json.encode(known))
        os.replace(temporary, os.path.join(folder, JOURNAL))
        if after is None:
            os.unlink(path)
        elif before is None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.create(path, after)
        else:
            files.replace(path, after, expected=before)
    except OSError as error:
        raise EarnestError("E1013", f"{path} cannot be changed: {error.strerror}", "check the folder") from None


def _journal(folder: str) -> dict[str, Written]:
    data = contents(os.path.join(folder, JOURNAL))
    try:
        return msgspec.json.decode(data, type=dict[str, Written]) if data else {}
    except msgspec.MsgspecError as error:
        raise EarnestError("E1010", f"{folder}/{JOURNAL}: {error}", "move it away") from None
