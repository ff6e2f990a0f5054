"""Starts the daemon by socket activation: the first shim listens, the daemon inherits the listener.

Others find a listener at once and queue in its backlog, so that twenty shims at once start one daemon. The
lock is a flock on a descriptor that the daemon inherits too: it passes on without a gap and is held for life.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys
from time import monotonic, sleep

from earnest.shim import handover, paths
from earnest.shim.paths import ShimError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `collections` costs a millisecond
    from collections.abc import Mapping

LISTENER_FD = 3
LOCK_FD = 4
_BACKLOG = 512

# The daemon serves many clients: what one of them has in its environment is its own. These say who and where
# the user is, and how programs reach the user's keyring and certificates.
_KEPT = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "EARNEST_HOME",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip


def activate(folder: int, instance: str, config: str, named: bool, env: Mapping[str, str], limit_s: float) -> _socket.socket:
    """A connection to a daemon that this call, or another shim's, starts; raises `ShimError`: E1503 after
    `limit_s`, E1502 where the folder was removed meanwhile or cannot be written."""
    try:
        return _activate(folder, instance, config, named, env, monotonic() + limit_s)
    except OSError as e:
        if not os.fstat(folder).st_nlink:
            raise ShimError(
                "E1502",
                f"the folder {instance} was removed while this ran.",
                "Start this again: the folder is made anew, without what was kept in it.",
            ) from None
        raise ShimError(
            "E1502",
            f"no daemon can be started from {instance}: {e.strerror or e}.",
            "earnest has to be able to write in this folder, and room to do so; see `earnest doctor`.",
        ) from None


def _activate(folder: int, instance: str, config: str, named: bool, env: Mapping[str, str], end: float) -> _socket.socket:
    while True:
        lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                held = False
            sock = handover.connect(folder)
            if sock is not None:
                return sock
            if held:
                return _start(folder, lock, instance, config, named, env)
        finally:
            os.close(lock)
        if monotonic() > end:
            raise ShimError(
                "E1503",
                "a daemon holds the lock but does not listen.",
                f"See {instance}/daemon.log; `earnest stop` ends it.",
                exit_code=3,
            )
        sleep(0.005)


def _start(folder: int, lock: int, instance: str, config: str, named: bool, env: Mapping[str, str]) -> _socket.socket:
    listener = listen(folder)
    try:
        log = os.open("daemon.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            argv, environment = command(instance, config, named, env)
            launch(argv, environment, listener.fileno(), lock, log)
        finally:
            os.close(log)
        sock = handover.connect(folder)
    finally:
        listener.close()  # else our own copy would keep the backlog alive after the daemon is gone
    if sock is None:
        raise ShimError("E1503", "the daemon's socket vanished while it started.", exit_code=3)
    return sock


def listen(folder: int) -> _socket.socket:
    """A listener at `s` in the folder, mode 0600, replacing what lies there. The caller holds the lock."""
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    temporary = f".s-{os.getpid()}"
    try:
        os.unlink(temporary, dir_fd=folder)
    except FileNotFoundError:
        pass
    if os.path.isdir("/proc/self/fd"):
        listener.bind(paths.at(folder, temporary))
    else:
        os.fchdir(folder)
        listener.bind(temporary)
    # Nobody can connect before listen(), so there is no moment at which the usual mode counts.
    os.chmod(temporary, 0o600, dir_fd=folder)
    listener.listen(_BACKLOG)
    os.rename(temporary, "s", src_dir_fd=folder, dst_dir_fd=folder)
    return listener


def command(
    instance: str, config: str, named: bool, env: Mapping[str, str], python: str = "", root: str = ""
) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of a daemon."""
    python = python or sys.executable
    root = os.path.abspath(root or __file__.rpartition("/earnest/shim/")[0])
    environment = {key: env[key] for key in _KEPT if key in env}
    if not root.endswith(("/site-packages", "/dist-packages")):
        environment["PYTHONPATH"] = root  # a checkout: the daemon must be of the same copy as the shim
    argv = [python, "-P", "-m", "earnest.daemon", "--adopt", "--instance", instance, "--config", config]
    if named:
        argv.append("--named")
    return argv, environment


def launch(argv: list[str], environment: dict[str, str], listener: int, lock: int, log: int) -> None:
    """Runs the daemon as nobody's child, in a session of its own, with none of our descriptors.

    SDKs kill the process group of the server they started; the daemon must not be in it. A descriptor of a
    client that stayed open here would keep the client's end from ever seeing the end of file.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")  # the umask stays: the daemon sets its own, and servers get this one
        null = os.open("/dev/null", os.O_RDWR)
        # first all above the numbers they go to, so that none overwrites another
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in (null, log, log, listener, lock)]
        for number, fd in enumerate(high):
            os.dup2(fd, number, inheritable=True)
        os.closerange(5, 65536)
        os.execve(argv[0], argv, environment)
    except BaseException as e:
        os.write(2, f"earnest: cannot start {argv[0]}: {e}\n".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(127)
