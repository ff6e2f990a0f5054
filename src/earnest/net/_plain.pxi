# What a plain call and a plain result are.

cdef struct Called:
    Span name, arguments, meta


cdef Place read_params(Place at, Place end, Called* called) noexcept nogil:
    """Behind the params of a plain call: its name, its arguments (an object) and its `_meta`, each once and nothing else."""
    cdef Place begin
    cdef Span key
    cdef bint more = True
    called.name.at = called.arguments.at = called.meta.at = NULL
    if at >= end or at[0] != 0x7B:
        return NULL
    at = space(at + 1, end)
    while more:
        begin = at = member(at, end, &key)
        if at == NULL:
            return NULL
        at = value(at, end, DEPTH)
        if named(key, b"name", 4) and called.name.at == NULL:
            called.name.at, called.name.size = begin, at - begin
        elif named(key, b"arguments", 9) and called.arguments.at == NULL and begin < end and begin[0] == 0x7B:
            called.arguments.at, called.arguments.size = begin, at - begin
        elif named(key, b"_meta", 5) and called.meta.at == NULL:
            called.meta.at, called.meta.size = begin, at - begin
        else:
            return NULL
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return NULL
    if called.name.at == NULL or called.arguments.at == NULL or called.meta.at == NULL:
        return NULL
    return at if (at - 1)[0] == 0x7D else NULL


cdef Place plain_result(Place at, Place end, bint* failed) noexcept nogil:
    """Behind a result that is complete, of text and nothing else, and says nothing of labels, tasks or input."""
    cdef Span key
    cdef bint more = True, content = False, error = False, type = False, structured = False
    if at >= end or at[0] != 0x7B:
        return NULL
    at = space(at + 1, end)
    while more:
        at = member(at, end, &key)
        if at == NULL:
            return NULL
        if named(key, b"content", 7) and not content:
            content = True
            at = texts(at, end)
        elif named(key, b"isError", 7) and not error:
            error = True
            failed[0] = at < end and at[0] == 0x74
            at = word(at, end, b"true", 4) if failed[0] else word(at, end, b"false", 5)
        elif named(key, b"resultType", 10) and not type:
            type = True
            at = word(at, end, b'"complete"', 10)
        elif named(key, b"structuredContent", 17) and not structured:
            structured = True
            at = value(at, end, DEPTH)
        else:
            return NULL
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return NULL
    return at if (at - 1)[0] == 0x7D and content else NULL


cdef Place texts(Place at, Place end) noexcept nogil:
    """Behind a list of blocks of text without labels."""
    cdef Span key
    cdef bint another = True, more, plain = True
    if at >= end or at[0] != 0x5B:
        return NULL
    at = space(at + 1, end)
    if at < end and at[0] == 0x5D:
        return at + 1
    while another:
        if at >= end or at[0] != 0x7B:
            return NULL
        at = space(at + 1, end)
        more = True
        while more:
            at = member(at, end, &key)
            if at == NULL:
                return NULL
            if named(key, b"type", 4):
                at = word(at, end, b'"text"', 6)
            elif named(key, b"text", 4):
                at = string(at, end, &plain)
            else:
                return NULL
            if at != NULL:
                at = following(at, end, &more)
            if at == NULL:
                return NULL
        if (at - 1)[0] != 0x7D:
            return NULL
        at = following(at, end, &another)
        if at == NULL:
            return NULL
    return at if (at - 1)[0] == 0x5D else NULL


# for tests: what is read here is read as the long way reads it

def canonical_form(bytes raw not None):
    """The canonical form of one JSON text, or None."""
    cdef Place at = <Place> PyBytes_AS_STRING(raw)
    cdef bytes form = PyBytes_FromStringAndSize(NULL, len(raw))
    cdef unsigned char* out = <unsigned char*> PyBytes_AS_STRING(form)
    if canonical(at, at + len(raw), DEPTH, &out) != at + len(raw):
        return None
    return form[: out - <unsigned char*> PyBytes_AS_STRING(form)]


def reaches(bytes arguments not None):
    """Whether the floor has to look at arguments."""
    cdef Place at = <Place> PyBytes_AS_STRING(arguments)
    return may_reach(at, at + len(arguments))


def plain(bytes result not None):
    """Whether a plain result is an error; None for a result that is not plain."""
    cdef Place at = <Place> PyBytes_AS_STRING(result)
    cdef bint failed = False
    return bool(failed) if plain_result(at, at + len(result), &failed) == at + len(result) else None
