# Heads of HTTP messages that differ in the length of their bodies alone.

cdef Py_ssize_t length_at(Place at, Py_ssize_t size, long long* length, Py_ssize_t* digit_count) noexcept nogil:
    """Where the digits of a head's Content-Length stand, in its two usual spellings; -1 for none."""
    cdef const void* found = memmem(at, size, <const char*> b"\r\nContent-Length: ", 18)
    cdef Place digit
    cdef Place end = at + size
    if found == NULL:
        found = memmem(at, size, <const char*> b"\r\ncontent-length: ", 18)
    if found == NULL:
        return -1
    digit = <Place> found + 18
    length[0] = 0
    digit_count[0] = 0
    while digit < end and 0x30 <= digit[0] <= 0x39 and digit_count[0] < 9:
        length[0] = length[0] * 10 + digit[0] - 0x30
        digit_count[0] += 1
        digit += 1
    if digit_count[0] == 0 or digit == end or digit[0] != 0x0D:
        return -1
    return digit - digit_count[0] - at


cdef bytes without_length(Place at, Py_ssize_t size, Py_ssize_t digits_at, Py_ssize_t digit_count):
    cdef bytes found = PyBytes_FromStringAndSize(NULL, size - digit_count)
    cdef char* out = PyBytes_AS_STRING(found)
    memcpy(out, at, digits_at)
    memcpy(out + digits_at, at + digits_at + digit_count, size - digits_at - digit_count)
    return found


def shape(bytes head):
    """A head without the digits of its Content-Length, or None where those are not found: heads of one shape differ in nothing
    but how long their bodies are."""
    cdef long long length = 0
    cdef Py_ssize_t count = 0
    cdef Place at = <Place> PyBytes_AS_STRING(head)
    cdef Py_ssize_t found = length_at(at, len(head), &length, &count)
    return None if found < 0 or len(head) > LONGEST_HEAD else without_length(at, len(head), found, count)


cdef bytes split(bytes data, Py_ssize_t* body, long long* length):
    """The shape of the head at the beginning of `data`, where its body begins and how long that is; None for what is no such
    head."""
    cdef Place at = <Place> PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = len(data), digits_at, count = 0
    cdef const void* end = memmem(at, size if size < LONGEST_HEAD else LONGEST_HEAD, <const char*> b"\r\n\r\n", 4)
    if end == NULL:
        return None
    body[0] = <Place> end - at + 4
    digits_at = length_at(at, body[0], length, &count)
    return None if digits_at < 0 else without_length(at, body[0], digits_at, count)
