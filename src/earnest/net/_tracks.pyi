"""The compiled piece of the data path, as `tracks.py` describes it. It may not be there: nothing but `tracks.py` imports it."""

from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Any, Literal

MARK: str
"""Which sources this was made of."""

DEPTH_READ: int
"""Levels of a message that is read there, at most."""

class Chain:
    """As `core.receipt.Chain`."""

    name: bytes
    seq: int
    head: bytes
    held: list[bytes]
    held_bytes: int
    def __init__(self, writer: str) -> None: ...
    size: int
    def append(self, record: bytes) -> int: ...
    def lend(self, fd: int, size: int, most: int, until: int) -> None:
        """What is held may be written here, to a file of this size, while that is less than `most` and the chain is no longer
        than `until`; not from now on where `fd` is -1."""

class Guard:
    def __init__(self, kind: str, owner: object, name: object, expected: object = None) -> None: ...

def holds(guards: tuple[Guard, ...]) -> bool:
    """Whether all of them hold."""

def shape(head: bytes) -> bytes | None:
    """What heads have in common that differ in nothing that matters; None for one without a plain Content-Length."""

def stream_shape(head: bytes) -> bytes | None:
    """The same for the head of a chunked answer; None for one that names a length."""

def answer_with(head: bytes) -> None:
    """What every answer begins with, up to its length."""

def canonical_form(raw: bytes) -> bytes | None:
    """The canonical form of one JSON text; None where the long way has to say."""

def reaches(arguments: bytes) -> bool:
    """Whether the floor has to look at arguments."""

def call_key(params: bytes) -> bytes | None:
    """What the track of a plain call with these params is found by: its name and its `_meta` without the values in which calls
    alike may differ (progress token, trace). None for params that are not plain."""

def call(line: bytes) -> tuple[bytes, bytes, bytes, bytes] | None:
    """Id, params, arguments and progress token (empty for none) of a plain call; None for anything else."""

def answer(line: bytes) -> tuple[bytes, bytes, bool] | None:
    """Id and result of a plain answer, and whether it is an error's; None for anything else."""

def plain(result: bytes) -> bool | None:
    """Whether a plain result is an error; None for a result that is not plain."""

class Tally:
    """How often tracks of one conversation and session were used."""

    of: Any
    times: int
    def __init__(self, of: object) -> None: ...

class Port:
    """See `tracks.PlainPort`."""

    tracks: dict[bytes, dict[bytes, Track | None]] | None
    _transport: Any
    _listener: Any
    _busy: Any
    _queue: Any
    _now: Callable[[], float]
    _phase: int
    _paused: bool
    _deadline: float
    _keep_alive_s: float
    def data_received(self, data: bytes) -> None: ...
    def answer(self, data: bytes, close: bool) -> None: ...

class Carrier:
    """See `tracks.PlainCarrier`."""

    transport: Any
    trip: Trip | None
    pool: Any
    dead: bool
    fresh: bool
    idle_until: float
    idle_s: float
    def data_received(self, data: bytes) -> None: ...

class MappedJournal:
    """See `tracks.PlainJournal`."""

    _slots: dict[bytes, int]
    _free: list[int]
    _read: int
    _scan: int
    _write: int
    def _pin(
        self,
        view: mmap,
        *,
        cells: tuple[int, int, int, int],
        slots: tuple[int, int, int],
        input: tuple[int, int, int, int],
        leaving: int,
    ) -> None: ...
    def _unpin(self) -> None: ...

class PipePort:
    """See `tracks.PlainPipePort`."""

    tracks: dict[bytes, Track | None]
    trips: dict[bytes, Trip]
    along: Tracks | None
    longest: int
    closed: bool
    _journal: Any
    _closing: bool
    _eof: bool
    _skipping: bool
    _held: set[str]
    _unsent: Any
    def _read_by(self, source: int, socket: bool) -> None: ...
    def pump(self) -> None: ...
    def _pass_by(self, filling: int, emptying: int, sink: int, socket: bool, most: int) -> None: ...
    def begin_lines(self) -> None: ...

def give(port: PipePort, answers: list[tuple[bytes, bytes]]) -> None:
    """Lets answers go at once, each an id and a line."""

class PipeCarrier:
    """See `tracks.PlainPipeCarrier`."""

    trips: dict[int, Trip]
    numbers: Iterator[int]
    _lost: Any
    _stdin: Any
    _closing: bool
    _ended_output: bool
    _unwritten: list[bytes]
    _buffer: Any
    _input: int
    def received(self, data: bytes) -> None: ...
    def whole_line(self, line: bytes) -> None: ...

class Track:
    facts: Any
    tally: Tally
    guards: tuple[Guard, ...]
    trips: int
    def __init__(
        self,
        *,
        facts: object,
        tally: Tally,
        guards: tuple[Guard, ...],
        of_answer: tuple[Guard, ...],
        decision: bytes,
        lead: bytes,
        said: bytes,
        numbers: Iterator[int],
        idle: list[Any],
        waiting: object,
        line: PipeCarrier | None,
        floor: Callable[[bytes], bool],
        client: str,
        server: str,
        limits: tuple[int, int],
        labels_after: int,
    ) -> None: ...

class Trip:
    track: Track
    connection: Any
    upstream: Any
    id: bytes
    arguments: bytes
    arguments_sha256: bytes
    receipt: int
    time: float
    number: int
    odd: bool
    """What its server said is not plain."""
    over: bool
    @property
    def body(self) -> bytes: ...
    @property
    def params(self) -> bytes: ...
    @property
    def heard(self) -> bytes: ...
    def answer(self, data: bytes) -> bool: ...
    def leave(self) -> None: ...
    def become(self) -> None: ...

class Tracks:
    under_way: set[Trip]
    begun: int
    """Trips so far."""
    answers: dict[bytes, float]
    streams: dict[bytes, float]
    queue: list[Trip]
    late: bool
    """Records of outcomes wait for others."""
    def __init__(
        self,
        *,
        chain: Chain,
        clock: Callable[[], float],
        digest_of: Callable[[bytes], bytes | None],
        flush_soon: Callable[[], None],
        flush_later: Callable[[], None],
        keep: Callable[[Literal["arguments", "result"], str, bytes], None] | None,
        kept: set[str],
        by_client: dict[str, int],
        by_server: dict[str, int],
        longest_request: int,
        longest_answer: int,
    ) -> None: ...
    def begin(self, known: dict[bytes, dict[bytes, Track | None]], data: bytes, connection: Port) -> Trip | None: ...
    def counted(self) -> list[tuple[Tally, int]]: ...
    def recall(self) -> list[Trip]: ...
    def depart(self) -> list[Trip]: ...
