"""The daemon: `python -m earnest.daemon --adopt --instance FOLDER --config PATH`.

Started by a shim, which hands on the listener (descriptor 3) and the lock (4). Without `--adopt` it takes
both itself: under a service manager with socket activation, or by hand.
"""

import argparse
import fcntl
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module

from earnest.core.errors import EarnestError
from earnest.shim import activate, paths
from earnest.shim.paths import ShimError

_REPORT_S = 1.0


def main(argv: Sequence[str] | None = None, hooks: str = "") -> int:
    """Runs until it is stopped; returns the exit code. `hooks`: what answers hosts' hooks, as `module:name`, loaded with the
    application."""
    parser = argparse.ArgumentParser(prog="earnest daemon")
    parser.add_argument("--instance", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--adopt", action="store_true")
    said = parser.parse_args(argv)
    umask = os.umask(0o077)
    os.chdir("/")
    os.environ.pop("PYTHONPATH", None)  # it was for us; no child of ours looks for modules there
    try:
        folder = paths.open_folder(said.instance)
        listener, lock = adopt(folder) if said.adopt else take(folder, said.instance)
    except (ShimError, EarnestError) as e:
        print(f"earnest: {e.code}: {e.message}", *([e.remedy] if e.remedy else []), sep="\n  ", file=sys.stderr)
        return e.exit_code
    try:
        # Everything is loaded now: an upgrade under a running daemon must not mix two versions.
        from earnest.gateway.app import build
        from earnest.gateway.process.life import run

        module, _, name = hooks.partition(":")
        answers = getattr(import_module(module), name) if hooks else None
        return run(said.instance, said.config, said.named, folder, listener, lock, partial(build, hooks=answers), umask)
    except EarnestError as e:
        # Whoever waits is told first: the log may be on the disk that is full.
        report(listener, e.exit_code, str(e))
        with suppress(OSError):
            print(f"earnest: {e}", file=sys.stderr)
        return e.exit_code
    except Exception as e:
        import traceback

        report(listener, 3, f"E1506: the daemon cannot start: {type(e).__name__}: {e}\n  See {said.instance}/daemon.log")
        with suppress(OSError):
            traceback.print_exc()
        return 3


def adopt(folder: int) -> tuple[socket.socket, int]:
    """The listener and the lock that a shim handed on; raises `EarnestError` E1503 if they are not what they
    should be."""
    try:
        os.set_inheritable(activate.LISTENER_FD, False)
        os.set_inheritable(activate.LOCK_FD, False)
        listener = socket.socket(fileno=activate.LISTENER_FD)
        same = os.path.samestat(os.fstat(activate.LOCK_FD), os.stat("lock", dir_fd=folder, follow_symlinks=False))
        fcntl.flock(activate.LOCK_FD, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        raise EarnestError("E1503", f"no listener or lock was handed on: {e.strerror}.", exit_code=3) from None
    if not same or listener.family != socket.AF_UNIX:
        raise EarnestError("E1503", "the lock handed on is not this instance's.", exit_code=3)
    return listener, activate.LOCK_FD


def take(folder: int, instance: str) -> tuple[socket.socket, int]:
    """A listener and the lock of one's own; raises `EarnestError` E1503 if another daemon holds it."""
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EarnestError(
            "E1503", f"a daemon already runs for {instance}.", "`earnest stop` ends it.", exit_code=3
        ) from None
    if os.environ.pop("LISTEN_PID", "") == str(os.getpid()) and os.environ.pop("LISTEN_FDS", "") == "1":
        return socket.socket(fileno=3), lock
    raw = activate.listen(folder)
    return socket.socket(fileno=raw.detach()), lock


def report(listener: socket.socket, code: int, text: str) -> None:
    """Tells every shim that waits in the backlog why there is no daemon, so that none hangs."""
    from earnest.gateway.process import arrivals

    listener.setblocking(True)
    listener.settimeout(_REPORT_S / 4)
    end = time.monotonic() + _REPORT_S  # whoever comes later than that finds a fresh daemon, and a mended configuration
    while time.monotonic() < end:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        fds: list[int] = []
        sock.settimeout(_REPORT_S)
        try:
            data = arrivals.receive(sock, 1 << 16, fds)
            left = int.from_bytes(data[:4], "little") + 4 - len(data)
            while left > 0 and (data := sock.recv(1 << 16)):
                left -= len(data)
            arrivals.end(sock, code, text)
        except OSError:
            pass
        finally:
            sock.close()
            for fd in fds:
                os.close(fd)

