# JSON as it stands in a buffer: where a value ends, whether it is well formed, what its canonical form is.
#
# Each function takes where it begins and where the buffer ends, and returns where what it read ends, or NULL for what is not
# well formed or not plain enough to be read here. NULL never means "refused": the caller then takes the long way, in which
# alone messages are refused. So what is accepted here must be accepted there, with the same reading; the reverse need not hold.
# Nothing is read at or beyond `end`.

from libc.string cimport memcmp, memcpy

ctypedef const unsigned char* Place

cdef enum:
    DEPTH = 48          # how deeply values may nest here
    MEMBERS = 32        # members of one object whose canonical form is made here

cdef struct Span:
    Place at
    Py_ssize_t size

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif
    /* Behind what neither ends a string nor wants a look in it, sixteen or eight bytes at a time; none behind `end` is read. */
    static inline const unsigned char *unremarkable(const unsigned char *at, const unsigned char *end) {
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\\\'), space = _mm_set1_epi8(0x20);
        while (end - at >= 16) {
            __m128i some = _mm_loadu_si128((const __m128i *)at);
            /* As signed bytes, those beyond ASCII are less than a space too. */
            __m128i odd = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(some, quote), _mm_cmpeq_epi8(some, slash)),
                                       _mm_cmplt_epi8(some, space));
            int found = _mm_movemask_epi8(odd);
            if (found) return at + __builtin_ctz((unsigned)found);
            at += 16;
        }
    #else
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        while (end - at >= 8) {
            uint64_t word, quote, slash;
            memcpy(&word, at, 8);
            quote = word ^ (ones * 0x22);
            slash = word ^ (ones * 0x5C);
            if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word) | word) & tops) break;
            at += 8;
        }
    #endif
        while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\\\') at++;
        return at;
    }
    """
    Place unremarkable(Place at, Place end) noexcept nogil


cdef inline Place space(Place at, Place end) noexcept nogil:
    while at < end and (at[0] == 0x20 or at[0] == 0x0A or at[0] == 0x0D or at[0] == 0x09):
        at += 1
    return at


cdef inline int hexadecimal(unsigned char c) noexcept nogil:
    if 0x30 <= c <= 0x39:
        return c - 0x30
    c |= 0x20
    return c - 0x57 if 0x61 <= c <= 0x66 else -1


cdef int code_unit(Place at, Place end) noexcept nogil:
    """The four hexadecimal digits at a place, or -1."""
    cdef int value = 0, digit, n
    if end - at < 4:
        return -1
    for n in range(4):
        digit = hexadecimal(at[n])
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


cdef Place escape(Place at, Place end) noexcept nogil:
    """Behind an escape; halves of surrogate pairs are none (RFC 8259, section 8.2)."""
    cdef int unit
    if end - at < 2:
        return NULL
    if at[1] != 0x75:  # u
        return at + 2 if at[1] in (0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74) else NULL
    unit = code_unit(at + 2, end)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return NULL
    at += 6
    if unit < 0xD800 or unit > 0xDBFF:
        return at
    if end - at < 6 or at[0] != 0x5C or at[1] != 0x75:
        return NULL
    unit = code_unit(at + 2, end)
    return at + 6 if 0xDC00 <= unit <= 0xDFFF else NULL


cdef Place beyond_ascii(Place at, Place end) noexcept nogil:
    """Behind one character of UTF-8 (RFC 3629, section 4)."""
    cdef unsigned char first = at[0], second
    cdef int more, n
    if first < 0xC2 or first > 0xF4:
        return NULL
    more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    if end - at <= more:
        return NULL
    second = at[1]
    if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
        return NULL
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return NULL
    for n in range(1, more + 1):
        if (at[n] & 0xC0) != 0x80:
            return NULL
    return at + more + 1


cdef Place string(Place at, Place end, bint* plain) noexcept nogil:
    """Behind a string. `plain` is taken away where it has escapes or is not ASCII."""
    if at >= end or at[0] != 0x22:
        return NULL
    at += 1
    while at != NULL and at < end:
        at = unremarkable(at, end)
        if at == end:
            break
        if at[0] == 0x22:
            return at + 1
        if at[0] == 0x5C:
            plain[0] = False
            at = escape(at, end)
        elif at[0] >= 0x80:
            plain[0] = False
            at = beyond_ascii(at, end)
        elif at[0] < 0x20:
            return NULL
        else:
            at += 1
    return NULL


cdef inline Place digits(Place at, Place end) noexcept nogil:
    """Behind one digit or more."""
    if at >= end or at[0] < 0x30 or at[0] > 0x39:
        return NULL
    while at < end and 0x30 <= at[0] <= 0x39:
        at += 1
    return at


cdef Place number(Place at, Place end) noexcept nogil:
    """Behind a number (RFC 8259, section 6)."""
    if at < end and at[0] == 0x2D:
        at += 1
    if at < end and at[0] == 0x30:
        at += 1
    else:
        at = digits(at, end)
    if at != NULL and at < end and at[0] == 0x2E:
        at = digits(at + 1, end)
    if at != NULL and at < end and (at[0] | 0x20) == 0x65:
        at += 1
        if at < end and (at[0] == 0x2B or at[0] == 0x2D):
            at += 1
        at = digits(at, end)
    return at


cdef inline Place word(Place at, Place end, const char* text, Py_ssize_t size) noexcept nogil:
    return at + size if end - at >= size and memcmp(at, text, size) == 0 else NULL


cdef Place value(Place at, Place end, int depth) noexcept nogil:
    """Behind any value; `depth` levels may open in it."""
    cdef bint plain = True, keyed
    cdef unsigned char closing
    if at >= end:
        return NULL
    if at[0] == 0x22:
        return string(at, end, &plain)
    if at[0] == 0x74:
        return word(at, end, b"true", 4)
    if at[0] == 0x66:
        return word(at, end, b"false", 5)
    if at[0] == 0x6E:
        return word(at, end, b"null", 4)
    if at[0] != 0x7B and at[0] != 0x5B:
        return number(at, end)
    if depth <= 0:
        return NULL
    keyed = at[0] == 0x7B
    closing = 0x7D if keyed else 0x5D
    at = space(at + 1, end)
    if at < end and at[0] == closing:
        return at + 1
    while True:
        if keyed:
            at = string(at, end, &plain)
            if at == NULL:
                return NULL
            at = space(at, end)
            if at >= end or at[0] != 0x3A:
                return NULL
            at = space(at + 1, end)
        at = value(at, end, depth - 1)
        if at == NULL:
            return NULL
        at = space(at, end)
        if at >= end:
            return NULL
        if at[0] == closing:
            return at + 1
        if at[0] != 0x2C:
            return NULL
        at = space(at + 1, end)


cdef Place member(Place at, Place end, Span* key) noexcept nogil:
    """Behind the colon of a member, with its key between the quotes; a key with escapes or beyond ASCII is not plain enough."""
    cdef bint plain = True
    key.at = at + 1
    at = string(at, end, &plain)
    if at == NULL or not plain:
        return NULL
    key.size = at - key.at - 1
    at = space(at, end)
    return space(at + 1, end) if at < end and at[0] == 0x3A else NULL


cdef inline bint named(Span key, const char* name, Py_ssize_t size) noexcept nogil:
    return key.size == size and memcmp(key.at, name, size) == 0


cdef Place following(Place at, Place end, bint* more) noexcept nogil:
    """At the next member or element (`more`), or behind the end of what holds them."""
    at = space(at, end)
    if at >= end:
        return NULL
    more[0] = at[0] == 0x2C
    if more[0]:
        return space(at + 1, end)
    return at + 1 if at[0] == 0x7D or at[0] == 0x5D else NULL


cdef int order(Span a, Span b) noexcept nogil:
    """How two keys sort, as bytes: which is by UTF-16 code units too, since they are ASCII (RFC 8785, 3.2.3)."""
    cdef int found = memcmp(a.at, b.at, min(a.size, b.size))
    return found if found else (a.size > b.size) - (a.size < b.size)


cdef bint alike(Span a, Span b) noexcept nogil:
    """Whether two keys are one to a reader that folds case."""
    cdef Py_ssize_t n
    cdef unsigned char c, d
    if a.size != b.size:
        return False
    for n in range(a.size):
        c = a.at[n]
        d = b.at[n]
        if 0x41 <= c <= 0x5A:
            c |= 0x20
        if 0x41 <= d <= 0x5A:
            d |= 0x20
        if c != d:
            return False
    return True


cdef inline void put(unsigned char** out, Place at, Py_ssize_t size) noexcept nogil:
    memcpy(out[0], at, size)
    out[0] += size


cdef inline void mark(unsigned char** out, unsigned char c) noexcept nogil:
    out[0][0] = c
    out[0] += 1


cdef Place canonical(Place at, Place end, int depth, unsigned char** out) noexcept nogil:
    """Behind a value, whose canonical form (`core.canonical`) is put out: never longer than the value itself."""
    cdef Span keys[MEMBERS]
    cdef Span values[MEMBERS]  # without a size where there is more to do than to copy it
    cdef Span key, found
    cdef Place start = at
    cdef bint more = True, plain = True
    cdef int count = 0, n, place
    if at >= end:
        return NULL
    if at[0] == 0x22:
        at = string(at, end, &plain)
        # An escape may have a shorter spelling.
        if at == NULL or (not plain and escaped(start, at)):
            return NULL
        put(out, start, at - start)
        return at
    if at[0] != 0x7B and at[0] != 0x5B:
        at = value(at, end, 0)
        if at != NULL:
            put(out, start, at - start)
        return at
    if depth <= 0:
        return NULL
    put(out, start, 1)
    at = space(at + 1, end)
    if at < end and (at[0] == 0x7D or at[0] == 0x5D):
        if at[0] != start[0] + 2:
            return NULL
        put(out, at, 1)
        return at + 1
    if start[0] == 0x5B:
        while more:
            at = canonical(at, end, depth - 1, out)
            if at != NULL:
                at = following(at, end, &more)
            if at == NULL:
                return NULL
            mark(out, 0x2C if more else 0x5D)
        return at if (at - 1)[0] == 0x5D else NULL
    while more:
        if count == MEMBERS:
            return NULL
        at = member(at, end, &key)
        if at == NULL:
            return NULL
        found.at = at
        found.size = 0
        if at < end and at[0] == 0x22:
            plain = True
            at = string(at, end, &plain)
            if plain:
                found.size = at - found.at
        else:
            at = value(at, end, depth - 1)
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return NULL
        place = count
        for n in range(count):
            if alike(keys[n], key):
                return NULL
        while place > 0 and order(key, keys[place - 1]) < 0:
            keys[place] = keys[place - 1]
            values[place] = values[place - 1]
            place -= 1
        keys[place] = key
        values[place] = found
        count += 1
    if (at - 1)[0] != 0x7D:
        return NULL
    for n in range(count):
        put(out, keys[n].at - 1, keys[n].size + 2)
        mark(out, 0x3A)
        if values[n].size:
            put(out, values[n].at, values[n].size)
        elif canonical(values[n].at, end, depth - 1, out) == NULL:
            return NULL
        mark(out, 0x2C if n + 1 < count else 0x7D)
    return at


cdef inline bint escaped(Place at, Place end) noexcept nogil:
    while at < end:
        if at[0] == 0x5C:
            return True
        at += 1
    return False


cdef inline bint of_a_word(unsigned char c) noexcept nogil:
    return 0x30 <= c <= 0x39 or 0x41 <= c <= 0x5A or 0x61 <= c <= 0x7A or c == 0x5F


cdef bint may_reach(Place at, Place end) noexcept nogil:
    """Whether arguments can hold what `pdp.floor` looks for. Says yes more often than `_REACHES` there, never less often."""
    cdef unsigned char c
    cdef Place ahead
    cdef int n
    while at < end:
        c = at[0]
        at += 1
        if c in (0x2F, 0x5C, 0x7E, 0x25, 0x24, 0x2A):  # / \ ~ % $ *
            return True
        if c == 0x2E:  # a suffix, or a string of dots alone
            if at < end and ((at[0] | 0x20) in (0x6A, 0x74, 0x63, 0x76, 0x67, 0x6C) or at[0] == 0x22 or at[0] == 0x2E):
                return True
        elif (c | 0x20) == 0x68:  # hooks
            if end - at >= 4 and (at[0] | 0x20) == 0x6F and (at[1] | 0x20) == 0x6F and (at[2] | 0x20) == 0x6B:
                return True
        elif (c | 0x20) == 0x65:  # e, a, r, n, whatever stands between
            ahead = at
            for n in range(3):
                while ahead < end and not of_a_word(ahead[0]):
                    ahead += 1
                if ahead >= end or (ahead[0] | 0x20) != (0x61 if n == 0 else 0x72 if n == 1 else 0x6E):
                    break
                ahead += 1
            else:
                return True
    return False
