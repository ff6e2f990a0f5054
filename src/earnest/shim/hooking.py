"""One event of a host's hook: handed to the daemon, answered in time whatever happens to it.

What a host reads is one JSON document, so the daemon gets pipes in place of all three streams, and this process alone prints:
the daemon's answer, or a refusal once its time is over. A host that waits for the end of the streams is not held up by a daemon
that keeps them open. Before a tool is used (`DECIDES`, by host) everything that goes
wrong is a refusal: no daemon (it is started, and is there for the next call), a silent one, one that died, closed output; but
for reads, where the operator said so (`alone.py`). Other events decide nothing: what went wrong is said on standard error.
"""

from __future__ import annotations

import os
import select
from time import monotonic, sleep

from earnest.shim import alone, handover, paths
from earnest.shim.paths import ShimError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping

DECIDE_S = 0.4
"""Seconds from the start of this process; hosts and people are promised 0.5."""
WHOLE_S = 0.45
"""Until when what a host says is read to its end, if there is nobody to hand it to."""
MOST = (16 << 20) + 1
"""Bytes of an event that are read: one more than the daemon takes."""
LISTEN_S = 8.0
"""Of an event that decides nothing: a daemon may have to be started for it."""


class Late(Exception):
    """The daemon did not answer in time."""


def serve(said: handover.Invocation, env: Mapping[str, str], closed: bool) -> int:
    """The whole life of a hook; returns its exit code. `closed`: there is no standard output."""
    begun = monotonic()
    host, event = (*said.rest, "", "")[:2]
    decides = event in alone.DECIDES.get(host, ())
    end = begun + (DECIDE_S if decides else LISTEN_S)
    given = Input()
    try:
        code, text, out = _ask(said, env, end, given)
    except Late:
        why = "E1505: earnest's daemon has not answered in time; if it was just started, try this call again."
    except ShimError as e:
        why = f"{e.code}: {e.message}"
    except OSError as e:
        why = f"E1503: the daemon cannot be reached: {e.strerror}."
    else:
        why = ""
    if why:
        if decides:
            given.finish(begun + WHOLE_S)
            answer = alone.leave(host, event, bytes(given.data), env, said.config) if given.ended else None
            if answer is not None:
                return 0 if not closed and _print(handover.encode(answer).encode("ascii") + b"\n") else 2
        return _failed(host, event, decides, why, closed)
    if text:
        handover.say(text)
    if decides and code not in (0, 2):
        return _failed(host, event, decides, text or "E1503: the daemon could not look at this.", closed)
    if out and (closed or not _print(out)):
        return 2 if decides else code
    return code


def _failed(host: str, event: str, decides: bool, why: str, closed: bool) -> int:
    if not decides:
        handover.say(why)
        return 1 if event else 2
    if not closed and _print(handover.encode(alone.refusal(host, event, why)).encode("ascii") + b"\n"):
        return 0
    handover.say(why)  # hosts take exit code 2 for a refusal as well, with what stands here as its reason
    return 2


def _print(data: bytes) -> bool:
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


def _ask(said: handover.Invocation, env: Mapping[str, str], end: float, given: Input) -> tuple[int, str, bytes]:
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    config, named = paths.config_path(env, said.config)
    instance = paths.instance(env, said.config)
    folder = paths.open_folder(instance)
    head = handover.header(
        said.kind, env, cwd, config, named, name="", client=said.client, command=[], argv=said.rest
    )  # fmt: skip
    while True:
        sock = handover.connect(folder)
        if sock is None:
            from earnest.shim.activate import activate

            sock = activate(folder, instance, config, named, env, max(0.0, end - monotonic()))
        exchange = Exchange(sock, given)
        try:
            answer = exchange.run(head, end)
        finally:
            exchange.close()
        if answer is not None:
            return answer
        if monotonic() + 0.02 > end:  # nothing was read: another daemon may be on its way
            raise Late
        sleep(0.02)


class Input:
    """Standard input as far as it was read, for one daemon after another. It ends at `MOST`, so that the daemon sees that it is
    too long."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False

    def read(self) -> None:
        try:
            part = os.read(0, 1 << 16)
        except OSError:
            part = b""
        self.data += part
        self.ended = not part or len(self.data) > MOST

    def finish(self, end: float) -> None:
        """Read what is still to come, until it ends or it is this time."""
        waiting = select.poll()
        waiting.register(0, select.POLLIN)
        while not self.ended and (left := end - monotonic()) > 0:
            if waiting.poll(left * 1000):
                self.read()


class Exchange:
    """One event before one daemon."""

    def __init__(self, sock: _socket.socket, given: Input) -> None:
        self._sock = sock
        self._given = given
        self._sent = 0
        self._said = b""
        self._theirs, self._in = os.pipe()
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        self._passed = [self._theirs, out, err]
        self._open = {self._in, self._out, self._err, *self._passed}
        self._printed = {self._out: b"", self._err: b""}
        os.set_blocking(self._in, False)

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)
        self._open = set()
        self._sock.close()

    def _shut(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)

    def run(self, head: bytes, end: float) -> tuple[int, str, bytes] | None:
        """The daemon's answer; None if it went away before it read anything. Raises `Late`, and E1505 if it died later."""
        self._sock.settimeout(max(0.001, end - monotonic()))
        try:
            handover.send(self._sock, head, self._passed)
        except ConnectionError:
            pass  # what it said before it went away may still be there to read
        except TimeoutError:
            raise Late from None
        for fd in self._passed:
            self._shut(fd)
        talking = True
        while talking or self._out in self._open or self._err in self._open:
            ready = self._wait(end, talking)
            self._pump(ready)
            if self._sock.fileno() in ready and not self._hear():
                talking = False
                if _end_of(self._said) is None:
                    break
        found = _end_of(self._said)
        if found is not None:
            try:
                os.write(2, self._printed[self._err])
            except OSError:
                pass  # closed; what decides is the answer
            return (*found, self._printed[self._out])
        if self._said[:1] == b"A":
            raise ShimError("E1505", "the daemon died while it looked at this; it counts as refused.", exit_code=2)
        return None

    def _wait(self, end: float, talking: bool) -> dict[int, int]:
        poll = select.poll()
        if talking:
            poll.register(self._sock.fileno(), select.POLLIN)
        for fd in (self._out, self._err):
            if fd in self._open:
                poll.register(fd, select.POLLIN)
        if self._in in self._open:
            if self._sent < len(self._given.data) or self._given.ended:
                poll.register(self._in, select.POLLOUT)
            else:
                poll.register(0, select.POLLIN)
        left = end - monotonic()
        ready = dict(poll.poll(left * 1000)) if left > 0 else {}
        if not ready:
            raise Late
        return ready

    def _pump(self, ready: Mapping[int, int]) -> None:
        """What is to be read into what is to be written, as far as that goes without waiting."""
        if 0 in ready and self._in in self._open and not self._given.ended:
            self._given.read()
        if self._in in self._open and (self._in in ready or 0 in ready):
            try:
                while self._sent < len(self._given.data):
                    self._sent += os.write(self._in, self._given.data[self._sent : self._sent + (1 << 16)])
                if self._given.ended:
                    self._shut(self._in)
            except BlockingIOError:
                pass
            except OSError:
                self._shut(self._in)  # it reads no more
        for fd in (self._out, self._err):
            if fd in ready and fd in self._open:
                part = os.read(fd, 1 << 16)
                self._printed[fd] += part
                if not part:
                    self._shut(fd)

    def _hear(self) -> bool:
        try:
            part = self._sock.recv(1 << 16)
        except ConnectionError:
            part = b""
        self._said += part
        return bool(part)


def _end_of(said: bytes) -> tuple[int, str] | None:
    """Exit code and text of a daemon's last word, if it is all there."""
    rest = said[1:] if said[:1] == b"A" else said
    if rest[:1] != b"X" or len(rest) < 6:
        return None
    length = int.from_bytes(rest[2:6], "little")
    if len(rest) < 6 + length:
        return None
    return rest[1], rest[6 : 6 + length].decode("utf-8", "replace")
