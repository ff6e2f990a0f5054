"""Making a change for real: all of it, or nothing that stays.

A `Job` (`journalled.py`) is a list of steps (from what stands there to what is to stand there) in folders held open, and a
file, the journal, in which it stands before anything is touched. What is new is written into a folder of its own right in the
granted folder (the staging folder); then everything is renamed: old things out of the way, into the staging folder, new ones
into their place, what is replaced in one exchange. So the way back is renames too, found by the numbers of files (inodes) that
the journal has, and needs no content. Only when all stands, and is on the disk, the journal says so and the staging folder
goes. Whoever finds a journal that does not say so (`recover`) rolls back.

Each path is looked at twice: before anything, against what the change was made from, and after it was moved, against what was
looked at. Folders are reached by `beneath`, and reached again at the end: a folder that was swapped for a link, or moved away,
meanwhile, shows there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from earnest.core.errors import EarnestError
from earnest.sandbox import beneath
from earnest.sandbox.changeset import MOST_BYTES, State
from earnest.sandbox.journalled import Above, Conflict, Job, Step, write_whole

Content = Callable[[int], bytes]
"""The bytes that are to stand at a step's path."""


def run(job: Job, journal: str, content: Content, before_moves: Callable[[Work], None] = lambda work: None) -> None:
    """Make a job real. Raises `Conflict` E1840 where a path is not as it was, E1843 where this system or file system cannot;
    then all is as it was. `before_moves` is called once everything was looked at and is about to change: what it raises
    ends the job."""
    with Work(job, journal, content) as work:
        work.check()
        before_moves(work)
        work.stage()
        try:
            work.move()
            work.settle()
        except BaseException as error:
            work.back()
            if isinstance(error, OSError):
                raise _unable(error) from error
            raise
        work.done()


def recover(journal: str) -> Job | None:
    """Bring a job of a process that was killed to an end: rolled back if it was under way, cleared up if it stood. None where
    there is no journal. Raises `Conflict` E1842 where something else stands in the way by now; then the rest was rolled
    back, and what was taken away lies in the staging folder."""
    try:
        with open(journal, "rb") as file:
            job = msgspec.json.decode(file.read(), type=Job)
    except FileNotFoundError:
        return None
    stands = job.state == "done"
    with (
        contextlib.suppress(EarnestError) if stands else contextlib.nullcontext(),
        Work(job, journal, lambda number: b"") as work,
    ):
        (work.clear if stands else work.back)()
    return job


class Work:
    """A job with its folders open."""

    def __init__(self, job: Job, journal: str, content: Content) -> None:
        self.job, self._journal, self._content = job, journal, content
        self._roots: list[int] = []
        self._staging: dict[int, int] = {}
        self._parents: dict[tuple[int, str], int] = {}

    def __enter__(self) -> Work:
        try:
            for root in self.job.roots:
                try:
                    number = os.open(root.source, beneath.FOLDER | os.O_NOFOLLOW)
                except OSError as error:
                    raise Conflict("E1840", f"{root.source}: {error.strerror}", (root.source,)) from error
                self._roots.append(number)
                status = os.fstat(number)
                if (status.st_dev, status.st_ino) != (root.device, root.inode):
                    raise Conflict("E1840", f"{root.source} is another folder now", (root.source,))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in (*self._parents.values(), *self._staging.values(), *self._roots):
            os.close(number)
        self._parents.clear()
        self._staging.clear()
        self._roots.clear()

    # looking

    def shown(self, step: Step) -> str:
        return os.path.join(self.job.roots[step.root].source, step.path)

    def parent(self, step: Step) -> int:
        """The folder a step's path lies in. Raises OSError."""
        key = (step.root, os.path.dirname(step.path))
        if key not in self._parents:
            self._parents[key] = beneath.open_below(self._roots[step.root], key[1], beneath.FOLDER)
        return self._parents[key]

    def check(self) -> None:
        """Whether every path is as the change was made from; notes which file stands there, and the folders' times."""
        wrong: list[str] = []
        folders = {(step.root, step.path) for step in self.job.steps if "folder" in step.kinds}
        made = {(step.root, step.path) for step in self.job.steps if step.comes and step.kinds[1] == "folder"}
        above: dict[tuple[int, str], Above] = {}
        for step in self.job.steps:
            key = (step.root, os.path.dirname(step.path))
            if key in made and step.before is None:
                continue  # its folder is to be made
            try:
                fits = self._fits(step)
                if key not in folders and key not in above:
                    above[key] = Above(*key, os.fstat(self.parent(step)).st_mtime_ns)
            except OSError:
                fits = False
            if not fits:
                wrong.append(self.shown(step))
        for index in {step.root for step in self.job.steps}:
            above.setdefault((index, ""), Above(index, "", os.fstat(self._roots[index]).st_mtime_ns))
        if wrong:
            raise Conflict(
                "E1840", f"no longer as it was: {', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''}", tuple(wrong)
            )
        self.job.above = list(above.values())

    def _fits(self, step: Step) -> bool:
        status = beneath.status_of(self.parent(step), os.path.basename(step.path))
        wanted = step.before
        if wanted is None or status is None:
            return wanted is None and status is None
        step.inode = status.st_ino
        if not wanted.mtime_ns:
            step.before = msgspec.structs.replace(wanted, mtime_ns=status.st_mtime_ns)
        kind = stat.S_ISREG(status.st_mode) if wanted.kind == "file" else stat.S_ISDIR(status.st_mode)
        if not kind or stat.S_IMODE(status.st_mode) != wanted.mode:
            return False
        if wanted.kind == "folder":
            known = step.seen is None or (status.st_dev, status.st_ino) == (step.seen.device, step.seen.inode)
            return known and (not step.leaves or self._all_leave(step))
        if not step.stays and beneath.is_written_to(self.parent(step), os.path.basename(step.path)):
            return False  # who writes there would write to what is no longer anywhere
        if step.seen is not None:
            return (status.st_dev, status.st_ino, status.st_ctime_ns) == (
                step.seen.device, step.seen.inode, step.seen.changed_ns,
            ) and status.st_size == wanted.size  # fmt: skip
        return status.st_size == wanted.size and _digest(self.read(step)) == wanted.digest

    def _all_leave(self, folder: Step) -> bool:
        """Whether a folder that is to go holds nothing but what goes too."""
        number = beneath.open_below(self.parent(folder), os.path.basename(folder.path), beneath.FOLDER)
        try:
            names = set(os.listdir(number))
        finally:
            os.close(number)
        going = (step for step in self.job.steps if step.leaves and step.root == folder.root)
        return names <= {os.path.basename(step.path) for step in going if os.path.dirname(step.path) == folder.path}

    def read(self, step: Step) -> bytes:
        """What stands there now."""
        return beneath.read(self.parent(step), os.path.basename(step.path), MOST_BYTES)[0]

    def attributes(self, step: Step) -> dict[str, bytes]:
        return beneath.attributes(self.parent(step), os.path.basename(step.path))

    # making

    def write_journal(self) -> None:
        write_whole(self._journal, msgspec.json.encode(self.job))

    def stage(self) -> None:
        """Write all that is new where it can be renamed from."""
        self.write_journal()
        try:
            for number, step in enumerate(self.job.steps):
                if (step.comes or step.swaps) and step.after is not None:
                    step.staged = self._stage(number, step, step.after)
                elif step.leaves:
                    self._staged_in(step.root)
            for folder in self._staging.values():
                os.fsync(folder)
            self.write_journal()
        except OSError as error:
            self.back()
            raise _unable(error) from error
        except BaseException:
            self.back()
            raise

    def _staged_in(self, root: int) -> int:
        """The staging folder of a root, made if there is none yet."""
        if root not in self._staging:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.job.staging, 0o700, dir_fd=self._roots[root])
            self._staging[root] = os.open(self.job.staging, beneath.FOLDER | os.O_NOFOLLOW, dir_fd=self._roots[root])
        return self._staging[root]

    def _stage(self, number: int, step: Step, after: State) -> int:
        folder, name = self._staged_in(step.root), f"n{number}"
        if after.kind == "folder":
            os.mkdir(name, 0o700, dir_fd=folder)
            status = beneath.status_of(folder, name)
            assert status is not None
            return status.st_ino
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(self._content(number))
            file.flush()
            for attribute, value in after.attributes.items():
                os.setxattr(file.fileno(), attribute, value)
            os.fchmod(file.fileno(), after.mode)
            status = os.fstat(file.fileno())
            group = self._group(step)
            if group is not None and group != status.st_gid:
                os.fchown(file.fileno(), -1, group)
                os.fchmod(file.fileno(), after.mode)
            if after.mtime_ns:
                os.utime(file.fileno(), ns=(status.st_atime_ns, after.mtime_ns))
            os.fsync(file.fileno())
            return status.st_ino

    def _group(self, step: Step) -> int | None:
        """The group of what a new file replaces, or that its folder hands on."""
        if step.inode:
            old = beneath.status_of(self.parent(step), os.path.basename(step.path))
            return old.st_gid if old is not None else None
        with contextlib.suppress(OSError):
            folder = os.fstat(self.parent(step))
            return folder.st_gid if folder.st_mode & stat.S_ISGID else None
        return None  # its folder is new itself

    def move(self) -> None:
        """Rename everything. Raises OSError, or `Conflict` where something is not what was looked at."""
        for _, step in self._in_place():
            self._widen(step)
        for number, step in self._leaving():
            self._leave(number, step)
        for number, step in self._coming():
            beneath.move(self._staging[step.root], f"n{number}", self.parent(step), os.path.basename(step.path))
        for number, step in self._numbered(lambda step: step.swaps):
            name = os.path.basename(step.path)
            beneath.exchange(self._staging[step.root], f"n{number}", self.parent(step), name)
            self._is_it(step, self._staging[step.root], f"n{number}")
        for _, step in self._in_place():
            assert step.after is not None
            self._is_it(step, self.parent(step), os.path.basename(step.path))
            if step.after.kind == "file":
                time = step.after.mtime_ns or None
                beneath.set_status(self.parent(step), os.path.basename(step.path), mode=step.after.mode, mtime_ns=time)

    def _widen(self, step: Step) -> None:
        """A folder that gets another mode is ours to write to until all is done."""
        if step.after is not None and step.before is not None and step.after.kind == "folder":
            mode = step.before.mode | step.after.mode | 0o700
            beneath.set_status(self.parent(step), os.path.basename(step.path), mode=mode)

    def _leave(self, number: int, step: Step) -> None:
        assert step.before is not None
        name, aside = os.path.basename(step.path), self._staging[step.root]
        beneath.move(self.parent(step), name, aside, f"o{number}")
        self._is_it(step, aside, f"o{number}")
        if step.before.kind == "folder":
            held = os.open(f"o{number}", beneath.FOLDER | os.O_NOFOLLOW, dir_fd=aside)
            try:
                if os.listdir(held):
                    raise Conflict("E1840", f"there is something new in {self.shown(step)}", (self.shown(step),))
            finally:
                os.close(held)
            self._close((step.root, step.path))

    def _is_it(self, step: Step, folder: int, name: str) -> None:
        """Whether what was moved is what was looked at: a renamed file keeps its number, time and size; and nobody has
        it open for writing, who may have opened it while it still stood there."""
        status = beneath.status_of(folder, name)
        wanted = step.before
        same = status is not None and wanted is not None and status.st_ino == step.inode
        if same and status is not None and wanted is not None and wanted.kind == "file":
            same = status.st_size == wanted.size and (step.seen is None or status.st_mtime_ns == wanted.mtime_ns)
        if same and not step.stays and wanted is not None and wanted.kind == "file":
            same = not beneath.is_written_to(folder, name)
        if not same:
            raise Conflict("E1840", f"no longer as it was: {self.shown(step)}", (self.shown(step),))

    def settle(self) -> None:
        """Modes and times of folders, the innermost first; then see that every folder is still where it was found."""
        for (root, path), number in list(self._parents.items()):
            again = beneath.open_below(self._roots[root], path, beneath.FOLDER)
            try:
                if os.fstat(again).st_ino != os.fstat(number).st_ino:
                    where = os.path.join(self.job.roots[root].source, path)
                    raise Conflict("E1840", f"{where} was moved meanwhile", (where,))
            finally:
                os.close(again)
            os.fsync(number)
        for step in sorted(self.job.steps, key=lambda step: step.depth, reverse=True):
            if step.after is not None and step.after.kind == "folder":
                time = step.after.mtime_ns or None
                beneath.set_status(self.parent(step), os.path.basename(step.path), mode=step.after.mode, mtime_ns=time)
        for above in self.job.above:
            if not any(step.root == above.root and os.path.dirname(step.path) == above.path for step in self._renamed()):
                self._set_time(above, above.before_ns)
        for above in self.job.wanted:
            known = next((one for one in self.job.above if (one.root, one.path) == (above.root, above.path)), None)
            if known is not None and (not above.after_ns or known.before_ns == above.after_ns):
                self._set_time(above, above.before_ns)
        self._note_times()

    def _renamed(self) -> Iterator[Step]:
        return (step for step in self.job.steps if not step.stays)

    def done(self) -> None:
        """All of it stands."""
        self.job.state = "done"
        self.write_journal()
        self.clear()

    def clear(self) -> None:
        """Take the staging folders away; the time of the granted folder stays as it is."""
        for index, root in enumerate(self._roots):
            if beneath.status_of(root, self.job.staging) is None:
                continue
            status = os.fstat(root)
            with contextlib.suppress(OSError):  # somebody put something there: it is not ours to take away
                self._empty(self._staged_in(index))
                os.rmdir(self.job.staging, dir_fd=root)
            os.utime(root, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _empty(self, folder: int) -> None:
        for name in os.listdir(folder):
            status = beneath.status_of(folder, name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    # the way back

    def back(self) -> None:
        """As it was. Raises `Conflict` E1842 where something else stands in the way."""
        wrong: list[str] = []
        there = {index: beneath.status_of(root, self.job.staging) is not None for index, root in enumerate(self._roots)}
        steps = [*self._coming(), *self._numbered(lambda step: step.swaps), *self._in_place()]
        backwards = [*reversed(steps), *reversed(self._leaving())]
        self._open_up()
        for number, step in backwards:
            if not step.stays and not there[step.root]:
                continue
            try:
                self._back(number, step)
            except OSError:
                wrong.append(self.shown(step))
        for step in sorted(self.job.steps, key=lambda step: step.depth, reverse=True):
            if step.before is not None and step.before.kind == "folder":
                with contextlib.suppress(OSError):
                    time = step.before.mtime_ns or None
                    beneath.set_status(self.parent(step), os.path.basename(step.path), mode=step.before.mode, mtime_ns=time)
        for above in self.job.above:
            with contextlib.suppress(OSError):
                self._set_time(above, above.before_ns)
        for number in self._parents.values():
            with contextlib.suppress(OSError):
                os.fsync(number)
        if wrong:
            text = f"could not be put back: {', '.join(wrong[:5])}; what was there lies in {self.job.staging} beside it"
            raise Conflict("E1842", text, tuple(wrong))
        self.clear()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._journal)

    def _open_up(self) -> None:
        """Folders that have their last mode already must let their names be changed."""
        for step in sorted(self.job.steps, key=lambda step: step.depth):
            if step.kinds[1] != "folder":
                continue
            with contextlib.suppress(OSError):
                name = os.path.basename(step.path)
                status = beneath.status_of(self.parent(step), name)
                if status is not None and stat.S_ISDIR(status.st_mode) and status.st_ino in (step.inode, step.staged):
                    beneath.set_status(self.parent(step), name, mode=stat.S_IMODE(status.st_mode) | 0o700)

    def _back(self, number: int, step: Step) -> None:
        name = os.path.basename(step.path)
        if step.stays:
            status = beneath.status_of(self.parent(step), name)
            if step.before is not None and step.before.kind == "file" and status is not None and status.st_ino == step.inode:
                beneath.set_status(self.parent(step), name, mode=step.before.mode, mtime_ns=step.before.mtime_ns or None)
            return
        aside = self._staged_in(step.root)
        if step.swaps:
            here, there = beneath.status_of(self.parent(step), name), beneath.status_of(aside, f"n{number}")
            if here is not None and there is not None and here.st_ino == step.staged:
                beneath.exchange(aside, f"n{number}", self.parent(step), name)
            elif there is not None and there.st_ino == step.inode:
                raise OSError(errno.EEXIST, "something else stands there")
            return
        if step.comes and step.staged:
            try:
                status = beneath.status_of(self.parent(step), name)
            except OSError:
                status = None  # its folder never came
            if status is not None and status.st_ino == step.staged:
                if stat.S_ISDIR(status.st_mode):
                    os.rmdir(name, dir_fd=self.parent(step))
                    self._close((step.root, step.path))
                else:
                    beneath.move(self.parent(step), name, aside, f"n{number}")
        if step.leaves and beneath.status_of(aside, f"o{number}") is not None:
            beneath.move(aside, f"o{number}", self.parent(step), name)

    def _close(self, key: tuple[int, str]) -> None:
        number = self._parents.pop(key, None)
        if number is not None:
            os.close(number)

    # order

    def _numbered(self, which: Callable[[Step], bool]) -> list[tuple[int, Step]]:
        return [(number, step) for number, step in enumerate(self.job.steps) if which(step)]

    def _in_place(self) -> list[tuple[int, Step]]:
        return self._numbered(lambda step: step.stays)

    def _leaving(self) -> list[tuple[int, Step]]:
        return sorted(self._numbered(lambda step: step.leaves), key=lambda pair: pair[1].depth, reverse=True)

    def _coming(self) -> list[tuple[int, Step]]:
        return sorted(self._numbered(lambda step: step.comes), key=lambda pair: pair[1].depth)

    def _set_time(self, above: Above, time_ns: int) -> None:
        number = beneath.open_below(self._roots[above.root], above.path, beneath.FOLDER)
        try:
            os.utime(number, ns=(os.fstat(number).st_atime_ns, time_ns))
        finally:
            os.close(number)

    def _note_times(self) -> None:
        """The times that things have now, so that a later undo knows whether somebody was there since."""
        for above in self.job.above:
            number = beneath.open_below(self._roots[above.root], above.path, beneath.FOLDER)
            above.after_ns = os.fstat(number).st_mtime_ns
            os.close(number)


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _unable(error: OSError) -> EarnestError:
    if error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOTEMPTY):
        return Conflict("E1840", f"something was changed meanwhile ({error.strerror})", ())
    return EarnestError("E1843", f"the change could not be made: {error.strerror}", "Nothing was changed.", exit_code=1)
