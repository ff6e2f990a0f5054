"""What the application sees of a client's shim: `StdioPeer` for a server's pipes.

A `StdioPeer` survives its daemon: a fresh one builds it again from the journal. Then each call that was in
flight is answered with an error (it may or may not have taken effect, and is never sent again), the opening
is replayed under an id of our own with its answer swallowed, and reading goes on where it stopped. An
opening that was itself in flight is sent again under its own id.
"""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Collection
from functools import partial

import msgspec

from earnest.core.errors import EarnestError
from earnest.gateway.process.arrivals import Arrival
from earnest.gateway.process.descriptors import Kind, Sink, Source, Writer
from earnest.gateway.process.journal import LINE_BYTES, Journal, Stage
from earnest.gateway.process.link import ShimLink, caller
from earnest.gateway.process.passage import MOST_BYTES, Passage
from earnest.net.tracks import PipePort

SERVER_UNAVAILABLE = -31003
MAYBE = (
    "earnest's daemon was interrupted while this call was under way. It may or may not have taken effect; "
    "it was not sent again."
)
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_REOPEN_S = 60.0
HANGUP_S = 0.5
LINGER_S = 5.0
"""Seconds that what was sent has to leave, once a client is ended."""


class _Envelope(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"")
    method: str = ""


class _Answer(msgspec.Struct):
    error: msgspec.Raw = msgspec.Raw(b"")


_envelope = msgspec.json.Decoder(_Envelope)
_answer = msgspec.json.Decoder(_Answer)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
# `"id"` as the first members or the last one of an object cut in the middle: both are surely its own.
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]{0,120}"|-?\d{1,20})\s*[,}]')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*("[^"\\]{0,120}"|-?\d{1,20})\s*\}\s*$')


def error_line(id: bytes, code: int, message: str) -> bytes:
    """A JSON-RPC error for a raw id, without the end of line."""
    body = msgspec.json.encode({"code": code, "message": message})
    return b'{"jsonrpc":"2.0","id":' + (id or b"null") + b',"error":' + body + b"}"


class StdioPeer(PipePort):
    """A client on its server's standard input and output.

    The application sets `on_message` (one line without its end, called in order; what is to survive a kill
    must be noted with `begin` before it is passed on) and `on_closed` (the reason; nothing is called after
    it), and may set `on_eof` (the client says no more; the peer closes itself once all calls are answered)
    and `on_pressure` (True: the client does not keep up, produce less).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, arrival: Arrival, log: logging.Logger, on_end: Callable[["StdioPeer"], None]
    ) -> None:
        """Raises `EarnestError` if the descriptors are not what a shim sends."""
        if len(arrival.fds) != 6:
            raise EarnestError("E1508", f"{len(arrival.fds)} descriptors came, 6 were expected.")
        super().__init__()
        passage = arrival.fds.pop(4), arrival.fds.pop(4)
        self.who = caller(arrival)
        self.on_message: Callable[[bytes], None] = _unset
        self.on_closed: Callable[[str], None] = _unheard
        self.on_eof: Callable[[], None] | None = None
        self.on_pressure: Callable[[bool], None] | None = None
        self._loop = loop
        self._log = log
        self._on_end = on_end
        self._journal = Journal(arrival.fds.pop())
        self.epoch = self._journal.epoch
        """Counts the daemons this client had; part of ids we make, so that late answers to an older one
        show."""
        self.resumed = self.epoch > 1
        self.stderr_fd = arrival.fds.pop()
        """The client's standard error, for its server to inherit; closed with the peer."""
        self._sink = Sink(loop, arrival.fds.pop())
        self._source = Source(loop, arrival.fds.pop(), self.pump)
        self._read_by(self._source.fileno(), self._source.kind is Kind.SOCKET)
        self._passage = Passage(*passage, self._sink, self._journal)
        self._writer = Writer(
            self._sink,
            tearing=self._tearing,
            on_pressure=self._pressed,
            on_failed=self._failed,
            passage=self._passage,
        )
        self._unsent = self._writer.queue
        if self._passage.usable:
            self._pass_by(*self._passage.ends(), self._sink.fileno(), self._sink.kind is Kind.SOCKET, MOST_BYTES)
        self._link = ShimLink(loop, arrival.sock, self._gone)
        self._held = {"start"}
        self._own = b'"earnest-resume-%d"' % self.epoch
        self._opening_id = b""
        self._in_hand = False
        """A line was handed on that is in the input still."""
        self._tail = b""
        self._head = b""
        self._silent = False
        self._timer: asyncio.TimerHandle | None = None

    # what the application calls

    def begin(self, id: bytes, opening: bytes = b"") -> None:
        """Notes a request's raw id before it is passed on or answered later; `opening` is an `initialize`
        line.

        Raises `EarnestError` E1701 or E1702 where the journal has no room: answer that request with an error.
        """
        if id == self._own or self.closed:
            return
        if opening:
            self._journal.opening = opening
            self._journal.stage = Stage.OPENING
            self._opening_id = id
        self._journal.begin(id)
        self._taken()

    def ready(self) -> None:
        """Notes that the client's `notifications/initialized` was passed on."""
        if not self.closed:
            self._journal.stage = Stage.READY

    def send(self, line: bytes, answers: bytes | None = None) -> None:
        """Sends one line to the client. `answers` is the raw id it answers, forgotten when the line has
        left."""
        if self.closed or self._closing or self._silent:
            return
        if answers == self._own:
            self._reopened(line)
            return
        if self._in_hand and answers:
            self._owe(answers)
        self._writer.send(line + b"\n", partial(self._left, answers), answers or b"")

    def _owe(self, id: bytes) -> None:
        """A line is answered while it is in hand and was never begun: begin it, so that it does not come once more."""
        try:
            self._journal.begin(id)
        except EarnestError:
            return  # no room for it: after a kill it is read, and answered, again
        self._taken()

    def _taken(self) -> None:
        """The line in hand stands in the journal by its id; it leaves the input before its answer can leave, because an answer
        that has left takes the id out."""
        if self._in_hand:
            self._in_hand = False
            self._journal.consume()

    def forget(self, id: bytes) -> None:
        """A request that will have no answer (the client cancelled it) is owed none."""
        if not self.closed:
            self._left(id)

    @property
    def in_flight(self) -> tuple[bytes, ...]:
        """Raw ids of the requests whose answers have not left."""
        return () if self.closed else self._journal.in_flight

    @property
    def idle(self) -> bool:
        """Whether nothing is under way in either direction."""
        return self.closed or not (self._journal.in_flight or self._writer.queued_bytes)

    def pause_reading(self, why: str = "application") -> None:
        """Takes no more lines until `resume_reading` with the same word."""
        self._held.add(why)
        if not self.closed:
            self._source.pause()

    def resume_reading(self, why: str = "application") -> None:
        """Takes that pause back."""
        self._held.discard(why)
        if not self._held and not self.closed:
            self._deliver()
            if not self._held and not self.closed and not self._eof:
                self._source.resume()

    def close(self, code: int, text: str = "") -> None:
        """Ends the client's shim with this exit code, once what was sent has left; `text` goes to its
        stderr."""
        if self.closed or self._closing:
            return
        self._closing = True
        self._source.pause()
        finish = partial(self._finish, code, text)
        self._timer_off()
        self._timer = self._loop.call_later(LINGER_S, finish)
        self._writer.send(b"", finish)

    # what the process calls

    def start(self) -> None:
        """Takes the client over: from here on a death of this daemon is a crash to resume from."""
        if self.closed:
            return
        self._link.take()
        if self.resumed:
            self._resume()
        if "reopen" not in self._held:
            self.resume_reading("start")
        else:
            self._held.discard("start")

    def abandon(self) -> None:
        """Lets the client go to another daemon, which finds everything in the journal."""
        if not self.closed:
            self._finish(-1, "handed to a fresh daemon")

    def fail_rest(self, text: str) -> None:
        """Answers every call in flight with an error. Those calls live on, but nothing more is said of them, or to this client
        at all."""
        for id in self.in_flight:
            self.send(error_line(id, SERVER_UNAVAILABLE, text), id)
        self._silent = True

    # resuming

    def _resume(self) -> None:
        journal = self._journal
        leaving = self._passage.left_over()
        if leaving:
            journal.half = False  # what is left makes the line whole
        elif journal.half:
            self._writer.send(b"\n", partial(self._tearing, False))
        opening = journal.opening
        if opening:
            self._opening_id = bytes(_envelope.decode(opening).id)
        if leaving:
            if self._opening_id in leaving:
                journal.stage = Stage.OPENED
            self._move_on(leaving)
        reopening = journal.stage is Stage.OPENING
        line = journal.line()
        if line is not None:
            id = _id_of(line)
            if id and (id in journal or (reopening and id == self._opening_id)):
                journal.consume()  # it was passed on, the kill fell before it was taken out
        for id in journal:
            if id not in leaving and not (reopening and id == self._opening_id):
                self.send(error_line(id, SERVER_UNAVAILABLE, MAYBE), id)
        if reopening:
            self._hand_on(opening)
        elif opening and journal.stage >= Stage.OPENED:
            self._held.add("reopen")
            self._timer = self._loop.call_later(
                _REOPEN_S, self.close, 3, "E1205: the server did not open again after the daemon was interrupted."
            )
            members = _members.decode(opening)
            members["id"] = msgspec.Raw(self._own)
            self._hand_on(msgspec.json.encode(members))

    def _reopened(self, answer: bytes) -> None:
        if "reopen" not in self._held:
            return
        self._timer_off()
        error = bytes(_answer.decode(answer).error)
        if error:
            text = error[:500].decode("utf-8", "replace")
            self.close(3, f"E1205: the server did not open again after the daemon was interrupted: {text}")
            return
        if self._journal.stage is Stage.READY:
            self._hand_on(_INITIALIZED)
        self.resume_reading("reopen")

    # reading

    def _stumbled(self) -> None:
        # A callback that dies would leave the client waiting for good.
        self._log.exception("reading from client %r failed", self.who.client)
        self.close(3, "E1506: the daemon made a mistake with this client; see daemon.log.")

    def _take_in(self) -> None:
        with self._journal.space() as space:
            count = self._source.read_into(space) if len(space) else None
        if count is None:
            return
        if count == 0:
            self._end_of_input()
        elif self._journal.landed(count):
            self._deliver()
        else:
            self._no_message()

    def _no_message(self) -> None:
        self.close(2, "E1301: the client sent a NUL byte, which no JSON message has.")

    def _deliver(self) -> None:
        journal = self._journal
        while not self.closed and not self._closing and not self._held:
            if not self._skipping:
                self.begin_lines()
            line = journal.line()
            if line is None:
                if len(journal.rest()) > LINE_BYTES or self._skipping:
                    self._skip()
                break
            if self._skipping:
                self._refuse_long(line)
            elif len(line) > LINE_BYTES:
                self._head = line[:512]
                self._refuse_long(line)
            elif line.strip():
                self._in_hand = True
                self._hand_on(line)
                if not self._in_hand:
                    continue
                self._in_hand = False
            if not self.closed:
                journal.consume()
        self._maybe_end()

    def _hand_on(self, line: bytes) -> None:
        try:
            self.on_message(line)
        except Exception:
            self._log.exception("a message of client %r to %r failed", self.who.client, self.who.name)
            id = _id_of(line)
            if id:
                self.send(error_line(id, -32603, "earnest made a mistake with this message; see daemon.log"), id)

    def _skip(self) -> None:
        rest = self._journal.rest()
        if not self._skipping:
            self._skipping, self._head, self._tail = True, rest[:512], b""
        self._tail = (self._tail + rest[-512:])[-512:]
        self._journal.discard()

    def _refuse_long(self, end: bytes) -> None:
        tail = (self._tail + end[-512:])[-512:]
        found = _ID_FIRST.match(self._head) or _ID_LAST.search(tail)
        id = found.group(1) if found else b"null"
        self._skipping, self._head, self._tail = False, b"", b""
        self.send(error_line(id, -32600, f"E1706: a message of more than {LINE_BYTES} bytes; that is the limit."))

    def _end_of_input(self) -> None:
        self._source.pause()
        if self._journal.rest():  # a last line without its end
            with self._journal.space() as space:
                space[:1] = b"\n"
            self._journal.landed(1)
            self._deliver()
        if self.closed or self._eof:
            return
        self._eof = True
        if self.on_eof is not None:
            self.on_eof()
        self._maybe_end()
        self._listen_for_hangup()

    def _listen_for_hangup(self) -> None:
        """The client says no more; if it also reads no more it is gone, and what still runs for it runs for nobody."""
        if self.closed or self._closing:
            return
        if self._sink.hung_up():
            self._finish(0, "the client is gone")
        else:
            self._loop.call_later(HANGUP_S, self._listen_for_hangup)

    def _maybe_end(self) -> None:
        if self._eof and not self._held and not self._closing and self.idle:
            self.close(0)

    # writing

    def _left(self, id: bytes | None) -> None:
        if self.closed:
            return
        journal = self._journal
        if id is not None:
            journal.finish(id)  # first of all: until it is done, a kill gives the id an error after its answer
        journal.delivered()
        if id is not None and id == self._opening_id and journal.stage is Stage.OPENING:
            journal.stage = Stage.OPENED
        if self._eof:
            self._maybe_end()

    def _move_on(self, ids: Collection[bytes]) -> None:
        """The answers to these ids stand in the passage."""
        self._writer.go_on(partial(self._all_left, ids))

    def _all_left(self, ids: Collection[bytes]) -> None:
        for id in ids:
            self._left(id)

    def _tearing(self, half: bool) -> None:
        if not self.closed:
            self._journal.half = half

    def _pressed(self, high: bool) -> None:
        if high:
            self.pause_reading("pressure")
        if self.on_pressure is not None:
            self.on_pressure(high)
        if not high:
            self._loop.call_soon(self.resume_reading, "pressure")

    # ending

    def _failed(self, text: str) -> None:
        self._loop.call_soon(self._finish, 0, text)

    def _gone(self) -> None:
        self._finish(-1, "the client ended its shim")

    def _timer_off(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish(self, code: int, text: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._timer_off()
        self._source.close()
        self._sink.close()
        self._passage.close()
        os.close(self.stderr_fd)
        self._journal.close()
        if code < 0:
            self._link.drop()
        else:
            self._link.end(code, text)
        try:
            self.on_closed(text)
        except Exception:
            self._log.exception("closing failed")
        self._on_end(self)


def _id_of(line: bytes) -> bytes:
    """The raw id of a request; empty for anything else."""
    try:
        read = _envelope.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    return bytes(read.id) if read.method else b""


def _unset(_: bytes) -> None:
    raise EarnestError("E1506", "no application took this client.")


def _unheard(_: str) -> None:
    """The default of `on_closed`."""
