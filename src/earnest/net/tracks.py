"""Tracks: calls that go the way an earlier one went, compiled.

Theory. Most calls of a client differ from its last one in their id and their arguments alone. What a call came to (head read,
token known, tool found, labels looked up, verdict, the bytes of its record but for time and digest) then holds for the next
one too, as long as all that it stood on is what it was. So a call that took the long way, and was allowed whatever its
arguments are, lays a *track*: that outcome, and its *grounds*, a list of everything it stood on. A later call with the same
head (but for its length), name and `_meta` goes along it as a *trip* if every ground holds at that moment; none is remembered
as having held. A ground is one of

    is      an attribute is the same object      equals  an attribute has an equal value
    item    a mapping's entry is the same object lacks   a set or mapping does not hold a key

A trip decides nothing. Its decision stands in the chain of receipts and is written before it goes out, with the decisions of
all other calls of that turn of the loop; its arguments are put in canonical form and looked at by the floor like any other's.
Whatever is out of the ordinary (an answer that is not a plain result, comes in a stream, or does not come; a client that goes
away; an ending daemon) makes the trip an ordinary call again, in the state that it is in: `Facts.become`.

The code is `_tracks.pyx` (decision record 0011). Where no compiler was there when earnest was installed, or EARNEST_COMPILED
is 0, there are no tracks, and every call takes the long way: slower, otherwise the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import TYPE_CHECKING, Any, Protocol, cast

from earnest.core.receipt import Chain

if TYPE_CHECKING:
    from earnest.net import _tracks as compiled
    from earnest.net._tracks import Track, Tracks, Trip
else:
    compiled = None
    if os.environ.get("EARNEST_COMPILED") != "0":
        try:
            from earnest.net import _tracks as compiled
        except ImportError:
            pass
        else:
            # Made of other sources than those that lie here, it would not fit the rest.
            folder = os.path.dirname(__file__)
            sources = b""
            for name in ("_tracks.pyx", "_scan.pxi", "_records.pxi", "_heads.pxi", "_plain.pxi", "_pipes.pxi"):
                with open(os.path.join(folder, name), "rb") as file:
                    sources += file.read()
            if hashlib.sha256(sources).hexdigest()[:16] != compiled.MARK:
                compiled = None

__all__ = [
    "AVAILABLE", "DEPTH_READ", "Carrier", "Facts", "Ground", "Known", "MappedJournal", "PipeCarrier", "PipePort", "Port",
    "chain_of", "compiled",
]  # fmt: skip

AVAILABLE = compiled is not None
"""Whether calls can go along tracks here."""
DEPTH_READ = compiled.DEPTH_READ if AVAILABLE else 0
"""Levels of a message that is read there, at most."""


class PlainPort:
    """What of a client's connection each call along a track goes through, where there are no tracks."""

    _transport: Any
    _listener: Any
    _busy: Any
    _queue: Any
    _phase: int
    _paused: bool
    _keep_alive_s: float
    _now: Callable[[], float]

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self.received(data)

    def answer(self, data: bytes, close: bool) -> None:
        """Write a whole answer."""
        self._transport.write(data)
        self.answered(close)

    def received(self, data: bytes) -> None:
        """Bytes that are no call along a track."""
        raise NotImplementedError

    def answered(self, close: bool) -> None:
        """The answer is complete."""
        raise NotImplementedError


class PlainCarrier:
    """The same of a connection to a server."""

    trip: Trip | None

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self.received(data)

    def received(self, data: bytes) -> None:
        """Bytes that are no answer to a call along a track."""
        raise NotImplementedError


class PlainJournal:
    """What of a client's journal each call along a track goes through, where there are no tracks."""

    _slots: dict[bytes, int]
    _free: list[int]
    _read: int
    _scan: int
    _write: int

    def _pin(self, view: mmap, **where: object) -> None:
        """The memory it stands in, and where in it things are."""

    def _unpin(self) -> None:
        """Let go of that memory."""


class PlainPipePort:
    """The same of a client on its pipes."""

    tracks: dict[bytes, Track | None]
    trips: dict[bytes, Trip]
    along: Tracks | None
    longest: int
    closed: bool
    _closing: bool
    _eof: bool
    _skipping: bool
    _held: set[str]
    _unsent: Any

    def __init__(self) -> None:
        self.tracks, self.trips = {}, {}
        self.along = None
        self.longest = 0
        self.closed = self._closing = self._eof = self._skipping = False

    def _pass_by(self, filling: int, emptying: int, sink: int, socket: bool, most: int) -> None:
        """Answers go by a passage."""

    def _read_by(self, source: int, socket: bool) -> None:
        """Where its lines come from."""

    def pump(self) -> None:
        """Something has come."""
        try:
            self._take_in()
        except Exception:
            self._stumbled()

    def _take_in(self) -> None:
        """Read, and hand on what is whole."""
        raise NotImplementedError

    def _stumbled(self) -> None:
        """Reading failed for a reason of earnest's own."""
        raise NotImplementedError

    def begin_lines(self) -> None:
        """Begin the calls that stand next in the input, as long as they go along tracks."""


class PlainPipeCarrier:
    """The same of a server on its pipes."""

    trips: dict[int, Trip]
    numbers: Iterator[int]
    _lost: Any
    _stdin: Any
    _closing: bool
    _ended_output: bool
    _unwritten: list[bytes]
    _buffer: Any
    _input: int

    def __init__(self) -> None:
        self.trips = {}
        self._closing = self._ended_output = False

    def received(self, data: bytes) -> None:
        """Bytes have come."""
        self._received(data)

    def whole_line(self, line: bytes) -> None:
        """A line has come."""
        self._line(line)

    def _received(self, data: bytes) -> None:
        """Bytes of which not each line is an answer to a call along a track."""
        raise NotImplementedError

    def _line(self, line: bytes) -> None:
        """A line that is no answer to a call along a track."""
        raise NotImplementedError


if TYPE_CHECKING:
    from earnest.net._tracks import Carrier, MappedJournal, PipeCarrier, PipePort, Port
elif AVAILABLE:
    Port, Carrier = compiled.Port, compiled.Carrier
    MappedJournal, PipePort, PipeCarrier = compiled.MappedJournal, compiled.PipePort, compiled.PipeCarrier
else:
    Port, Carrier = PlainPort, PlainCarrier
    MappedJournal, PipePort, PipeCarrier = PlainJournal, PlainPipePort, PlainPipeCarrier


def chain_of(writer: str) -> Chain:
    """The chain of a writer of receipts, which tracks write into too."""
    return cast(Chain, compiled.Chain(writer)) if AVAILABLE else Chain(writer)


Ground = tuple[str, object, object, object]
"""Kind, owner, name or key, and what was found there (None for `lacks`)."""


class Facts(Protocol):
    """What a track was laid from."""

    def become(self, trip: Trip) -> None:
        """Make an ordinary call of a trip that cannot go on as one."""


Known = dict[bytes, "dict[bytes, Track | None]"]
"""The tracks of one client by shape of head, then by name of tool and `_meta` (`call_key`); None for a tool whose calls are
better off without. A client on pipes has no heads: its are the inner one alone."""
