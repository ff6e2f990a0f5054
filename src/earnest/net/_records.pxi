# Receipts as bytes: numbers, times and digests as text, and the chain that records stand in.

cdef extern from *:
    """
    #ifdef TRACKS_LIBCRYPTO
    #define OPENSSL_SUPPRESS_DEPRECATED
    #include <openssl/sha.h>
    /* As hashlib does, without the objects around it. */
    static int sha256_at_once(const char *data, Py_ssize_t size, unsigned char *found) {
        SHA256_CTX state;
        return SHA256_Init(&state) && SHA256_Update(&state, data, (size_t)size) && SHA256_Final(found, &state);
    }
    #else
    static int sha256_at_once(const char *data, Py_ssize_t size, unsigned char *found) { return 0; }
    #endif
    """
    int sha256_at_once(const char* data, Py_ssize_t size, unsigned char* found) nogil


cdef extern from *:
    """
    #include <unistd.h>
    /* All of it at the end of a file, or nothing of it; where half of it may stand there, the next one is told. */
    static int append_to(int fd, const char *data, size_t size, long long before) {
        ssize_t count = write(fd, data, size);
        if (count == (ssize_t)size) return 0;
        return count > 0 && ftruncate(fd, before) ? -2 : -1;
    }
    """
    int append_to(int fd, const char* data, size_t size, long long before) nogil


cdef bytes whole(unsigned long long number):
    cdef char text[24]
    cdef int at = 24
    while True:
        at -= 1
        text[at] = 0x30 + number % 10
        number //= 10
        if number == 0:
            return PyBytes_FromStringAndSize(text + at, 24 - at)


cdef bytes decimal(double value, int places):
    """A number that is not negative as JSON, with so many places behind the point."""
    cdef char text[32]
    cdef unsigned long long number = <unsigned long long> (value * (1000000 if places == 6 else 1000) + 0.5)
    cdef int at = 32
    while number or at > 30 - places:
        at -= 1
        if at == 31 - places:
            text[at] = 0x2E
        else:
            text[at] = 0x30 + number % 10
            number //= 10
    return PyBytes_FromStringAndSize(text + at, 32 - at)


cdef inline bytes piece(Place at, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char*> at, size)


cdef bytes digest(bytes data, Py_ssize_t at=0, Py_ssize_t size=-1):
    """SHA-256 of a part in hexadecimal digits."""
    cdef unsigned char found[32]
    cdef bytes text
    cdef char* out
    cdef int n
    if size < 0:
        size = len(data)
    if not sha256_at_once(PyBytes_AS_STRING(data) + at, size, found):
        return sha256(memoryview(data)[at : at + size]).hexdigest().encode()
    text = PyBytes_FromStringAndSize(NULL, 64)
    out = PyBytes_AS_STRING(text)
    for n in range(32):
        out[2 * n] = DIGITS[found[n] >> 4]
        out[2 * n + 1] = DIGITS[found[n] & 15]
    return text


@cython.final
cdef class Chain:
    """As `core.receipt.Chain`."""
    cdef readonly bytes name
    cdef public long long seq
    cdef public bytes head
    cdef readonly list held
    cdef public long long held_bytes
    cdef public long long size
    cdef long long most, until
    cdef int fd

    def __init__(self, str writer not None):
        self.name = writer.encode()
        self.head = digest(b"earnest receipts 1 " + self.name)
        self.held = []
        self.fd = -1

    def lend(self, int fd, long long size, long long most, long long until):
        """What is held may be written here, to a file of this size, while that is less than `most` and the chain is no longer
        than `until`; not from now on where `fd` is -1."""
        self.fd, self.size, self.most, self.until = fd, size, most, until

    cdef bint flush(self) except -1:
        """Write what is held; whether that is done."""
        cdef bytes data
        cdef int left
        if self.fd < 0 or self.size >= self.most or self.seq >= self.until:
            return False
        if not self.held:
            return True
        self.held.append(b"")
        data = b"\n".join(self.held)
        self.held.pop()
        left = append_to(self.fd, PyBytes_AS_STRING(data), len(data), self.size)
        if left < 0:
            if left == -2:
                self.size = self.most  # then at least what comes next goes into a file of its own
            return False
        self.size += len(data)
        self.held.clear()
        self.held_bytes = 0
        return True

    cpdef long long append(self, bytes record) except -1:
        """Put an encoded record into the chain; returns its number."""
        cdef long long seq = self.seq + 1
        cdef bytes number = whole(seq)
        cdef bytes line = b"".join(
            (b'{"seq":', number, b',"id":"', self.name, b".", number, b'","prev":"', self.head, b'","record":', record, b"}")
        )
        self.head = digest(line)
        self.seq = seq
        self.held.append(line)
        self.held_bytes += len(line)
        return seq
