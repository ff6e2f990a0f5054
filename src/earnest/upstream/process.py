"""The process of a server, and the pipes to it.

They are pipes of our own: the loop's are pairs of sockets, which cost more, and which are not what servers know.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Protocol, cast

from earnest.upstream.starting import before_start


class Owner(Protocol):
    """Who hears of a process."""

    def received(self, data: bytes) -> None:
        """Some of its standard output."""

    def wrote_error(self, data: bytes) -> None:
        """Some of its standard error."""

    def output_closed(self, process: ServerProcess) -> None:
        """It writes no more."""

    def exited(self, process: ServerProcess) -> None:
        """It has ended; something may be left in its pipes."""

    def read_to_the_end(self, process: ServerProcess) -> None:
        """It has ended, and nothing is left in its pipes."""


class ServerProcess(asyncio.SubprocessProtocol):
    """One process; `gone` is done when it has ended and was waited for."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0
        self.input: asyncio.WriteTransport
        self.input_fd = -1
        """The descriptor behind `input`, for as long as that is not closing."""
        self._transport: asyncio.SubprocessTransport
        self._output: asyncio.BaseTransport | None = None
        self._open = 2
        """It, and its output."""

    async def start(
        self, executable: str, arguments: Sequence[str], env: Mapping[str, str], cwd: str | None, umask: int | None = None
    ) -> None:
        """Start it, with a umask of its own unless that is None. Raises OSError, and leaves nothing behind then."""
        loop = asyncio.get_running_loop()
        stdin, self.input_fd = os.pipe()
        output, stdout = os.pipe()
        try:
            await loop.subprocess_exec(
                lambda: self,
                executable,
                *arguments,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=before_start(umask),
            )
        except BaseException:
            os.close(self.input_fd)
            os.close(output)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        self.input, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, _file(self.input_fd, "wb"))
        self._output, _ = await loop.connect_read_pipe(lambda: _Output(self._owner, self), _file(output, "rb"))

    def code(self) -> int | None:
        """How it ended, None while it runs."""
        return self._transport.get_returncode()

    def close(self) -> None:
        """Close what is open of its pipes."""
        self._transport.close()
        if self._output is not None:
            self._output.close()

    # what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._owner.wrote_error(data)

    def process_exited(self) -> None:
        self._owner.exited(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed()

    def output_closed(self) -> None:
        """Its standard output is at an end."""
        self._owner.output_closed(self)
        self._closed()

    def _closed(self) -> None:
        self._open -= 1
        if not self._open:
            self._owner.read_to_the_end(self)


class _Output(asyncio.Protocol):
    """The standard output of a process."""

    def __init__(self, owner: Owner, process: ServerProcess) -> None:
        self._process = process
        self.data_received = owner.received  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        self._process.output_closed()


def _file(fd: int, mode: str) -> BinaryIO:
    """A descriptor as loops want it, who close it."""
    return cast(BinaryIO, os.fdopen(fd, mode, 0))
