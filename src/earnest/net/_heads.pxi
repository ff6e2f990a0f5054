# Heads of HTTP messages that differ in nothing that matters: the length of their bodies, and the time of day.

cdef Py_ssize_t behind(Place at, Py_ssize_t size, const char* one, const char* other, Py_ssize_t length) noexcept nogil:
    """Where the value of a field begins, given in its two usual spellings; -1 for none."""
    cdef const void* found = memmem(at, size, one, length)
    if found == NULL:
        found = memmem(at, size, other, length)
    return -1 if found == NULL else <Place> found - at + length


cdef bint a_date(Place at, Place end) noexcept nogil:
    """Whether 29 visible characters and the end of the line stand here."""
    cdef int n
    if end - at < 31 or at[29] != 0x0D or at[30] != 0x0A:
        return False
    for n in range(29):
        if at[n] < 0x20 or at[n] > 0x7E:
            return False
    return True


cdef bytes key(Place at, Py_ssize_t size, long long* length):
    """A head without the digits of its Content-Length and the 29 characters of its Date (RFC 9110, 5.6.7). `length`: what it
    says, -1 where that cannot be told."""
    cdef Py_ssize_t digits_at = behind(at, size, b"\r\nContent-Length: ", b"\r\ncontent-length: ", 18)
    cdef Py_ssize_t date_at = behind(at, size, b"\r\nDate: ", b"\r\ndate: ", 8)
    cdef Py_ssize_t digit = digits_at
    cdef Span first, second
    length[0] = -1
    if digits_at >= 0:
        length[0] = 0
        while digit < size and 0x30 <= at[digit] <= 0x39 and digit < digits_at + 9:
            length[0] = length[0] * 10 + at[digit] - 0x30
            digit += 1
        if digit == digits_at or digit == size or at[digit] != 0x0D:
            length[0] = -1
            digit = digits_at
    first.at, first.size = at + digits_at, digit - digits_at
    second.at, second.size = at + date_at, 29
    if digits_at < 0:
        first.at, first.size = at, 0
    if date_at < 0 or not a_date(at + date_at, at + size):
        second.at, second.size = first.at + first.size, 0
    if second.at < first.at:
        first, second = second, first
    return without(at, size, first, second)


cdef bytes without(Place at, Py_ssize_t size, Span first, Span second):
    """Bytes without two spans of them, the second behind the first."""
    cdef bytes found = PyBytes_FromStringAndSize(NULL, size - first.size - second.size)
    cdef unsigned char* out = <unsigned char*> PyBytes_AS_STRING(found)
    put(&out, at, first.at - at)
    put(&out, first.at + first.size, second.at - first.at - first.size)
    put(&out, second.at + second.size, at + size - second.at - second.size)
    return found


def shape(bytes head not None):
    """What heads have in common that differ in nothing that matters; None for one without a plain Content-Length."""
    cdef long long length = 0
    cdef bytes found
    if len(head) > LONGEST_HEAD:
        return None
    found = key(<Place> PyBytes_AS_STRING(head), len(head), &length)
    return found if length >= 0 else None


def stream_shape(bytes head not None):
    """The same for the head of a chunked answer; None for one that names a length."""
    cdef long long length = 0
    cdef bytes found
    if len(head) > LONGEST_HEAD or b"content-length" in head.lower():
        return None
    return key(<Place> PyBytes_AS_STRING(head), len(head), &length)


cdef bytes split(bytes data, Py_ssize_t* body, long long* length):
    """The shape of the head at the beginning of `data`, where its body begins and how long that is (-1: it does not say); None
    where there is no whole head."""
    cdef Place at = <Place> PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = len(data)
    cdef const void* end = memmem(at, size if size < LONGEST_HEAD else LONGEST_HEAD, <const char*> b"\r\n\r\n", 4)
    if end == NULL:
        return None
    body[0] = <Place> end - at + 4
    return key(at, body[0], length)


cdef Place line_end(Place at, Place end) noexcept nogil:
    """Behind the end of a line, which is here."""
    if at < end and at[0] == 0x0D:
        at += 1
    return at + 1 if at < end and at[0] == 0x0A else NULL


cdef Place event(Place at, Place end, Span* data, bint* whole) noexcept nogil:
    """Behind the first chunk of an event stream, if that is one event and no more: its data. `whole` is taken away where the
    chunk has not come in full."""
    cdef Py_ssize_t size = 0
    cdef Place begin = at, stop
    cdef int digit
    while at < end and at - begin < 7:
        digit = hexadecimal(at[0])
        if digit < 0:
            break
        size = size * 16 + digit
        at += 1
    if at == begin or size == 0 or at - begin > 6:
        whole[0] = at < end or at - begin > 6
        return NULL
    if end - at < size + 4:
        whole[0] = False
        return NULL
    if at[0] != 0x0D or at[1] != 0x0A or at[size + 2] != 0x0D or at[size + 3] != 0x0A:
        return NULL
    at += 2
    stop = at + size
    if stop - at > 14 and memcmp(at, b"event: message", 14) == 0:
        at = line_end(at + 14, stop)
    if at == NULL or stop - at < 6 or memcmp(at, b"data: ", 6):
        return NULL
    data.at = at + 6
    at = data.at
    while at < stop and at[0] != 0x0A and at[0] != 0x0D:
        at += 1
    data.size = at - data.at
    at = line_end(at, stop)
    if at != NULL:
        at = line_end(at, stop)
    return stop + 2 if at == stop else NULL
