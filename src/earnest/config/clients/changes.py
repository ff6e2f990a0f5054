"""Whole files before and after, the record of what was changed, and the way back.

A change is checked before it is written: the new bytes are read again, and taking earnest away from them
must give back the old bytes exactly; otherwise nothing is written. The journal beside the instance
remembers, for each file, digests, the backup and what remote entries held, so that `undo` restores a file
nobody touched since byte for byte from its backup, and takes back only earnest's own ranges in one that
was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import msgspec

from earnest.config import files
from earnest.config.clients.dialect import ClientFile, Dialect, Entry, entries, parsed
from earnest.config.clients.wrap import Listener, Original, unwrap, wrap
from earnest.config.document import Edit, apply
from earnest.core.errors import EarnestError
from earnest.shim import paths

JOURNAL = "init.json"
BACKUPS = "backups"


class Change(msgspec.Struct, frozen=True):
    """One file's change. `names`: what the wrapped entries are called now; `forward_headers`: by name, for
    remote ones."""

    file: ClientFile
    after: bytes
    names: tuple[tuple[Entry, str], ...] = ()
    originals: tuple[Original, ...] = ()
    forward_headers: dict[str, tuple[str, ...]] = {}


class Record(msgspec.Struct, frozen=True):
    """One change that was written. `time` is seconds since the epoch, `backup` a path."""

    client: str
    path: str
    before_sha256: str
    after_sha256: str
    backup: str
    time: float
    originals: tuple[Original, ...] = ()
    project: str = ""


def sha256(data: bytes) -> str:
    """Hex digits."""
    return hashlib.sha256(data).hexdigest()


def wrapping(
    dialect: Dialect,
    file: ClientFile,
    chosen: Mapping[tuple[str, ...], str],
    program: str,
    listener: Listener | None,
    config: str = "",
) -> Change:
    """The change that wraps the chosen entries (`where` to name); `config`: a configuration that a person named. Raises E1014
    where it could not be undone exactly."""
    edits: list[Edit] = []
    originals: list[Original] = []
    forward: dict[str, tuple[str, ...]] = {}
    names: list[tuple[Entry, str]] = []
    for entry in entries(dialect, file):
        name = chosen.get(entry.where)
        if name is None:
            continue
        wrapped = wrap(dialect, entry, name, program, listener, config)
        edits += wrapped.edits
        names.append((entry, name))
        if wrapped.original is not None:
            originals.append(wrapped.original)
            forward[name] = wrapped.forward_headers
    after = apply(file.data, edits)
    change = Change(file, after, tuple(names), tuple(originals), forward)
    again = parsed(dialect, file.path, after, file.project)
    back, left = unwrapped(dialect, again, {o.where: o for o in originals}, only=frozenset(chosen))
    if back != file.data or left:
        raise EarnestError(
            "E1014",
            f"{file.path}: the change could not be taken back exactly",
            "the file was left alone; please report it",
        )
    return change


def unwrapped(
    dialect: Dialect,
    file: ClientFile,
    originals: Mapping[tuple[str, ...], Original],
    *,
    only: frozenset[tuple[str, ...]] | None = None,
) -> tuple[bytes, tuple[Entry, ...]]:
    """The bytes without earnest, and the wrapped entries that had to stay because nothing remembers their
    address."""
    edits: list[Edit] = []
    left: list[Entry] = []
    for entry in entries(dialect, file):
        if not entry.wrapped or (only is not None and entry.where not in only):
            continue
        original = originals.get(entry.where)
        if entry.kind == "http" and original is None:
            left.append(entry)
        else:
            edits += unwrap(entry, original)
    return apply(file.data, edits), tuple(left)


def write(change: Change, instance: str, now: float) -> Record:
    """Back the old bytes up (0600), then the journal, then replace the file. Raises E1013; the file is then
    as it was."""
    before = sha256(change.file.data)
    backup = _back_up(change.file, instance)
    record = Record(
        client=change.file.client,
        path=os.path.abspath(change.file.path),
        before_sha256=before,
        after_sha256=sha256(change.after),
        backup=backup,
        time=now,
        originals=change.originals,
        project=change.file.project,
    )
    # Before the file: a record of a change that did not happen harms nothing, the reverse loses an address.
    save(instance, (*journal(instance), record))
    files.replace(change.file.path, change.after, expected=change.file.data)
    return record


def restore(undo: Undo, instance: str) -> None:
    """Write an undo: back up, replace, then forget the records of that file, unless an entry had to stay. Raises E1013."""
    _back_up(undo.change.file, instance)
    if undo.change.after != undo.change.file.data:
        files.replace(undo.change.file.path, undo.change.after, expected=undo.change.file.data)
    if not undo.left:
        real = os.path.realpath(undo.change.file.path)
        records = journal(instance)
        kept = tuple(record for record in records if os.path.realpath(record.path) != real)
        if kept != records:
            save(instance, kept)


def _back_up(file: ClientFile, instance: str) -> str:
    """Save a file's bytes (0600), named by their digest; returns the path. Raises E1013."""
    folder = os.path.join(instance, BACKUPS)
    path = os.path.join(folder, f"{file.client}-{sha256(file.data)[:16]}-{os.path.basename(file.path)}")
    try:
        _private(instance)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            files.create(path, file.data)
        except FileExistsError:
            pass  # named by content: these very bytes are backed up already
    except (OSError, paths.ShimError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        raise EarnestError(
            "E1013", f"no backup could be made in {folder}: {why}; nothing was changed", "check the folder"
        ) from None
    return path


def _private(instance: str) -> None:
    """Make the instance's folder, as the shim and the daemon insist on it."""
    os.close(paths.open_folder(instance))


def journal(instance: str) -> tuple[Record, ...]:
    """All records, oldest first. Raises E1010 where the journal cannot be read."""
    path = os.path.join(instance, JOURNAL)
    try:
        return msgspec.json.decode(files.contents(path, 1 << 26).data, type=tuple[Record, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        raise EarnestError("E1010", f"{path}: {error}", f"the backups are in {os.path.join(instance, BACKUPS)}") from None


def save(instance: str, records: tuple[Record, ...]) -> None:
    """Write the journal, 0600, in one step."""
    path = os.path.join(instance, JOURNAL)
    temporary = f"{path}.{os.getpid()}"
    try:
        _private(instance)
        files.create(temporary, msgspec.json.encode(records))
        os.replace(temporary, path)
    except (OSError, paths.ShimError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        raise EarnestError("E1013", f"{path} cannot be written: {why}", "check the folder") from None


class Undo(msgspec.Struct, frozen=True):
    """What undoing one file means. `exact`: its old bytes come back from the backup. `left`: entries that
    stay wrapped."""

    change: Change
    exact: bool
    left: tuple[Entry, ...] = ()


def undoing(dialect: Dialect, file: ClientFile, records: tuple[Record, ...]) -> Undo:
    """How to take earnest out of one file.

    As long as the file is what a record left behind, the bytes before that record are restored from its
    backup; from where somebody else has edited it, only earnest's own ranges are taken back.
    """
    own = [record for record in records if os.path.realpath(record.path) == os.path.realpath(file.path)]
    originals = {original.where: original for record in own for original in record.originals}
    data, exact = file.data, False
    for record in reversed(own):
        if sha256(data) != record.after_sha256:
            continue
        saved = _backup(record)
        if saved is None:
            break
        data, exact = saved, True
    rest, left = unwrapped(dialect, parsed(dialect, file.path, data, file.project), originals)
    return Undo(Change(file, rest), exact and rest == data, left)


def _backup(record: Record) -> bytes | None:
    try:
        data = files.contents(record.backup, 1 << 26).data
    except OSError:
        return None
    return data if sha256(data) == record.before_sha256 else None
