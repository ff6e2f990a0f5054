"""The shim: finds or starts the daemon, hands it this process's descriptors, waits for the end.

Hot path: no `json`, `socket`, `re`, `subprocess`, `pathlib`: each costs as much as the interpreter's own
start. Wire:

    shim → daemon   4 bytes length (little-endian), JSON header; the first segment carries the descriptors
                    (0, 1, 2, journal, both ends of a pipe for answers) as SCM_RIGHTS
    daemon → shim   `A`: taken over, from now on the descriptors are read
                    `X`, 1 byte exit code, 4 bytes length, text for stderr: the end
                    end of file before `A`: nothing was read, try again; after `A`: the daemon died, resume

The journal is memory that this process owns (a memfd) and the daemon maps: what the daemon must not forget
when it is killed. The shim knows only its size and where its count of answered messages stands.
"""

from __future__ import annotations

import _socket
import os
import sys

from earnest.shim import paths
from earnest.shim.paths import ShimError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `collections` costs a millisecond
    from collections.abc import Mapping, Sequence

VERSION = "0.1.0"
PROTOCOL = 2
JOURNAL_BYTES = 1 << 24
PROGRESS_AT = 8  # offset of the journal's count of delivered lines, 4 bytes in native order
HEADER_LIMIT = 8 << 20

_FRUITLESS_LIMIT = 12  # daemons in a row that delivered no line
_STILLBORN_LIMIT = 8  # daemons in a row that did not even take over
_LONG_LIFE_S = 30.0  # one that lived this long is no part of a row
_START_LIMIT_S = 30.0

_USAGE = {
    "stdio": """Usage: earnest stdio NAME [--client CLIENT] [--config PATH] [-- COMMAND ...]

Serve the MCP server NAME on standard input and output, through earnest's daemon, which is started if none runs.

  --client CLIENT  the client this is started by, as `earnest init` writes it
  --config PATH    the configuration, instead of the usual one
  -- COMMAND ...   the server's command; without it, the command that the configuration gives NAME

Examples, as a client's command for a server:
  earnest stdio notes
  earnest stdio files --client cursor -- npx -y @modelcontextprotocol/server-filesystem /srv/files
""",
    "hook": """Usage: earnest hook [--client CLIENT] [--config PATH] HOST EVENT
       earnest hook install HOST [--help]

Answer one hook of an MCP host: its event on standard input, earnest's answer on standard output. HOST is claude-code, codex,
gemini-cli or cursor, EVENT what it calls the event (PreToolUse, BeforeTool ...); `earnest hook install` writes these lines.
""",
}


class Invocation:
    """What the command line said."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = ""
        self.client = ""
        self.config = ""
        self.command: list[str] = []
        self.rest: list[str] = []


def parse(argv: Sequence[str]) -> Invocation | str:
    """The invocation, or the text to print for `--help`; raises `ShimError` E1501 where it makes no sense."""
    said = Invocation(argv[0])
    usage = _USAGE[said.kind]
    i = 1
    while i < len(argv):
        word = argv[i]
        i += 1
        if word == "--":
            said.command = list(argv[i:])
            if not said.command:
                raise ShimError("E1501", "nothing follows `--`.", usage)
            break
        if word in ("--help", "-h"):
            return usage
        option, equals, value = word.partition("=")
        if option in ("--client", "--config"):
            if not equals:
                if i == len(argv):
                    raise ShimError("E1501", f"{option} wants a value.", usage)
                value = argv[i]
                i += 1
            if not value:
                raise ShimError("E1501", f"{option} wants a value.", usage)
            setattr(said, option[2:], value)
        elif said.kind == "hook":
            said.rest.append(word)
        elif word.startswith("-"):
            raise ShimError("E1501", f"there is no option {word}.", usage)
        elif said.name:
            raise ShimError("E1501", f"one server at a time: {said.name}, {word}.", usage)
        else:
            said.name = word
    if said.kind == "stdio" and not said.name:
        raise ShimError("E1501", "which server?", usage)
    return said


def encode(value: object) -> str:
    """JSON of strings, numbers, lists and dicts. What the environment could not decode becomes a lone
    surrogate."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join([_quote(k) + ":" + encode(v) for k, v in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(v) for v in value]) + "]"
    raise TypeError(type(value).__name__)


def _quote(text: str) -> str:
    try:  # private to CPython, and by itself a tenth of what importing `json` costs
        from _json import encode_basestring_ascii as quote  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from json.encoder import py_encode_basestring_ascii as quote  # type: ignore[attr-defined, unused-ignore]
    return str(quote(text))


def connect(folder: int) -> _socket.socket | None:
    """A connection to the daemon of this folder; None if none listens. The listener must be of our user."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if os.path.isdir("/proc/self/fd"):
            sock.connect(paths.at(folder, "s"))
        else:
            os.fchdir(folder)
            sock.connect("s")
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except OSError as e:
        sock.close()
        raise ShimError("E1503", f"cannot reach the daemon: {e.strerror}.", exit_code=3) from None
    if hasattr(_socket, "SO_PEERCRED"):
        # pid, uid, gid; the pid is of whoever called listen(), which may be a shim long gone
        told = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if int.from_bytes(told[4:8], sys.byteorder) != os.geteuid():
            sock.close()
            raise ShimError("E1502", "the daemon's socket is served by another user.", exit_code=2)
    return sock


def reach(folder: int, instance: str, config: str, named: bool, env: Mapping[str, str]) -> _socket.socket:
    """A connection to the daemon, which is started if none runs."""
    sock = connect(folder)
    if sock is None:
        from earnest.shim.activate import activate

        sock = activate(folder, instance, config, named, env, _START_LIMIT_S)
    return sock


def send(sock: _socket.socket, header: bytes, fds: Sequence[int]) -> None:
    """The header, with the descriptors on its first segment."""
    data = len(header).to_bytes(4, "little") + header
    if fds:
        rights = b"".join([fd.to_bytes(4, sys.byteorder) for fd in fds])
        sent = sock.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        data = data[sent:]
    if data:
        sock.sendall(data)


def receive(sock: _socket.socket, count: int) -> bytes:
    """Exactly `count` bytes, fewer only at the end of the stream; a reset counts as the end."""
    data = b""
    while len(data) < count:
        try:
            part = sock.recv(count - len(data))
        except ConnectionError:
            break
        if not part:
            break
        data += part
    return data


def read_end(sock: _socket.socket) -> tuple[int, str]:
    """Exit code and text, after an `X`."""
    code = receive(sock, 1)
    length = int.from_bytes(receive(sock, 4), "little")
    text = receive(sock, min(length, HEADER_LIMIT)).decode("utf-8", "replace")
    return (code[0] if code else 3), text


def header(kind: str, env: Mapping[str, str], cwd: str, config: str, named: bool, **more: object) -> bytes:
    """The header of a connection; `more` are the members of its kind."""
    umask = os.umask(0o077)  # it can be read by setting it alone
    os.umask(umask)
    fields: dict[str, object] = {
        "version": VERSION,
        "protocol": PROTOCOL,
        "kind": kind,
        "python": sys.executable,
        "root": __file__.rpartition("/earnest/shim/")[0],
        "cwd": cwd,
        "config": config,
        "named": named,
        "env": dict(env),
        "umask": umask,
    }
    fields.update(more)
    return encode(fields).encode("ascii")


def new_journal(folder: int) -> int:
    """Memory that outlives the daemon: a memfd, or an unlinked file where there is none."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("earnest-journal", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        name = f".journal-{os.getpid()}"
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        os.unlink(name, dir_fd=folder)
    os.ftruncate(fd, JOURNAL_BYTES)
    return fd


def say(text: str) -> None:
    """One line on stderr, which may be closed or full."""
    try:
        os.write(2, f"earnest: {text.rstrip()}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass


class Patience:
    """When to give up: daemons that die one after another without having delivered a line.

    A daemon under repeated kills makes progress between them, one that crashes on its first input does not.
    """

    def __init__(self) -> None:
        self._fruitless = 0
        self._progress = b""
        self._taken = False

    def lost(self, progress: bytes, lived_s: float, taken: bool) -> float | None:
        """Seconds to wait before the next try, None to give up; `taken` says that the daemon had taken over."""
        if progress != self._progress or lived_s >= _LONG_LIFE_S:
            self._fruitless = 0
            self._taken = False
        self._progress = progress
        self._fruitless += 1
        self._taken = self._taken or taken
        if self._fruitless > (_FRUITLESS_LIMIT if self._taken else _STILLBORN_LIMIT):
            return None
        return 0.0 if self._fruitless == 1 else min(2.0, 0.01 * 2.0**self._fruitless)


def main(argv: Sequence[str]) -> int:
    """The whole life of a shim; returns its exit code."""
    try:
        said = parse(argv)
        if isinstance(said, str):
            os.write(1, said.encode())
            return 0
        return _serve(said, os.environ)
    except ShimError as e:
        say(f"{e.code}: {e.message}" + (f"\n  {e.remedy}" if e.remedy else ""))
        return e.exit_code
    except KeyboardInterrupt:
        return 130


def _serve(said: Invocation, env: Mapping[str, str]) -> int:
    closed = False
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:  # started with it closed: the next descriptor would take its number
            os.open("/dev/null", os.O_RDWR)
            closed = closed or fd == 1
    if said.kind == "hook":
        from earnest.shim.hooking import serve

        return serve(said, env, closed)
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    config, named = paths.config_path(env, said.config)
    instance = paths.instance(env, said.config)
    folder = paths.open_folder(instance)
    head = header(
        said.kind, env, cwd, config, named,
        name=said.name, client=said.client, command=said.command, argv=said.rest,
    )  # fmt: skip
    copier = None
    if os.isatty(0):
        from earnest.shim.terminal import Copier

        copier = Copier()
    journal = new_journal(folder)
    fds = [copier.passed if copier else 0, 1, 2, journal, *os.pipe()]
    wait = copier.wait if copier else _first
    patience = Patience()
    from time import monotonic, sleep

    while True:
        started = monotonic()
        sock = reach(folder, instance, config, named, env)
        taken = b""
        try:
            send(sock, head, fds)
        except ConnectionError:
            pass  # what it said before it went away may still be there to read
        taken = receive(sock, 1)
        word = wait(sock) if taken == b"A" else taken
        if word == b"X":
            code, text = read_end(sock)
            if text:
                say(text)
            return code
        sock.close()
        progress = os.pread(journal, 4, PROGRESS_AT)
        pause = patience.lost(progress, monotonic() - started, taken == b"A")
        if pause is None:
            raise ShimError(
                "E1503", "the daemon dies each time it is started.", _tail(folder, instance), exit_code=3
            )
        if taken == b"A":
            say("the daemon ended; handing over to a fresh one.")
        sleep(pause)


def _first(sock: _socket.socket) -> bytes:
    return receive(sock, 1)


def _tail(folder: int, instance: str) -> str:
    """The last lines of the daemon's log."""
    try:
        fd = os.open("daemon.log", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return f"There is no {instance}/daemon.log."
    with open(fd, "rb") as log:
        log.seek(max(0, os.fstat(fd).st_size - 4000))
        lines = log.read().decode("utf-8", "replace").splitlines()[-12:]
    return "\n  ".join([f"The end of {instance}/daemon.log:", *lines])
