"""The life of a daemon: serve what arrives, end at idle, drain when told to, make way for a newer version."""

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import uvloop

import earnest
from earnest.core.errors import EarnestError
from earnest.core.scrub import Scrubber
from earnest.gateway.process import control
from earnest.gateway.process.application import Application, DaemonContext
from earnest.gateway.process.arrivals import Arrival, Arrivals
from earnest.gateway.process.control import ControlPeer
from earnest.gateway.process.handover import LINGER_S, MAYBE, StdioPeer
from earnest.gateway.process.hook_peer import HookPeer
from earnest.gateway.process.hosts import Hosts
from earnest.gateway.process.logs import daemon_log
from earnest.gateway.process.reap import Children
from earnest.shim import activate
from earnest.shim.handover import PROTOCOL

GC_THRESHOLDS = (10_000, 20, 20)
"""Objects more than were freed before the youngest are looked through for cycles, and so on."""
START_S = 60.0
DRAIN_S = 10.0
HANDOVER_S = 60.0
_WATCH_S = 2.0
_TICK_S = 0.05


def run(
    instance: str,
    config: str,
    named: bool,
    folder: int,
    listener: socket.socket,
    lock: int,
    build: Callable[[DaemonContext], Application],
    umask: int,
) -> int:
    """Serves until the end; returns the exit code. Raises what building the application raised. `umask`: of whoever started the
    daemon, which has another one of its own."""
    scrub = Scrubber()
    log = daemon_log(f"{instance}/daemon.log", scrub)
    logging.lastResort = log.handlers[0]  # what libraries log (the loop's own errors, with tracebacks) goes the same way
    children = Children(f"{instance}/children")
    left = children.end_leftovers()
    if left:
        log.warning("ended %d server processes that an earlier daemon left behind", left)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        daemon = Daemon(runner.get_loop(), instance, folder, listener, log, children, scrub)
        successor = runner.run(daemon.serve(config, named, build, umask))
    if successor is not None:
        python, root = successor
        argv, environment = activate.command(instance, config, named, dict(os.environ), python, root)
        log.info("making way for %s", python)
        for number, fd in ((activate.LISTENER_FD, listener.fileno()), (activate.LOCK_FD, lock)):
            os.dup2(fd, number, inheritable=True) if fd != number else os.set_inheritable(fd, True)
        os.umask(umask)
        os.execve(python, argv, environment)
    return 0


class Daemon:
    """All that is connected, and when to end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        instance: str,
        folder: int,
        listener: socket.socket,
        log: logging.Logger,
        children: Children,
        scrub: Scrubber,
    ) -> None:
        self._loop = loop
        self._instance = instance
        self._folder = folder
        self._listener = listener
        self._log = log
        self._children = children
        self._scrub = scrub
        self._arrivals = Arrivals(loop, listener, self._arrived, log)
        self._known_hosts = Hosts(f"{instance}/hosts")
        self._stdio: set[StdioPeer] = set()
        self._hooks: set[HookPeer] = set()
        self._controls: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stop_reason: str | None = None
        self._successor: tuple[str, str] | None = None
        self._lost_place = False
        self._ops: dict[str, Any] = {}

    async def serve(
        self, config: str, named: bool, build: Callable[[DaemonContext], Application], umask: int
    ) -> tuple[str, str] | None:
        """Until the end; returns interpreter and root of the version to make way for, if that is why."""
        context = DaemonContext(
            self._instance, config, named, self._log, self._children, self.stop, self._scrub, self._suspects, umask
        )
        self._app = build(context)
        try:
            await asyncio.wait_for(self._app.start(), START_S)
        except TimeoutError:
            raise EarnestError("E1503", f"the daemon was not ready in {START_S:g} s.", exit_code=3) from None
        # What is here now stays, and is not looked through again at each collection. What calls leave is freed by counting;
        # cycles are rare, so collections may be.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._ops = {**self._app.ops, "ping": self._ping, "stop": self._stop_op}
        place = os.stat("s", dir_fd=self._folder, follow_symlinks=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop, f"the daemon was stopped ({number.name})")
        self._log.info("earnest %s serves %s, process %d", earnest.__version__, self._instance, os.getpid())
        self._arrivals.start()
        await self._until_end(place)
        await self._end()
        return self._successor if self._stop_reason is None and not self._lost_place else None

    def stop(self, reason: str) -> None:
        """Ends in good order: calls in flight may finish, then clients are told `reason`."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self._wake.set()

    # when to end

    async def _until_end(self, place: os.stat_result) -> None:
        idle_since = time.monotonic()
        asked_since = 0.0
        while self._stop_reason is None:
            now = time.monotonic()
            if self._stdio or self._hooks or self._controls or self._arrivals.waiting or self._app.busy():
                idle_since = now
            idle_left = self._app.idle_s - (now - idle_since)
            if idle_left <= 0:
                self._log.info("idle, ending")
                return
            if not self._in_place(place):
                self._log.error("the socket of this instance is not ours any more; ending")
                self._lost_place = True
                return
            wait = min(_WATCH_S, idle_left)
            if self._successor is not None:
                asked_since = asked_since or now
                quiet = all(peer.idle for peer in self._stdio) and not self._hooks and not self._controls
                if (quiet and not self._app.busy()) or now - asked_since > HANDOVER_S:
                    return
                wait = _TICK_S
            try:
                await asyncio.wait_for(self._wake.wait(), wait)
                self._wake.clear()
            except TimeoutError:
                pass

    def _in_place(self, place: os.stat_result) -> bool:
        try:
            return os.path.samestat(place, os.stat(f"{self._instance}/s", follow_symlinks=False))
        except OSError:
            return False

    async def _end(self) -> None:
        self._arrivals.stop()
        staying = self._stop_reason is None  # clients go on, with another daemon
        if self._successor is None or not staying:
            # Those in the backlog see the end before an `A` and look again; the lock is free when we are
            # gone.
            if not self._lost_place:
                try:
                    os.unlink("s", dir_fd=self._folder)
                except OSError:
                    pass
            self._listener.close()
        for peer in tuple(self._stdio):
            peer.pause_reading("drain")
        await self._settle(lambda: not self._hooks and all(peer.idle for peer in self._stdio), DRAIN_S)
        if not staying:
            for peer in tuple(self._stdio):
                peer.fail_rest(MAYBE)
        try:
            await asyncio.wait_for(self._app.stop(), DRAIN_S)
        except Exception:
            self._log.exception("the application did not stop in order")
        for peer in tuple(self._stdio):
            if staying:
                peer.abandon()
            else:
                peer.close(0, self._stop_reason or "")
        for task in tuple(self._controls):
            task.cancel()
        await self._settle(lambda: not self._stdio and not self._controls, LINGER_S + 1)
        self._log.info("ended")

    async def _settle(self, done: Callable[[], bool], limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while not done() and (left := end - time.monotonic()) > 0:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), min(left, _TICK_S))
            except TimeoutError:
                pass

    # what arrives

    def _arrived(self, arrival: Arrival) -> None:
        self._wake.set()
        kind = arrival.text("kind")
        version = arrival.text("version")
        newer = is_newer(version, earnest.__version__)
        if newer and self._successor is None and arrival.text("python") and arrival.text("root"):
            self._log.info("a shim of version %s came; making way when nothing is in flight", version)
            self._successor = (arrival.text("python"), arrival.text("root"))
        if arrival.header.get("protocol") != PROTOCOL:
            if newer:
                arrival.close()  # nothing was read: it comes again, to its own version's daemon
            else:
                arrival.refuse(2, f"E1503: the daemon is earnest {earnest.__version__}, this is {version}; start it anew.")
            return
        try:
            if kind == "stdio":
                self._take_stdio(arrival)
            elif kind == "hook":
                hook = HookPeer(self._loop, arrival, self._hook_event, self._hooks.discard)
                self._hooks.add(hook)
                hook.start()
            elif kind == "control":
                task = self._loop.create_task(control.serve(arrival, self._ops, self._suspects, self._log, self._scrub))
                self._controls.add(task)
                task.add_done_callback(self._control_done)
            else:
                raise EarnestError("E1508", f"a connection of unknown kind {kind!r}.")
        except EarnestError as e:
            arrival.refuse(e.exit_code, str(e))

    def _take_stdio(self, arrival: Arrival) -> None:
        peer = StdioPeer(self._loop, arrival, self._log, self._gone)
        self._stdio.add(peer)
        try:
            self._app.on_stdio(peer)
        except EarnestError as e:
            peer.close(e.exit_code, str(e))
        except Exception:
            self._log.exception("a client failed")
            peer.close(3, "E1506: the daemon made a mistake with this client; see daemon.log.")
        else:
            peer.start()
        if peer.who.host is not None:
            self._known_hosts.add(peer.who.host)

    def _gone(self, peer: StdioPeer) -> None:
        self._stdio.discard(peer)
        self._wake.set()

    def _hook_event(self, peer: HookPeer) -> None:
        if peer.who.host is not None:
            self._known_hosts.add(peer.who.host)
        try:
            self._app.on_hook(peer)
        except Exception:
            self._log.exception("a hook failed")
            peer.finish(b"", b"earnest: E1506: the daemon made a mistake; this counts as refused.\n", 2)

    def _control_done(self, task: asyncio.Task[None]) -> None:
        self._controls.discard(task)
        self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            self._log.error("a command line's connection failed", exc_info=task.exception())

    def _suspects(self) -> frozenset[tuple[int, int]]:
        """Hosts of clients, present and past, and our servers: what descends from them may be a model's doing."""
        hosts = {peer.who.host.key for peer in self._stdio if peer.who.host is not None}
        return frozenset(hosts) | self._known_hosts.alive | self._children.alive

    # operations of the process's own

    async def _ping(self, _: dict[str, Any], peer: ControlPeer) -> dict[str, Any]:
        return {
            "version": earnest.__version__,
            "pid": os.getpid(),
            "clients": len(self._stdio),
            "instance": self._instance,
        }

    async def _stop_op(self, _: dict[str, Any], peer: ControlPeer) -> dict[str, Any]:
        self._loop.call_later(0.05, self.stop, "the daemon was stopped (earnest stop)")
        return {"pid": os.getpid(), "clients": len(self._stdio)}


def is_newer(one: str, other: str) -> bool:
    """Whether a version is later than another, by its numbers."""
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits[:9]) if digits else 0)
    return tuple(numbers)
