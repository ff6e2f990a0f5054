# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Calls that go the way an earlier one went: the compiled piece of the data path. `tracks.py` says what it does and why.

It decides nothing. Whatever is not exactly as it was when the track was laid returns None or False here, and the call goes the
long way, in Python, from where it stands.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport Py_EQ, PyObject_RichCompareBool
from libc.string cimport memcpy

import hashlib

include "_scan.pxi"
include "_records.pxi"
include "_heads.pxi"
include "_plain.pxi"
include "_pipes.pxi"

cdef extern from "<string.h>" nogil:
    void* memmem(const void* where, size_t size, const void* what, size_t length)

cdef object sha256 = hashlib.sha256
cdef double NEVER = float("inf")
cdef double TAIL_S = 1.0  # how long the end of a stream may take that has given its answer
cdef const char* DIGITS = b"0123456789abcdef"
cdef bytes ENVELOPE = b'{"jsonrpc":"2.0","id":'
cdef bytes CALL = b',"method":"tools/call","params":'
cdef bytes RESULT = b',"result":'

cdef enum:
    LONGEST_HEAD = 4096
    APART = 128 * 1024  # from this size on an answer is written in pieces, see `responder.py`


cdef extern from *:
    """
    #ifndef TRACKS_MARK
    #define TRACKS_MARK ""
    #endif
    """
    const char* TRACKS_MARK

MARK = TRACKS_MARK.decode()
"""Which sources this was made of."""

DEPTH_READ = DEPTH + 3
"""Levels of a message that is read here, at most."""


# what a track stands on

@cython.final
cdef class Guard:
    """One thing that was so when a track was laid."""
    cdef object owner, name, expected
    cdef int kind

    def __init__(self, str kind not None, owner, name, expected=None):
        self.kind = ("is", "equals", "item", "lacks").index(kind)
        self.owner = owner
        self.name = name
        self.expected = expected
        if self.kind == 0 and name in getattr(owner, "__dict__", ()) and not hasattr(getattr(type(owner), name, None), "__set__"):
            # The same, found more quickly.
            self.kind, self.owner = 2, owner.__dict__

    cdef inline bint holds(self) except -1:
        cdef object found
        if self.kind == 3:
            return self.name not in self.owner
        try:
            found = self.owner[self.name] if self.kind == 2 else getattr(self.owner, self.name)
        except LookupError:
            return False
        if self.kind == 1:
            return found is self.expected or PyObject_RichCompareBool(found, self.expected, Py_EQ)
        return found is self.expected


cpdef bint holds(tuple guards) except -1:
    """Whether all of them hold."""
    cdef object guard
    for guard in guards:
        if not (<Guard> guard).holds():
            return False
    return True


@cython.final
cdef class Tally:
    """How often tracks of one conversation and session were used."""
    cdef readonly object of
    cdef readonly long times

    def __init__(self, of):
        self.of = of


@cython.final
cdef class Track:
    cdef readonly object facts
    cdef readonly Tally tally
    cdef readonly tuple guards
    cdef bytes before, between, after, lead, said
    cdef object numbers, waiting, floor, client, server
    cdef tuple of_answer
    cdef list idle
    cdef PipeCarrier line
    cdef long client_limit, server_limit, labels_after
    cdef readonly long trips

    def __init__(self, *, facts, Tally tally not None, tuple guards not None, tuple of_answer not None, bytes decision not None,
                 bytes lead not None, bytes said not None, numbers, list idle not None, waiting, PipeCarrier line, floor,
                 client, server, tuple limits not None, long labels_after):
        # Of a record of time 0.0 and no digest, the three pieces around those two.
        before, time, rest = decision.partition(b'"time":0.0')
        between, digest, after = rest.partition(b'"arguments_sha256":""')
        if before != b'{"kind":"decision",' or not digest or digest in after:
            raise ValueError("not a decision record without time and digest")
        self.facts = facts
        self.tally = tally
        self.guards = guards
        self.before = before + b'"time":'
        self.between = between + b'"arguments_sha256":"'
        self.after = b'"' + after
        self.lead = lead
        self.said = said
        self.of_answer = of_answer
        self.numbers = numbers
        self.idle = idle
        self.waiting = waiting
        self.line = line
        self.floor = floor
        self.client = client
        self.server = server
        self.client_limit, self.server_limit = limits
        self.labels_after = labels_after


cdef bint count_in(dict counts, object name, long limit) except -1:
    cdef long now = counts.get(name, 0)
    if now >= limit:
        return False
    counts[name] = now + 1
    return True


cdef count_out(dict counts, object name):
    cdef long left = counts.get(name, 1) - 1
    if left:
        counts[name] = left
    else:
        counts.pop(name, None)


@cython.final
@cython.freelist(64)
cdef class Trip:
    cdef Tracks tracks
    cdef readonly Track track
    cdef readonly object connection  # a Port, or a PipePort
    cdef readonly object upstream    # a Carrier, or a PipeCarrier, once it is sent
    cdef readonly bytes id
    cdef readonly bytes body
    cdef readonly bytes arguments
    cdef readonly bytes arguments_sha256
    cdef readonly long long receipt
    cdef readonly double time
    cdef readonly long long number
    cdef Py_ssize_t params_at, params_size, token_at, token_size
    cdef public bint odd  # what its server said is not plain
    cdef bytes first
    cdef list parts
    cdef long long missing
    cdef object known
    cdef bint streams
    cdef readonly bint over

    @property
    def params(self):
        return self.body[self.params_at : self.params_at + self.params_size]

    @property
    def heard(self):
        """What of its answer has come."""
        if self.first is None:
            return b""
        return self.first if self.parts is None else b"".join(self.parts)

    def answer(self, bytes data not None):
        """Take what the server sent. Whether that was in order: then the answer is given, or the rest of it awaited."""
        cdef Py_ssize_t body = 0
        cdef long long length = 0
        cdef bytes shape
        if self.over or self.upstream is None:
            return False
        if self.first is None:
            self.first = data
            shape = split(data, &body, &length)
            if shape is not None:
                self.streams = length < 0
                self.known = (self.tracks.streams if self.streams else self.tracks.answers).get(shape)
            if self.known is None or length > self.tracks.longest_answer:
                return False
            self.missing = length + body
        elif self.parts is None:
            self.parts = [self.first, data]
        else:
            self.parts.append(data)
        if self.streams:
            return self.streamed()
        self.missing -= len(data)
        if self.missing > 0:
            return True
        if self.missing < 0 or not holds(self.track.of_answer):
            return False
        if self.parts is not None:
            data = b"".join(self.parts)
            split(data, &body, &length)
        return self.tracks.arrive(self, data, body, len(data), b"")

    cdef bint streamed(self) except -1:
        """Take what has come of an event stream: one event, which is the answer, and its end."""
        cdef bytes data = self.heard
        cdef Py_ssize_t body = 0, left
        cdef long long length = 0
        cdef Place start = <Place> PyBytes_AS_STRING(data), at
        cdef Span found
        cdef bint whole = True
        split(data, &body, &length)
        at = event(start + body, start + len(data), &found, &whole)
        if at == NULL:
            return not whole and len(data) < APART  # the rest of it is awaited
        left = start + len(data) - at
        if left > 5 or memcmp(at, b"0\r\n\r\n", left) or not holds(self.track.of_answer):
            return False
        return self.tracks.arrive(self, data, found.at - start, found.at - start + found.size, b"0\r\n\r\n"[left:])

    cpdef leave(self):
        """Let go of it; its places in the counts are whoever's goes on with it."""
        self.over = True
        self.tracks.under_way.discard(self)
        if self.track.line is not None:
            (<PipePort> self.connection).trips.pop(self.id, None)
            self.track.line.trips.pop(self.number, None)

    def become(self):
        """Make an ordinary call of it, in the state that it is in."""
        if not self.over:
            self.leave()
            self.track.facts.become(self)


@cython.final
cdef class Tracks:
    cdef readonly set under_way
    cdef readonly long long begun
    cdef readonly dict answers, streams
    cdef readonly list queue
    cdef list used
    cdef Chain chain
    cdef object clock, flush_soon, flush_later, keep
    cdef dict by_client, by_server
    cdef object digest_of
    cdef long long longest_request, longest_answer
    cdef bint flushing
    cdef public bint late
    cdef set kept
    cdef Track sure  # whose guards hold, in the midst of a batch between whose calls nothing else runs
    cdef object latest  # the client on pipes whose calls began last

    def __init__(self, *, Chain chain not None, clock, digest_of, flush_soon, flush_later, keep, set kept not None, dict by_client not None, dict by_server not None,
                 long long longest_request, long long longest_answer):
        self.under_way = set()
        self.answers = {}
        self.streams = {}
        self.queue = []
        self.used = []
        self.chain = chain
        self.clock = clock
        self.digest_of = digest_of
        self.flush_soon = flush_soon
        self.flush_later = flush_later
        self.keep = keep
        self.kept = kept
        self.by_client = by_client
        self.by_server = by_server
        self.longest_request = longest_request
        self.longest_answer = longest_answer

    def begin(self, dict known not None, bytes data not None, Port connection not None):
        """The call that stands whole in `data`, begun on its track; None where there is none for it."""
        cdef Py_ssize_t body = 0
        cdef long long length = 0
        cdef bytes shape = split(data, &body, &length)
        cdef dict tracks
        cdef Trip trip
        if shape is None or length < 0 or length != len(data) - body or length > self.longest_request:
            return None
        tracks = known.get(shape)
        if tracks is None:
            return None
        trip = self.read(tracks, data[body:])
        if trip is None or not self.judge(trip):
            return None
        self.start(trip, connection)
        return trip

    cdef start(self, Trip trip, connection):
        trip.connection = connection
        self.begun += 1
        self.under_way.add(trip)
        self.queue.append(trip)
        self.soon()

    cdef soon(self):
        if not self.flushing:
            self.flushing = True
            self.flush_soon()

    cdef Trip read(self, dict tracks, bytes data):
        """The call in a body, if it has the members of a plain one, each once, and a track."""
        cdef Place start = <Place> PyBytes_AS_STRING(data)
        cdef Call call
        cdef Track track
        cdef Trip trip
        if not read_call(start, start + len(data), &call):
            return None
        track = tracks.get(known_by(&call.called))
        if track is None:
            return None
        trip = Trip.__new__(Trip)
        trip.tracks = self
        trip.track = track
        trip.body = data
        trip.id = piece(call.id.at, call.id.size)
        trip.params_at, trip.params_size = call.params.at - start, call.params.size
        if call.called.token.at != NULL:
            trip.token_at, trip.token_size = call.called.token.at - start, call.called.token.size
        trip.arguments = piece(call.called.arguments.at, call.called.arguments.size)
        return trip

    cdef bint judge(self, Trip trip) except -1:
        """Whether the track's verdict is this call's; then its decision is in the chain and it is counted in."""
        cdef Track track = trip.track
        cdef Place at = <Place> PyBytes_AS_STRING(trip.arguments)
        cdef Place end = at + len(trip.arguments)
        cdef bytes form = PyBytes_FromStringAndSize(NULL, len(trip.arguments))
        cdef unsigned char* out = <unsigned char*> PyBytes_AS_STRING(form)
        if track is not self.sure and not holds(track.guards):
            return False
        if may_reach(at, end) and not track.floor(trip.arguments):
            return False
        if canonical(at, end, DEPTH, &out) == end:
            trip.arguments_sha256 = digest(form, 0, out - <unsigned char*> PyBytes_AS_STRING(form))
        else:
            found = self.digest_of(trip.arguments)
            if found is None:
                return False
            trip.arguments_sha256 = found
        if not count_in(self.by_client, track.client, track.client_limit):
            return False
        if not count_in(self.by_server, track.server, track.server_limit):
            count_out(self.by_client, track.client)
            return False
        trip.time = self.clock()
        trip.receipt = self.chain.append(
            b"".join((track.before, decimal(trip.time, 6), track.between, trip.arguments_sha256, track.after))
        )
        if self.keep is not None:
            self.hand_on("arguments", trip.arguments_sha256, trip.arguments)
        if not track.tally.times:
            self.used.append(track.tally)
        track.tally.times += 1
        track.trips += 1
        return True

    cdef hand_on(self, str kind, bytes sha256, bytes payload):
        cdef str known = sha256.decode("ascii")
        if known not in self.kept:
            self.keep(kind, known, payload)

    def counted(self):
        """What was used since this was asked last, each with how often."""
        cdef Tally tally
        cdef list found = []
        for tally in self.used:
            found.append((tally, tally.times))
            tally.times = 0
        self.used = []
        return found

    def recall(self):
        """What is queued and shall not be sent."""
        cdef list queue = self.queue
        self.flushing = False
        self.queue = []
        return [trip for trip in queue if not trip.over]

    cdef go(self, bint at_once):
        """Write and send what one client on pipes began, as at the end of a turn of the loop or then, since nothing else is
        queued."""
        cdef list left
        self.flushing = False
        if not self.queue:
            return
        if not at_once or not self.chain.flush():
            self.soon()
            return
        left = self.depart()
        if left:
            self.queue = left
            self.soon()

    cpdef list depart(self):
        """Send what is queued, now that its decisions are written. Returns what there is no free connection for."""
        cdef Trip trip
        cdef PipeCarrier line
        cdef list left = [], lines = []
        cdef list queue = self.queue
        self.flushing = False
        if not queue:
            return left
        self.queue = []
        for trip in queue:
            if trip.over:
                continue
            line = trip.track.line
            if line is None:
                if not self.send(trip):
                    left.append(trip)
            elif not line.carry(trip):
                left.append(trip)
            elif line not in lines:
                lines.append(line)
        for line in lines:
            line.depart()
        return left

    cdef bint send(self, Trip trip) except -1:
        cdef Track track = trip.track
        cdef Carrier upstream
        cdef bytes number
        while track.idle:
            upstream = <Carrier?> track.idle.pop()
            trip.number = next(track.numbers)
            number = whole(trip.number)
            size = len(ENVELOPE) + len(number) + len(CALL) + trip.params_size + 1
            if not upstream.carry(trip, b"".join((
                track.lead, b"Content-Length: ", whole(size), b"\r\n\r\n", ENVELOPE, number, CALL,
                piece(<Place> PyBytes_AS_STRING(trip.body) + trip.params_at, trip.params_size), b"}",
            ))):
                continue
            return True
        return False

    cdef bint arrive(self, Trip trip, bytes data, Py_ssize_t body, Py_ssize_t stop, bytes tail) except -1:
        """Give the answer that stands in `data` from `body` to `stop`, if it is a plain result of this call. `tail`: what must
        still come behind it."""
        cdef Place at = <Place> PyBytes_AS_STRING(data)
        cdef Answered found
        if not read_answer(at + body, at + stop, &found) or piece(found.id.at, found.id.size) != whole(trip.number):
            return False
        self.finish(trip, found.failed, data, found.result.at - at, found.result.size)
        if (<Carrier> trip.upstream).carried(trip.known, trip.track.waiting, tail):
            trip.track.idle.append(trip.upstream)
        return True

    cdef finish(self, Trip trip, bint failed, bytes data, Py_ssize_t at, Py_ssize_t result):
        """The outcome's record, and the answer to the client. `at`, `result`: where the result stands in `data`, its length."""
        cdef Track track = trip.track
        cdef double now = self.clock()
        cdef bytes sha256 = digest(data, at, result)
        cdef Py_ssize_t size = len(ENVELOPE) + len(trip.id) + len(RESULT) + len(track.said) + result
        cdef Port connection
        trip.leave()
        count_out(self.by_client, track.client)
        count_out(self.by_server, track.server)
        if self.keep is not None:
            self.hand_on("result", sha256, piece(<Place> PyBytes_AS_STRING(data) + at, result))
        self.chain.append(b"".join((
            b'{"kind":"outcome","time":', decimal(now, 6), b',"decision":"', self.chain.name, b".", whole(trip.receipt),
            b'","outcome":"', b"error" if failed else b"ok", b'","labels_after":', whole(track.labels_after),
            b',"duration_ms":', decimal(max(0.0, now - trip.time) * 1000, 3), b',"result_sha256":"', sha256, b'","result_bytes":', whole(result),
            b',"detail":""}',
        )))
        if not self.flushing and not self.late:
            self.late = True
            self.flush_later()
        if track.line is not None:
            (<PipePort> trip.connection).give(trip.id, b"".join(
                (ENVELOPE, trip.id, RESULT, track.said, piece(<Place> PyBytes_AS_STRING(data) + at + 1, result - 1), b"}\n")
            ))
            return
        connection = <Port?> trip.connection
        head = b"".join((HEAD, whole(size), b"\r\n\r\n", ENVELOPE, trip.id, RESULT, track.said))
        # What was said stands in place of the brace that opens the result.
        if result < APART:
            connection.answer(b"".join((head, data[at + 1 : at + result], b"}")), False)
        else:
            connection.write(head)
            connection.write(memoryview(data)[at + 1 : at + result])
            connection.answer(b"}", False)


# connections: what of them each call along a track goes through; `connection.py` and `client.py` are the rest

cdef class Port:
    """A client's connection."""
    cdef public object tracks, _transport, _listener, _busy, _queue, _now
    cdef public int _phase
    cdef public bint _paused
    cdef public double _deadline, _keep_alive_s

    def data_received(self, bytes data not None):
        cdef object begin, trip
        if self.tracks is not None and self._phase == 0 and self._busy is None and not self._queue:
            begin = self._listener.begin
            if begin is not None:
                trip = begin(self.tracks, data, self)
                if trip is not None:
                    self._busy = trip
                    self._deadline = NEVER
                    return
        self.received(data)

    cpdef answer(self, data, bint close):
        """Write a whole answer."""
        self._transport.write(data)
        if close or self._phase != 0 or self._paused or self._queue or self._listener.closing:
            self.answered(close)
            return
        if isinstance(self._busy, tuple):
            self._busy[0].finished()
        self._busy = None
        self._deadline = self._now() + self._keep_alive_s


cdef class Carrier:
    """A connection to a server."""
    cdef public object transport, trip, pool
    cdef bytes tail
    cdef public bint dead, fresh
    cdef public double idle_until, idle_s

    def data_received(self, bytes data not None):
        cdef Trip trip = self.trip
        if self.tail is not None:
            if data == self.tail:
                self.tail = None
                self.pool.release(self)
            elif self.tail.startswith(data):
                self.tail = self.tail[len(data) :]
            else:
                self.cut()
        elif trip is None:
            self.received(data)
        elif not trip.answer(data):
            trip.become()  # which takes what was heard up to now

    cdef bint carry(self, Trip trip, bytes payload) except -1:
        """Send a request that goes along a track, if the connection can be used."""
        if self.dead or self.transport.is_closing():
            return False
        self.trip = trip
        self.idle_until = NEVER
        trip.upstream = self
        try:
            self.transport.write(payload)
        except Exception as error:
            # Nobody knows what of it went: it ends with its connection, as one that was sent, and those behind it go on.
            self.pool.report(error)
            self.cut()
        return True

    cdef bint carried(self, double idle_s, object waiting, bytes tail) except -1:
        """Its answer is complete. Whether the connection is kept idle; else it serves who waits, or is closed. `tail`: what has
        to come before."""
        self.trip = None
        self.fresh = False
        self.idle_s = idle_s
        if tail:
            self.tail = tail
            self.idle_until = self.pool.now() + TAIL_S
            return False
        if waiting or idle_s <= 0:
            self.pool.release(self)
            return False
        self.idle_until = self.pool.now() + idle_s
        return True


cdef bytes HEAD = b""


def answer_with(bytes head not None):
    """What every answer begins with, up to the length of its body."""
    global HEAD
    HEAD = head + b"Content-Length: "
