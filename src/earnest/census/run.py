"""One run over a list: what is done stands on disk, what is missing is done. May be killed at any moment and run again.

A run is a folder: `records/` (one file a server, whole or not there), `work/` (prefixes while they are needed), `run.json` (the
list and how it went), `lock`. A record counts as done if it is of the same spec; a changed entry of the list is asked again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

from earnest import __version__
from earnest.census import record as keeping
from earnest.census.record import Failure, Record
from earnest.census.recordings import recorded
from earnest.census.schedule import Schedule
from earnest.census.spec import Listing, Spec
from earnest.census.task import Settings, unasked
from earnest.core.errors import EarnestError

EVERY_S: Final = 1.0
"""Seconds between two installs begun: registries are other people's machines."""


class Told(Protocol):
    """What hears how a run goes on, for people."""

    def begins(self, name: str) -> None:
        """A task was begun."""

    def done(self, record: Record) -> None:
        """Its record is on disk."""

    def kept(self, count: int) -> None:
        """So many records were there already."""


class Summary(msgspec.Struct, frozen=True):
    """How a run went. Seconds of this invocation alone."""

    list: str
    sha256: str
    begun: str
    seconds: float
    asked: int
    answered: int
    failed: int
    kept: int
    recordings: int
    earnest: str = __version__


def run(
    listing: Listing,
    out: Path,
    schedule: Schedule,
    settings: Settings,
    tell: Told,
    *,
    jobs: int,
    every_s: float = EVERY_S,
    retry_failed: bool = False,
) -> Summary:
    """Ask every server of a list that has no record yet, and read its recordings. Raises E1903 if another run is at work in
    `out`, and what reading recordings raises; servers that fail are records."""
    begun, clock = datetime.now(UTC), time.monotonic()
    folder, work = out / "records", out / "work"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
        for left in folder.glob(".*"):
            left.unlink()
        if not settings.work and schedule.here:
            settings = msgspec.structs.replace(settings, work=str(work))
        count = 0
        read: set[str] = set()
        named: Counter[tuple[str, str]] = Counter()
        for recording in listing.recordings:
            for one in recorded(recording):
                named[one.cohort, one.name] += 1
                if (times := named[one.cohort, one.name]) > 1:  # two of one name are two servers
                    one = msgspec.structs.replace(one, name=f"{one.name} ({times})")
                read.add(keeping.save(folder, one, sync=False).name)
                count += 1
        _forget(folder, {recording.cohort for recording in listing.recordings}, read)
        missing = [spec for spec in listing.servers if not _done(folder, spec, retry_failed)]
        kept = len(listing.servers) - len(missing)
        tell.kept(kept)
        answered = _all(missing, folder, schedule, settings, tell, jobs, every_s)
        shutil.rmtree(work, ignore_errors=True)
        summary = Summary(
            list=listing.name,
            sha256=listing.sha256,
            begun=begun.isoformat(timespec="seconds").replace("+00:00", "Z"),
            seconds=round(time.monotonic() - clock, 1),
            asked=len(missing),
            answered=answered,
            failed=len(missing) - answered,
            kept=kept,
            recordings=count,
        )
        (out / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
        return summary


def _all(
    missing: list[Spec],
    folder: Path,
    schedule: Schedule,
    settings: Settings,
    tell: Told,
    jobs: int,
    every_s: float,
) -> int:
    waiting = list(reversed(missing))
    running: dict[Future[Record], Spec] = {}
    answered = 0
    ready = 0.0
    while waiting or running:
        now = time.monotonic()
        if waiting and len(running) < jobs and now >= ready:
            spec = waiting.pop()
            running[schedule.submit(spec, settings)] = spec
            if spec.source in ("npm", "pypi", "url"):
                ready = now + every_s
            tell.begins(spec.name)
            continue
        pause = max(0.0, ready - now) if waiting and len(running) < jobs else None
        finished, _ = wait(running, timeout=pause, return_when=FIRST_COMPLETED) if running else ((), ())
        if not running and pause:
            time.sleep(pause)
        for future in finished:
            made = _result(future, running.pop(future))
            keeping.save(folder, made)
            answered += made.failure is None
            tell.done(made)
    return answered


def _result(future: Future[Record], spec: Spec) -> Record:
    error = future.exception()
    if error is None:
        return future.result()
    # A worker of a cluster that died again and again under this server.
    return unasked(spec, Failure("worker", "E1913", f"{type(error).__name__}: {error}"[:400]))


def _forget(folder: Path, cohorts: set[str], read: set[str]) -> None:
    """Take away the records of recordings that their cohort no longer has: they are copies, and would be counted."""
    for path in folder.glob("*.json"):
        if path.name not in read and path.name.partition("+")[0] in cohorts and keeping.load(path).source == "file":
            path.unlink()


def _done(folder: Path, spec: Spec, retry_failed: bool) -> bool:
    path = folder / keeping.filename(spec.cohort, spec.name)
    if not path.exists():
        return False
    try:
        there = keeping.load(path)
    except EarnestError:
        return False
    if any(leg.failure is not None and leg.failure.step == "contain" for leg in there.legs):
        return False  # this machine failed, not the server
    return there.spec == spec.digest and not (retry_failed and there.failure is not None)


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    with (out / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EarnestError("E1903", f"another census is at work in {out}", "Wait for it, or give another folder.") from None
        lock.write(str(os.getpid()))
        lock.flush()
        yield
