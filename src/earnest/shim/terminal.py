"""Standard input on a terminal: the shim copies it into a pipe.

A shim that is stopped (^Z) gives the terminal back to the shell; a daemon that read the terminal itself
would go on taking the person's keys.
"""

import _socket
import os
import select

_CHUNK = 4096  # PIPE_BUF: a write of this size to a writable pipe never blocks


class Copier:
    """`passed` is the descriptor to hand over in place of standard input; `wait` copies until the daemon
    speaks."""

    def __init__(self) -> None:
        self.passed, self._write = os.pipe()
        self._pending = b""
        self._open = True

    def wait(self, sock: "_socket.socket") -> bytes:
        """Copies until the socket has a byte (returned) or ends (`b""`)."""
        while True:
            poll = select.poll()
            poll.register(sock.fileno(), select.POLLIN)
            if self._open:
                if self._pending:
                    poll.register(self._write, select.POLLOUT)
                else:
                    poll.register(0, select.POLLIN)
            ready = dict(poll.poll())
            if sock.fileno() in ready:
                try:
                    return sock.recv(1)
                except ConnectionError:
                    return b""
            self._copy(ready)

    def _copy(self, ready: dict[int, int]) -> None:
        if self._write in ready:
            try:
                self._pending = self._pending[os.write(self._write, self._pending) :]
            except OSError:
                self._end()
        elif 0 in ready:
            try:
                self._pending = os.read(0, _CHUNK)
            except OSError:
                self._pending = b""  # the terminal went away
            if not self._pending:
                self._end()

    def _end(self) -> None:
        self._open = False
        os.close(self._write)
