"""Where tasks run: processes of this machine, or workers of a Dask cluster. Both are executors of `concurrent.futures`.

What is asked of one: each task submitted gives one record, and none is lost. Dask does a task again whose worker died, under
the same key, so its record is still one.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import Any, Final

from earnest.census.record import Record
from earnest.census.spec import Spec
from earnest.census.task import Settings, isolated
from earnest.core.errors import EarnestError

SCHEDULERS: Final = ("local", "dask")


class Schedule(AbstractContextManager["Schedule"]):
    """Takes tasks until it is closed. `interrupt` ends what is under way."""

    executor: Executor
    here = True
    """Whether its tasks see the disk of this machine."""

    def submit(self, spec: Spec, settings: Settings) -> Future[Record]:
        """Begin one task."""
        return self.executor.submit(isolated, spec, settings)

    def interrupt(self) -> None:
        """End what is under way; its records are not made."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.interrupt()
        self.executor.shutdown(wait=kind is None, cancel_futures=True)


class Local(Schedule):
    """So many tasks at once on this machine, each a process."""

    def __init__(self, jobs: int) -> None:
        self.executor = ThreadPoolExecutor(jobs, thread_name_prefix="census")
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._ending = False

    def submit(self, spec: Spec, settings: Settings) -> Future[Record]:
        return self.executor.submit(self._task, spec, settings)

    def _task(self, spec: Spec, settings: Settings) -> Record:
        mine: list[int] = []

        def started(pid: int) -> None:
            with self._lock:
                mine.append(pid)
                self._running.add(pid)
                if self._ending:
                    os.killpg(pid, signal.SIGKILL)

        try:
            return isolated(spec, settings, started)
        finally:
            with self._lock:
                self._running.difference_update(mine)

    def interrupt(self) -> None:
        with self._lock:
            self._ending = True
            for pid in self._running:
                os.killpg(pid, signal.SIGKILL)
        super().interrupt()


class Dask(Schedule):
    """Workers of a Dask cluster: the one at `address`, or one of `jobs` processes on this machine."""

    def __init__(self, jobs: int, address: str = "", patience_s: float = 30.0) -> None:
        """Raises E1914 where Dask is not installed or its scheduler is not reached."""
        try:
            distributed: Any = import_module("distributed")  # untyped
        except ImportError:
            raise EarnestError("E1914", "Dask is not installed", "pip install 'earnest[census]'") from None
        self._cluster: Any = None
        self.here = not address
        try:
            if not address:
                self._cluster = distributed.LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",
                    host="127.0.0.1",
                    silence_logs=logging.CRITICAL,
                )
            self.client: Any = distributed.Client(address or self._cluster, timeout=patience_s)
        except (OSError, TimeoutError, ValueError) as error:
            told = f"the Dask scheduler {address or 'here'} is not reached: {error}"
            raise EarnestError("E1914", told, exit_code=3) from None
        # Pure: the same spec has the same key, so that a task done again is no second one.
        self.executor = self.client.get_executor(pure=True)

    def interrupt(self) -> None:
        self._close()  # the scheduler forgets the tasks of a client that is gone

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()


def schedule(kind: str, jobs: int, address: str = "") -> Schedule:
    """The scheduler of that name. Raises E1018 for one that does not exist, E1914."""
    if kind == "local":
        return Local(jobs)
    if kind == "dask":
        return Dask(jobs, address)
    raise EarnestError("E1018", f"--scheduler is {kind!r}", f"It takes {', '.join(SCHEDULERS)}.")
