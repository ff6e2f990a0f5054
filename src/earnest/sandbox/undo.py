"""What was made for real, and how to take it back: one folder a commit, with the journal and the bytes that stood there before.

    ID/meta.json        what it was (`Meta`), written before anything is touched
    ID/commit.json      the journal of the commit (`journalled.Job`)
    ID/before/N         bytes of what stood at step N
    ID/undo.json        the journal of the undo, once somebody asked for it

All of it is mode 0600 below a folder of mode 0700. An undo is a commit of the opposite change, and refuses where one of its
paths is not as the commit left it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.sandbox.changeset import MOST_BYTES, ChangeSet, Item, Start, State, with_moves
from earnest.sandbox.commit import Work, recover, run
from earnest.sandbox.journalled import Above, Conflict, Job, Step, job_of, write_whole

KEEP_DAYS: Final = 7.0
KEEP_BYTES: Final = 512 << 20
"""Bytes that are kept of all commits together; past it the oldest go that a person said yes to. Half of it is what those may
take that nobody was asked about, because they can be undone: those stay until their days are over."""
_A_STEP: Final = 512
"""Bytes that a step takes beside what stood there."""
_UNCHANGED: Final = "Nothing was changed."
_LIST: Final = "`earnest undo --list` shows what can be undone."
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}\.[0-9]{1,20}")


class Meta(msgspec.Struct, frozen=True):
    """What was made for real: `id` is the receipt of the call's decision, times are seconds since the epoch. `unasked`: nobody
    was asked, because it can be undone."""

    id: str
    time: float
    expires: float
    server: str
    tool: str
    conversation: tuple[str, ...] = ()
    size: int = 0
    unasked: bool = False


class Done(msgspec.Struct, frozen=True):
    """One commit that is kept: `undone` where it was taken back."""

    meta: Meta
    items: tuple[Item, ...]
    undone: bool


class Undos:
    """The commits of one daemon, in a folder. `days`: how long one can be taken back."""

    def __init__(self, folder: str, clock: Callable[[], float], days: float = KEEP_DAYS) -> None:
        self.folder, self.days, self._clock = folder, days, clock
        self._one = threading.Lock()
        """Threads commit and undo one after the other."""

    # making

    def commit(
        self,
        changes: ChangeSet,
        begun: Start,
        id: str,
        server: str,
        tool: str,
        conversation: tuple[str, ...] = (),
        unasked: bool = False,
    ) -> Meta:
        """Make a change for real and keep the way back. All or nothing: raises `Conflict` E1840 where what it was made from
        was changed meanwhile, E1843 where this system cannot, E1844 for an id that was made before."""
        place = self._place(id)
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            os.mkdir(place, 0o700)
        except FileExistsError:
            raise EarnestError("E1844", f"the change of {id} was made already", exit_code=1) from None
        except OSError as error:
            raise _unmade(error) from error
        steps = [Step(item.root, item.path, item.before, item.after, item.seen) for item in changes.items]
        moved = {item.shown: item.moved_from for item in changes.items if item.moved_from}
        now = self._clock()
        meta = Meta(id, now, now + self.days * 86400, server, tool, conversation, 0, unasked)

        def keep(work: Work) -> None:
            nonlocal meta
            meta = msgspec.structs.replace(meta, size=self._keep(work, place, moved))
            write_whole(f"{place}/meta.json", msgspec.json.encode(meta))

        def content(number: int) -> bytes:
            after = steps[number].after
            assert after is not None
            return changes.contents[after.digest]

        try:
            with self._one:
                run(job_of(begun.roots, steps), f"{place}/commit.json", content, keep)
        except BaseException as error:
            if not os.path.exists(f"{place}/commit.json"):  # else something could not be put back
                shutil.rmtree(place, ignore_errors=True)
            if isinstance(error, OSError):
                raise _unmade(error) from error
            raise
        return meta

    def _keep(self, work: Work, place: str, moved: dict[str, str]) -> int:
        """Write down what stands there now."""
        size = 0
        os.mkdir(f"{place}/before", 0o700)
        attributes: dict[str, dict[str, bytes]] = {}
        for number, step in enumerate(work.job.steps):
            if step.before is None or step.before.kind != "file":
                continue
            try:
                data, own = work.read(step), work.attributes(step)
            except OSError as error:
                text = f"{work.shown(step)}: {error.strerror}"
                raise EarnestError("E1843", text, _UNCHANGED, exit_code=1) from error
            if hashlib.sha256(data).hexdigest() != step.before.digest:
                raise Conflict("E1840", f"no longer as it was: {work.shown(step)}", (work.shown(step),))
            size += len(data)
            if size > MOST_BYTES:
                raise EarnestError("E1843", "too much changes for it to be taken back", _UNCHANGED, exit_code=1)
            attributes[work.shown(step)] = own
            step.before = msgspec.structs.replace(step.before, attributes=own)
            if step.swaps and step.after is not None:
                step.after = msgspec.structs.replace(step.after, attributes=own)
            write_whole(f"{place}/before/{number}", data)
        for step in work.job.steps:
            own = attributes.get(moved.get(work.shown(step), ""), {})
            if own and step.after is not None:
                step.after = msgspec.structs.replace(step.after, attributes=own)
        return size + _A_STEP * len(work.job.steps)

    # looking

    def has_room(self, changes: ChangeSet) -> bool:
        """Whether a change that nobody is asked about can be kept until its days are over."""
        size = sum(_A_STEP + (item.before.size if item.before is not None else 0) for item in changes.items)
        for id in self._ids():
            with contextlib.suppress(OSError, msgspec.MsgspecError), open(f"{self._place(id)}/meta.json", "rb") as file:
                meta = msgspec.json.decode(file.read(), type=Meta)
                size += meta.size if meta.unasked else 0
        return size <= KEEP_BYTES // 2

    def get(self, id: str) -> Done:
        """Raises E1845 where there is nothing of that id, or no longer."""
        try:
            with open(f"{self._place(id)}/meta.json", "rb") as file:
                meta = msgspec.json.decode(file.read(), type=Meta)
            job = self._job(id, "commit")
        except OSError:
            job = None
        if job is None or job.state != "done":
            raise EarnestError("E1845", f"{id} left nothing that can be undone", _LIST, exit_code=1)
        undone = self._job(id, "undo")
        return Done(meta, _items(job), undone is not None and undone.state == "done")

    def listed(self) -> list[Done]:
        """All that is kept, the newest first."""
        found = []
        for id in self._ids():
            with contextlib.suppress(EarnestError, msgspec.MsgspecError):
                found.append(self.get(id))
        return sorted(found, key=lambda done: -done.meta.time)

    # taking back

    def undo(self, id: str, *, look_only: bool = False) -> Done:
        """Put back what stood there, byte for byte, with modes and times. Raises E1845, E1846 for what was undone already, and
        `Conflict` E1841 where something was changed since, with the paths; then nothing changes. `look_only`: raise the same,
        and change nothing."""
        done = self.get(id)
        if done.undone:
            raise EarnestError("E1846", f"{id} was undone already", exit_code=1)
        place, job = self._place(id), self._opposite(id)

        def content(number: int) -> bytes:
            with open(f"{place}/before/{number}", "rb") as file:
                return file.read()

        try:
            if look_only:
                with Work(job, f"{place}/undo.json", content) as work:
                    work.check()
            else:
                with self._one:
                    run(job, f"{place}/undo.json", content)
        except Conflict as error:
            if error.code == "E1842":
                raise
            what = ", ".join(error.paths[:10]) or error.message
            raise Conflict("E1841", f"changed since, so that {id} cannot be undone: {what}", error.paths) from error
        return done

    def _opposite(self, id: str) -> Job:
        made = self._job(id, "commit")
        assert made is not None
        steps = [Step(step.root, step.path, _timeless(step.after), step.before) for step in made.steps]
        job = job_of(made.roots, steps)
        job.wanted = [Above(above.root, above.path, above.before_ns, above.after_ns) for above in made.above]
        return job

    def opposite(self, id: str) -> ChangeSet:
        """What an undo changes, to be shown. Raises E1845."""
        self.get(id)
        job, contents = self._opposite(id), {}
        with contextlib.suppress(EarnestError), Work(job, "", lambda number: b"") as work:
            for number, step in enumerate(job.steps):
                if step.after is not None and step.after.kind == "file":
                    with open(f"{self._place(id)}/before/{number}", "rb") as file:
                        contents[step.after.digest] = file.read()
                if step.before is not None and step.before.kind == "file":
                    with contextlib.suppress(OSError):
                        contents[step.before.digest] = work.read(step)
        return ChangeSet(items=with_moves(_items(job)), contents=contents)

    # housekeeping

    def recover(self) -> list[str]:
        """Bring to an end what a killed process left under way; says what was done, a line each."""
        told = []
        for id in self._ids():
            place = self._place(id)
            try:
                undo = recover(f"{place}/undo.json")
                if undo is not None and undo.state == "applying":
                    told.append(f"the undo of {id} was under way and was rolled back")
                    continue
                made = recover(f"{place}/commit.json")
            except (EarnestError, OSError, msgspec.MsgspecError) as error:
                told.append(f"the change of {id} was under way and could not be rolled back whole: {error}")
                continue
            if made is not None and made.state == "applying":
                told.append(f"the change of {id} was under way and was rolled back")
            if made is None or made.state == "applying":
                shutil.rmtree(place, ignore_errors=True)
        return told

    def prune(self) -> None:
        """Take away what is past its days, and the oldest past what is kept together that somebody was asked about."""
        now, room = self._clock(), KEEP_BYTES
        with self._one:
            for done in self.listed():
                room -= done.meta.size
                if done.meta.expires <= now or (room < 0 and not done.meta.unasked):
                    shutil.rmtree(self._place(done.meta.id), ignore_errors=True)

    def _place(self, id: str) -> str:
        if not _ID.fullmatch(id):
            raise EarnestError("E1845", f"{id!r} is no receipt", _LIST, exit_code=1)
        return os.path.join(self.folder, id)

    def _ids(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.folder) if _ID.fullmatch(name))
        except FileNotFoundError:
            return []

    def _job(self, id: str, name: str) -> Job | None:
        try:
            with open(f"{self._place(id)}/{name}.json", "rb") as file:
                return msgspec.json.decode(file.read(), type=Job)
        except FileNotFoundError:
            return None


def _unmade(error: OSError) -> EarnestError:
    return EarnestError("E1843", f"the change could not be made: {error.strerror}", _UNCHANGED, exit_code=1)


def _items(job: Job) -> tuple[Item, ...]:
    return tuple(
        Item(step.root, step.path, os.path.join(job.roots[step.root].source, step.path), step.before, step.after)
        for step in job.steps
    )


def _timeless(state: State | None) -> State | None:
    """As a commit left it, whatever time it has by now: what only was touched since is as it was."""
    return msgspec.structs.replace(state, mtime_ns=0) if state is not None else None
