# Pipes: what of a client's, its journal and a server's each call along a track goes through. `gateway.process` (`handover.py`,
# `journal.py`, `passage.py`) and `upstream/stdio.py` are the rest, and say why it goes in this order.

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memchr, memset

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <poll.h>
    #include <stdint.h>
    #include <sys/socket.h>
    #include <unistd.h>
    /* One store, which a kill falls before or after, and which no other store is moved across. */
    static inline void put_cell(unsigned char *at, uint32_t value) {
        __asm__ __volatile__("" ::: "memory");
        __atomic_store_n((uint32_t *)at, value, __ATOMIC_SEQ_CST);
        __asm__ __volatile__("" ::: "memory");
    }
    static inline uint32_t cell(const unsigned char *at) { return *(const volatile uint32_t *)at; }
    static inline Py_ssize_t take_in(int fd, int socket, void *into, size_t size) {
        return socket ? recv(fd, into, size, MSG_DONTWAIT) : read(fd, into, size);
    }
    static inline Py_ssize_t write_out(int fd, const void *from, size_t size) { return write(fd, from, size); }
    static inline int not_now(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
    #ifdef __linux__
    static inline Py_ssize_t move_on(int from, int to, int socket, size_t size) {
        struct pollfd one = {to, POLLOUT, 0};
        if (socket && (poll(&one, 1, 0) != 1 || !(one.revents & POLLOUT))) return -1;  /* it would wait */
        return splice(from, NULL, to, NULL, size, SPLICE_F_NONBLOCK);
    }
    #else
    static inline Py_ssize_t move_on(int from, int to, int socket, size_t size) { return -1; }
    #endif
    """
    ctypedef unsigned int uint32_t
    void put_cell(unsigned char* at, uint32_t value) nogil
    uint32_t cell(const unsigned char* at) nogil
    Py_ssize_t take_in(int fd, int socket, void* into, size_t size) nogil
    Py_ssize_t write_out(int fd, const void* data, size_t size) nogil
    Py_ssize_t move_on(int source, int to, int socket, size_t size) nogil
    bint not_now() nogil


cdef enum:
    NOTHING = -1
    NO_ROOM = -2
    A_NUL = -3


cdef class MappedJournal:
    """A journal (`journal.py`), as far as calls along tracks go into it."""
    cdef unsigned char* start
    cdef Py_buffer page
    cdef public dict _slots
    cdef public list _free
    cdef public Py_ssize_t _read, _scan, _write
    cdef Py_ssize_t ids_at, slot_bytes, id_bytes, input_at, input_bytes, line_bytes, chunk
    cdef int read_cell, whole_cell, progress_cell, high_cell, leaving

    def _pin(self, view, *, tuple cells not None, tuple slots not None, tuple input not None, int leaving):
        self.read_cell, self.whole_cell, self.progress_cell, self.high_cell = cells
        self.ids_at, self.slot_bytes, self.id_bytes = slots
        self.input_at, self.input_bytes, self.line_bytes, self.chunk = input
        self.leaving = leaving
        PyObject_GetBuffer(view, &self.page, PyBUF_WRITABLE)
        self.start = <unsigned char*> self.page.buf

    def _unpin(self):
        if self.start != NULL:
            self.start = NULL
            PyBuffer_Release(&self.page)

    def __dealloc__(self):
        if self.start != NULL:
            PyBuffer_Release(&self.page)

    cdef int fill(self, int fd, bint socket) except -9:
        """Read what has come into the input: how many bytes, 0 at the end, or what is not plain."""
        cdef unsigned char* at
        cdef Py_ssize_t size
        if self.start == NULL or self._write + self.chunk > self.input_bytes or self._write - self._read > self.line_bytes:
            return NO_ROOM
        if cell(self.start + 4 * self.high_cell) < <uint32_t> (self._write + self.chunk):
            put_cell(self.start + 4 * self.high_cell, <uint32_t> (self._write + self.chunk))
        at = self.start + self.input_at + self._write
        size = take_in(fd, socket, at, self.chunk)
        if size <= 0:
            return 0 if size == 0 or not not_now() else NOTHING
        self._write += size
        return A_NUL if memchr(at, 0, size) != NULL else size

    cdef bint note(self, bytes id) except -1:
        """Note an id that is not there; whether there is room for it."""
        cdef unsigned char* at
        cdef Py_ssize_t slot
        if len(id) > self.id_bytes or not self._free:
            return False
        slot = self._free.pop()
        at = self.start + self.ids_at + slot * self.slot_bytes
        memcpy(at + 4, PyBytes_AS_STRING(id), len(id))
        put_cell(at, <uint32_t> len(id))
        self._slots[id] = slot
        return True

    cdef strike(self, bytes id):
        """Forget an id that is there."""
        cdef Py_ssize_t slot = self._slots.pop(id)
        put_cell(self.start + self.ids_at + slot * self.slot_bytes, 0)
        self._free.append(slot)

    cdef advance(self, Py_ssize_t to):
        self._read = self._scan = to
        put_cell(self.start + 4 * self.read_cell, <uint32_t> to)
        if to == self._write:
            memset(self.start + self.input_at, 0, to)
            self._read = self._scan = self._write = 0
            put_cell(self.start + 4 * self.read_cell, 0)


cdef class PipePort:
    """A client on its pipes."""
    cdef public dict tracks, trips
    cdef public Tracks along
    cdef public MappedJournal _journal
    cdef public bint closed, _closing, _eof, _skipping
    cdef public set _held
    cdef public object _unsent  # lines that did not go yet, in front of the sink
    cdef public Py_ssize_t longest  # bytes of a line that may go along a track
    cdef int filling, emptying, sink, source
    cdef bint passes, to_socket, from_socket
    cdef list given_ids, given
    cdef Py_ssize_t given_bytes, passage_bytes

    def __init__(self):
        self.tracks = {}
        self.trips = {}
        self.given_ids = []
        self.given = []

    def _pass_by(self, int filling, int emptying, int sink, bint socket, Py_ssize_t most):
        """Answers go by this passage: its two ends, where they go from there, and how much at once."""
        self.filling, self.emptying, self.sink, self.to_socket, self.passage_bytes = filling, emptying, sink, socket, most
        self.passes = True

    def _read_by(self, int source, bint socket):
        """Where its lines come from."""
        self.source, self.from_socket = source, socket

    def pump(self):
        """Something has come."""
        cdef int count
        cdef Tracks along = self.along
        cdef bint alone
        try:
            if self.closed or self._closing or self._skipping or self._held or along is None:
                self._take_in()
                return
            count = self._journal.fill(self.source, self.from_socket)
            if count > 0:
                # Where several clients speak in turns, their calls share one write of records, at the end of the turn; and what
                # stands behind a call in the input may mean it.
                alone = along.latest is self and not along.flushing
                along.latest = self
                along.flushing = along.flushing or alone
                try:
                    self.begin_lines()
                finally:
                    if alone:
                        along.go(self._journal._write == 0)
                if self._journal._write:
                    self._deliver()  # there is more, which is no call along a track, or no whole line yet
            elif count == 0:
                self._end_of_input()
            elif count == NO_ROOM:
                self._take_in()
            elif count == A_NUL:
                self._no_message()
        except Exception:
            self._stumbled()

    cpdef begin_lines(self):
        """Begin the calls that stand next in the input, as long as they go along tracks."""
        try:
            self.begin_batch()
        finally:
            if self.along is not None:
                self.along.sure = None

    cdef begin_batch(self):
        cdef MappedJournal journal = self._journal
        cdef Tracks along = self.along
        cdef Py_ssize_t size
        cdef Place at
        cdef const void* end
        cdef Trip trip
        cdef bytes line
        if along is None or not self.tracks:
            return
        while not self.closed and journal.start != NULL and journal._scan < journal._write:
            at = journal.start + journal.input_at
            end = memchr(at + journal._scan, 0x0A, journal._write - journal._scan)
            if end == NULL:
                return
            size = <Place> end - at - journal._read
            if size > self.longest:
                return
            line = piece(at + journal._read, size)
            trip = along.read(self.tracks, line)
            # A line break inside of it would have to be taken out.
            if trip is None or trip.id in journal._slots or memchr(PyBytes_AS_STRING(line), 0x0D, size) != NULL:
                return
            if not journal.note(trip.id):
                return
            if not along.judge(trip):
                journal.strike(trip.id)
                return
            along.sure = trip.track
            journal.advance(journal._read + size + 1)
            self.trips[trip.id] = trip
            along.start(trip, self)

    cdef give(self, bytes id, bytes line):
        """An answer, which leaves with others of this moment."""
        if self.given_bytes + len(line) > self.passage_bytes:
            self.leave_lines()
        self.given_ids.append(id)
        self.given.append(line)
        self.given_bytes += len(line)

    cpdef leave_lines(self):
        """Let the answers go that were given."""
        cdef MappedJournal journal = self._journal
        cdef list ids = self.given_ids, lines = self.given
        cdef bytes id, line, data
        cdef Py_ssize_t size = self.given_bytes
        cdef bint owed = True
        if not ids:
            return
        self.given_ids, self.given, self.given_bytes = [], [], 0
        if self.closed or self._closing:
            return
        for id in ids:
            owed = owed and id in journal._slots
        if not self.passes or self._unsent or not owed or size > self.passage_bytes:
            for id, line in zip(ids, lines):
                if id in journal._slots:
                    self.send(line[:-1], id)
            return
        data = <bytes> lines[0] if len(lines) == 1 else b"".join(lines)
        put_cell(journal.start + 4 * journal.whole_cell, 0)
        for id in ids:
            put_cell(
                journal.start + journal.ids_at + <Py_ssize_t> journal._slots[id] * journal.slot_bytes,
                <uint32_t> len(id) | <uint32_t> journal.leaving,
            )
        if write_out(self.filling, PyBytes_AS_STRING(data), size) != size:
            self._failed("answers did not fit into an empty pipe")
            return
        put_cell(journal.start + 4 * journal.whole_cell, 1)
        if move_on(self.emptying, self.sink, self.to_socket, size) != size:
            self._move_on(ids)
            return
        for id in ids:
            journal.strike(id)
        put_cell(journal.start + 4 * journal.whole_cell, 0)
        put_cell(
            journal.start + 4 * journal.progress_cell,
            cell(journal.start + 4 * journal.progress_cell) + <uint32_t> len(ids),
        )
        if self._eof:
            self._maybe_end()


cdef class PipeCarrier:
    """A server on its pipes."""
    cdef public dict trips
    cdef public object _lost, _stdin, numbers
    cdef public bint _closing, _ended_output
    cdef public list _unwritten
    cdef public object _buffer
    cdef public int _input  # the pipe behind `_stdin`
    cdef list payload, ports
    cdef Track sure  # whose guards of the answer hold, in the midst of what came at once

    def __init__(self):
        self.trips = {}
        self.payload = []
        self.ports = []

    cdef bint carry(self, Trip trip) except -1:
        """Take a call along, if the server is there; it goes at `depart`."""
        cdef Place at = <Place> PyBytes_AS_STRING(trip.body)
        cdef Py_ssize_t end = trip.params_at + trip.params_size
        cdef bytes number
        if self._lost is not None or self._stdin is None or self._closing or self._ended_output:
            return False
        trip.number = next(self.numbers)
        trip.upstream = self
        self.trips[trip.number] = trip
        number = whole(trip.number)
        if trip.token_size:
            self.payload += (
                ENVELOPE, number, CALL, piece(at + trip.params_at, trip.token_at - trip.params_at), number,
                piece(at + trip.token_at + trip.token_size, end - trip.token_at - trip.token_size), b"}\n",
            )
        else:
            self.payload += (ENVELOPE, number, CALL, piece(at + trip.params_at, trip.params_size), b"}\n")
        return True

    cdef depart(self):
        """Send what was taken along."""
        cdef bytes data = b"".join(self.payload)
        self.payload = []
        cdef Py_ssize_t count = 0
        if self._unwritten:
            self._flush()  # which was said before
        if self._lost is not None or self._stdin is None or self._stdin.is_closing():
            return
        if not self._stdin.get_write_buffer_size():
            count = max(0, write_out(self._input, PyBytes_AS_STRING(data), len(data)))
            if count == len(data):
                return
        self._say(data[count:])

    cpdef received(self, bytes data):
        """Lines of the server: the answers to calls along tracks are given, everything else takes the long way."""
        cdef Py_ssize_t size = len(data), at = 0, stop
        cdef const char* start = PyBytes_AS_STRING(data)
        cdef const void* end
        if not self.trips or self._buffer or start[size - 1] != 0x0A:
            self._received(data)
        else:
            self.sure = None
            while at < size:
                end = memchr(start + at, 0x0A, size - at)
                stop = <const char*> end - start
                if stop > at and not self.answered(data, at, stop):
                    self.sure = None
                    self._line(data[at:stop])
                at = stop + 1
            self.sure = None
        self.leave_ports()

    cpdef whole_line(self, bytes line):
        """The same of one line, without its end."""
        cdef bint done
        self.sure = None
        done = bool(self.trips) and self.answered(line, 0, len(line))
        self.sure = None
        if not done:
            self._line(line)

    cdef leave_ports(self):
        cdef list ports = self.ports
        cdef PipePort port
        if ports:
            self.ports = []
            for port in ports:
                port.leave_lines()

    cdef bint answered(self, bytes data, Py_ssize_t at, Py_ssize_t stop) except -1:
        cdef Place start = <Place> PyBytes_AS_STRING(data)
        cdef Answered found
        cdef Trip trip
        cdef long long number = 0
        cdef Py_ssize_t n
        if not read_answer(start + at, start + stop, &found) or found.id.size > 18:
            return False
        if (found.id.at[0] == 0x30 and found.id.size > 1) or memchr(found.result.at, 0x0D, found.result.size) != NULL:
            return False
        for n in range(found.id.size):
            number = number * 10 + found.id.at[n] - 0x30
        trip = self.trips.get(number)
        if trip is None or trip.over or (trip.track is not self.sure and not holds(trip.track.of_answer)):
            return False
        self.sure = trip.track
        if trip.connection not in self.ports:
            self.ports.append(trip.connection)
        trip.tracks.finish(trip, found.failed, data, found.result.at - start, found.result.size)
        return True


def give(PipePort port not None, list answers not None):
    """Lets answers go at once, each an id and a line (for tests)."""
    cdef bytes id, line
    for id, line in answers:
        port.give(id, line)
    port.leave_lines()
