"""A link to a server that is a process: one JSON message a line on its pipes.

The process gets a session of its own, a folder, exactly the environment it is given, no descriptor of any client, and on
Linux a signal when the daemon dies. It ends in steps: its input is closed, then SIGTERM to its group, then SIGKILL. What
it writes to standard error goes to the log, bounded; a line on standard output that is no JSON object is a log line too
(servers print there), never an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.net.tracks import PipeCarrier
from earnest.protocol import envelope
from earnest.protocol.calls import string
from earnest.protocol.envelope import Limits, Message, WireError
from earnest.protocol.salvage import salvage
from earnest.upstream.base import Exchange, ExchangeHandler, Reply, ServerHello, unreadable
from earnest.upstream.opening import IN_LOG, ClientHello, Opening, listen_params, own_meta, progress_token, subscription_id
from earnest.upstream.process import ServerProcess
from earnest.upstream.starting import find_executable
from earnest.upstream.waiter import Waiter
from earnest.upstream.words import Words

LINE_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of one message of a server; a longer one ends the link (E1710)."""
WRITE_HIGH: Final = 8 * 1024 * 1024
"""Bytes queued towards a server that does not read; more ends the link (E1711)."""
END_GRACE_S: Final = 2.0
LAST_WORDS_S: Final = 0.3
"""Seconds between the end of a server's output and its being given up, unless its process ends before."""
_AT_ONCE: Final = 256 * 1024
"""Bytes to a server that wait no longer for what else there is to say."""

_LIMITS: Final = Limits(max_bytes=LINE_LIMIT)


class _Exchange(Exchange):
    __slots__ = ("_link", "handler", "id")

    def __init__(self, link: StdioLink, id: bytes, handler: ExchangeHandler) -> None:
        self._link = link
        self.id = id
        self.handler = handler

    def cancel(self, reason: str = "") -> None:
        self._link._cancel(self.id, reason)


class StdioLink(PipeCarrier):
    """One server process and the session with it. See `earnest.upstream.base.Link`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        client: ClientHello,
        log: Callable[[str], None],
        started: Callable[[int], None] | None = None,
        ended: Callable[[int], None] | None = None,
        open_timeout: float = 60.0,
        scrub: Callable[[str], str] = lambda text: text,
        umask: int | None = None,
    ) -> None:
        """`umask`: the process's; None for this one's.

        `started` and `ended` hear of the process id, so that a fresh daemon can end what an old one left. `scrub` takes
        secrets out of what the server writes to standard error."""
        super().__init__()
        self._words = Words(name, log, scrub, lambda: asyncio.get_running_loop().time())
        self.name = name
        self.hello = ServerHello(modern=False, version="")
        self.on_notification: Callable[[Message], None] = lambda message: None
        self.on_lost: Callable[[EarnestError], None] = lambda error: None
        self._argv = tuple(argv)
        self._env = dict(env)
        self._cwd = cwd
        self._umask = umask
        self._client = client
        self._started = started
        self._ended = ended
        self._open_timeout = open_timeout
        self._stdin: asyncio.WriteTransport | None = None
        self._unwritten: list[bytes] = []
        self._unwritten_bytes = 0
        self._buffer = bytearray()
        self._scanned = 0
        self._exchanges: dict[bytes, _Exchange] = {}
        self._subscriptions: dict[bytes, _Exchange] = {}
        """`subscriptions/listen` of the link's users: under way for long, and no call that a log could belong to."""
        self.numbers = itertools.count(1)
        self._lost: EarnestError | None = None
        self._process: ServerProcess | None = None
        self._listening = b""

    # opening and closing

    async def open(self) -> ServerHello:
        try:
            try:
                await self._start()
                self.hello = await Opening(self, self._client).run(self._open_timeout)
            except EarnestError:
                if self._lost is None or self._closing or not self._client.prefer_modern:
                    raise
                # Some servers of the older era end at a word they do not know. This one is not told it again.
                self._words.say("ended at the first word of the newer era; started again with the older one's")
                await self._end_process()
                self._lost = None
                await self._start()
                older = msgspec.structs.replace(self._client, prefer_modern=False)
                self.hello = await Opening(self, older).run(self._open_timeout)
        except BaseException:
            await self.close()
            raise
        if self.hello.modern:
            self._listen()
        return self.hello

    async def _start(self) -> None:
        """Start the process. Raises E1201 to E1203."""
        executable = find_executable(self._argv[0], self._env.get("PATH", os.defpath), self._cwd)
        if self._cwd is not None and not os.path.isdir(self._cwd):  # noqa: ASYNC240 (one stat before a fork)
            raise EarnestError("E1202", f"server {self.name!r}: its folder {self._cwd!r} does not exist", exit_code=3)
        process = self._process = ServerProcess(self)
        self._buffer.clear()
        self._unwritten.clear()
        self._unwritten_bytes = 0
        self._scanned = 0
        self._ended_output = False
        try:
            await process.start(executable, self._argv[1:], self._env, self._cwd, self._umask)
        except OSError as error:
            self._process = None
            raise EarnestError(
                "E1203", f"server {self.name!r} could not be started: {error.strerror or error}", exit_code=3
            ) from error
        except BaseException:
            self._process = None
            raise
        self._stdin, self._input = process.input, process.input_fd
        if self._started is not None:
            self._started(process.pid)

    def _listen(self) -> None:
        """A modern server tells of list changes only who asked for them."""
        params = listen_params(self.hello, self._client)
        if params:
            self._listening = b"%d" % self.reserve()
            self._write(envelope.request(self._listening, "subscriptions/listen", params))

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        process = self._process
        return process.pid or None if process is not None and not process.gone.done() else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._lost is None and not self._closing and not self._ended_output

    async def close(self) -> None:
        self._closing = True
        self._fail(EarnestError("E1204", f"server {self.name!r} was closed", exit_code=3))
        # Shielded: who waits for this may be cancelled, the process must end all the same.
        await asyncio.shield(asyncio.ensure_future(self._end_process()))

    async def _end_process(self) -> None:
        process = self._process
        if process is None or not process.pid:
            return
        with contextlib.suppress(Exception):
            if self._stdin is not None:
                self._flush()
                self._stdin.close()
        for step, wait in ((None, END_GRACE_S), (signal.SIGTERM, END_GRACE_S), (signal.SIGKILL, 5.0)):
            if step is not None:
                self._signal_group(step)
            done, _ = await asyncio.wait({process.gone}, timeout=wait)
            if done:
                break
        process.close()

    def _signal_group(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)

    # what the server says

    def _received(self, data: bytes) -> None:
        buffer = self._buffer
        if not buffer and data.endswith(b"\n"):
            for line in data.split(b"\n"):
                if line:
                    self.whole_line(line)
            return
        buffer += data
        while True:
            end = buffer.find(b"\n", self._scanned)
            if end < 0:
                self._scanned = len(buffer)
                break
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._scanned = 0
            self.whole_line(line)
        if len(buffer) > LINE_LIMIT:
            buffer.clear()
            self._scanned = 0
            self._end_badly(
                EarnestError("E1710", f"server {self.name!r} sent a message of more than {LINE_LIMIT} bytes", exit_code=3)
            )

    def _line(self, line: bytes) -> None:
        line = line.strip()
        if not line:
            return
        if not line.startswith(b"{"):
            self._words.say(f"wrote {len(line)} bytes that are no message to its standard output")
            return
        try:
            message = envelope.parse(line, _LIMITS)
        except WireError as error:
            self._words.say(f"sent {len(line)} bytes that are no message: {error.message}")
            self._misread(line)
            return
        if message.kind == "response" or message.kind == "error":
            self._off_track(message.id)
            exchange = self._exchanges.pop(message.id, None) or self._subscriptions.pop(message.id, None)
            if exchange is None and message.id == self._listening:
                self._listening = b""
                return  # no longer, or never: changes are then seen when a list is asked for
            if exchange is None:
                self._words.say(f"answered id {message.id.decode()}, which nobody waits for")
                return
            exchange.handler.reply(Reply(message.result, message.error))
        elif message.kind == "notification":
            self._notified(message)
        else:
            self._requested(message)

    def _off_track(self, id: bytes) -> None:
        """What was said of a call is no plain result: if it is on a track, it goes on as an exchange."""
        trip = self.trips.get(int(id)) if self.trips and id.isdigit() else None
        if trip is not None:
            trip.odd = True
            trip.become()

    def _only(self) -> _Exchange | None:
        """The one call under way, if there is no other."""
        if len(self._exchanges) + len(self.trips) != 1:
            return None
        for id in [b"%d" % number for number in self.trips]:
            self._off_track(id)
        return next(iter(self._exchanges.values()), None)

    def _misread(self, line: bytes) -> None:
        """Nobody waits for an answer that came and cannot be read."""
        whose = salvage(line)
        if whose is None:
            return
        self._off_track(whose.id)
        if whose.kind == "request":
            self._write(envelope.error(whose.id, envelope.INVALID_REQUEST, "this request cannot be read"))
        elif (exchange := self._exchanges.pop(whose.id, None) or self._subscriptions.pop(whose.id, None)) is not None:
            exchange.handler.lost(unreadable(self.name), True)

    def _notified(self, message: Message) -> None:
        if self._subscriptions and (exchange := self._subscriptions.get(subscription_id(message.params))) is not None:
            exchange.handler.message(message)
            return
        if message.method == "notifications/progress":
            token = progress_token(message.params)
            self._off_track(token)
            exchange = self._exchanges.get(token)
            if exchange is not None:
                exchange.handler.message(message)
            return
        if message.method == "notifications/message" and (only := self._only()) is not None:
            only.handler.message(message)
            return
        if message.method != "notifications/subscriptions/acknowledged":
            self.on_notification(message)

    def _requested(self, message: Message) -> None:
        if self.hello.modern:
            self._write(envelope.error(message.id, -32601, "servers of this era send no requests"))
            return
        if message.method == "ping":
            self._write(envelope.result(message.id, b"{}"))
            return
        # On a pipe nothing says which call a request belongs to: only a single call in flight can own it.
        if (only := self._only()) is not None and only.handler.request(message):
            return
        self._write(envelope.error(message.id, -32601, "no call in flight that this request could belong to"))

    def wrote_error(self, data: bytes) -> None:
        self._words.heard(data)

    def output_closed(self, process: ServerProcess) -> None:
        """Most likely it is about to end; how, and its last words, come a moment later."""
        if not self._closing and not self._ended_output and self._process is process:
            self._ended_output = True
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self.read_to_the_end, process)

    def read_to_the_end(self, process: ServerProcess) -> None:
        if process is self._process and not self._closing:
            self._end_badly(self._death_notice())

    def exited(self, process: ServerProcess) -> None:
        # What it started must not outlive it. Its number is free for others from now on, so this is the last signal.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if self._ended is not None:
            self._ended(process.pid)
        if not process.gone.done():
            process.gone.set_result(None)
        if process is self._process:
            # What is still in its pipes counts; something it started may hold them open, so not for long.
            self._ended_output = True
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self.read_to_the_end, process)

    def _death_notice(self) -> EarnestError:
        self._words.finish()
        code = self._process.code() if self._process is not None else None
        how = "ended" if code is None else f"ended with status {code}" if code >= 0 else f"was killed by signal {-code}"
        return EarnestError(
            "E1205",
            f"server {self.name!r} {how}",
            IN_LOG if self._words.last else "",
            exit_code=3,
            said=" / ".join(self._words.last),
        )

    # what is said to the server

    def reserve(self) -> int:
        return next(self.numbers)

    def along(self) -> list[tuple[str, object, object, object]]:
        """What it stands on that calls along a track (`net.tracks`) go out here."""
        return [("is", self, name, found) for name, found in (("_lost", None), ("_closing", False), ("_ended_output", False))]

    def adopt(self, number: int, handler: ExchangeHandler, _: object = None) -> Exchange:
        """A call of this number that went along a track goes on as an exchange like others."""
        token = b"%d" % number
        exchange = self._exchanges[token] = _Exchange(self, token, handler)
        return exchange

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Exchange:
        token = b"%d" % (self.reserve() if id is None else id)
        exchange = _Exchange(self, token, handler)
        if self._lost is not None or self._stdin is None or self._ended_output:
            error = self._lost or EarnestError("E1204", f"server {self.name!r} is not open", exit_code=3)
            loop = asyncio.get_running_loop()
            if self._lost is None and self._ended_output and not self._closing:
                # It is ending this moment; how it ends, and its last words, are what the caller wants to hear.
                loop.call_later(LAST_WORDS_S, lambda: handler.lost(self._lost or self._death_notice(), False))
            else:
                loop.call_soon(handler.lost, error, False)
            return exchange
        place = self._subscriptions if method == "subscriptions/listen" else self._exchanges
        place[token] = exchange
        self._write(envelope.request(token, method, params))
        return exchange

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        waiter = Waiter(asyncio.get_running_loop())
        if self.hello.modern:
            params = own_meta(params, self._client, self.hello.version)
        exchange = self.call(method, params, waiter)
        try:
            return await asyncio.wait_for(waiter.future, timeout)
        except TimeoutError:
            exchange.cancel("timeout")
            raise EarnestError(
                "E1206", f"server {self.name!r} did not answer {method!r} within {timeout:g} s", exit_code=3
            ) from None

    def notify(self, method: str, params: bytes) -> None:
        if self.alive:
            self._write(envelope.notification(method, params))

    def respond(self, id: bytes, reply: Reply) -> None:
        if self.alive:
            self._write(envelope.result(id, reply.result) if reply.result else envelope.error_raw(id, reply.error))

    def _cancel(self, id: bytes, reason: str) -> None:
        known = self._exchanges.pop(id, None) or self._subscriptions.pop(id, None)
        if known is None or not self.alive:
            return
        words = b',"reason":%b' % string(reason) if reason else b""
        self._write(envelope.notification("notifications/cancelled", b'{"requestId":%b%b}' % (id, words)))

    def _write(self, message: bytes) -> None:
        stdin = self._stdin
        if stdin is None or stdin.is_closing():
            return
        # What is said within one turn of the loop goes out in one write.
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._flush)
        line = envelope.one_line(message)
        self._unwritten += (line, b"\n")
        self._unwritten_bytes += len(line)
        if self._unwritten_bytes > _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._unwritten)
        self._unwritten.clear()
        self._unwritten_bytes = 0
        if data:
            self._say(data)

    def _say(self, data: bytes) -> None:
        stdin = self._stdin
        if stdin is None or stdin.is_closing():
            return
        try:
            stdin.write(data)
        except Exception as error:  # nobody knows what of it went, so nothing can follow it
            self._end_badly(EarnestError("E1205", f"server {self.name!r} cannot be written to: {error}", exit_code=3))
            return
        if stdin.get_write_buffer_size() > WRITE_HIGH:
            self._end_badly(
                EarnestError("E1711", f"server {self.name!r} does not read: {WRITE_HIGH} bytes wait for it", exit_code=3)
            )

    # the end

    def _end_badly(self, error: EarnestError) -> None:
        self._fail(error)
        self._signal_group(signal.SIGTERM)

    def _fail(self, error: EarnestError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        for id in [b"%d" % number for number in self.trips]:
            self._off_track(id)
        exchanges = [*self._exchanges.values(), *self._subscriptions.values()]
        self._exchanges.clear()
        self._subscriptions.clear()
        for exchange in exchanges:
            exchange.handler.lost(error, True)
        if not self._closing:
            self.on_lost(error)
