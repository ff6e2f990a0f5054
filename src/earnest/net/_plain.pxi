# What a plain call and a plain result are.

cdef enum:
    LONGEST_ID = 100
    OPEN = 4            # members of a `_meta` whose values may differ

cdef struct Called:
    Span name, arguments, meta, token
    Span open[OPEN]     # values in `_meta` that differ from call to call and change nothing but themselves
    int opened


cdef Place read_params(Place at, Place end, Called* called) noexcept nogil:
    """Behind the params of a plain call: its name, its arguments (an object) and perhaps its `_meta`, each once and nothing else."""
    cdef Place begin
    cdef Span key
    cdef bint more = True
    called.name.at = called.arguments.at = called.meta.at = called.token.at = NULL
    called.meta.size = called.token.size = 0
    called.opened = 0
    if at >= end or at[0] != 0x7B:
        return NULL
    at = space(at + 1, end)
    while more:
        begin = at = member(at, end, &key)
        if at == NULL:
            return NULL
        if named(key, b"_meta", 5) and called.meta.at == NULL:
            at = read_meta(at, end, called)
            called.meta.at, called.meta.size = begin, at - begin
        else:
            at = value(at, end, DEPTH)
            if named(key, b"name", 4) and called.name.at == NULL:
                called.name.at, called.name.size = begin, at - begin
            elif named(key, b"arguments", 9) and called.arguments.at == NULL and begin < end and begin[0] == 0x7B:
                called.arguments.at, called.arguments.size = begin, at - begin
            else:
                return NULL
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return NULL
    if called.name.at == NULL or called.arguments.at == NULL:
        return NULL
    return at if (at - 1)[0] == 0x7D else NULL


cdef Place read_meta(Place at, Place end, Called* called) noexcept nogil:
    """Behind a `_meta`, an object: notes the progress token, and the values of a trace (W3C Trace Context, W3C Baggage), in which
    calls alike may differ."""
    cdef Place begin
    cdef Span key
    cdef bint more = True, plain = True, token
    if at >= end or at[0] != 0x7B:
        return NULL
    at = space(at + 1, end)
    if at < end and at[0] == 0x7D:
        return at + 1
    while more:
        begin = at = member(at, end, &key)
        if at == NULL:
            return NULL
        at = value(at, end, DEPTH)
        if at == NULL:
            return NULL
        token = called.token.at == NULL and named(key, b"progressToken", 13) and (begin[0] == 0x22 or 0x30 <= begin[0] <= 0x39)
        if token:
            called.token.at, called.token.size = begin, at - begin
        if called.opened < OPEN and (token or (begin[0] == 0x22 and (
            named(key, b"traceparent", 11) or named(key, b"tracestate", 10) or named(key, b"baggage", 7)
        ))):
            called.open[called.opened].at, called.open[called.opened].size = begin, at - begin
            called.opened += 1
        at = following(at, end, &more)
        if at == NULL:
            return NULL
    return at if (at - 1)[0] == 0x7D else NULL


cdef struct Call:
    Span id, params
    Called called


cdef bint read_call(Place at, Place end, Call* call) noexcept nogil:
    """Whether a plain call and nothing else stands here: its members, each once."""
    cdef Place begin
    cdef Span key
    cdef bint more = True, plain, method = False, version = False
    call.id.at = call.params.at = NULL
    at = space(at, end)
    if at >= end or at[0] != 0x7B:
        return False
    at = space(at + 1, end)
    while more:
        begin = at = member(at, end, &key)
        if at == NULL:
            return False
        if named(key, b"id", 2) and call.id.at == NULL:
            plain = True
            at = string(at, end, &plain) if at < end and at[0] == 0x22 else digits(at, end)
            if at == NULL or not plain or at - begin > LONGEST_ID or (begin[0] == 0x30 and at - begin > 1):
                return False
            call.id.at, call.id.size = begin, at - begin
        elif named(key, b"method", 6) and not method:
            at = word(at, end, b'"tools/call"', 12)
            method = True
        elif named(key, b"params", 6) and call.params.at == NULL:
            at = read_params(at, end, &call.called)
            call.params.at, call.params.size = begin, at - begin
        elif named(key, b"jsonrpc", 7) and not version:
            at = word(at, end, b'"2.0"', 5)
            version = True
        else:
            return False
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return False
    return (at - 1)[0] == 0x7D and space(at, end) == end and call.id.at != NULL and call.params.at != NULL and method and version


cdef bytes known_by(Called* called):
    """What tracks are found by: a name and its `_meta` as they stand, without the values that may differ."""
    cdef Py_ssize_t size = called.name.size + called.meta.size
    cdef Place at = called.meta.at
    cdef bytes found
    cdef unsigned char* out
    cdef int n
    for n in range(called.opened):
        size -= called.open[n].size
    found = PyBytes_FromStringAndSize(NULL, size)
    out = <unsigned char*> PyBytes_AS_STRING(found)
    put(&out, called.name.at, called.name.size)
    if at == NULL:
        return found
    for n in range(called.opened):
        put(&out, at, called.open[n].at - at)
        at = called.open[n].at + called.open[n].size
    put(&out, at, called.meta.at + called.meta.size - at)
    return found


def call_key(bytes params not None):
    """What the track of a plain call with these params is found by; None for params that are not plain."""
    cdef Called called
    cdef Place at = <Place> PyBytes_AS_STRING(params)
    return known_by(&called) if read_params(at, at + len(params), &called) == at + len(params) else None


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


cdef struct Answered:
    Span id, result
    bint failed


cdef bint read_answer(Place at, Place end, Answered* found) noexcept nogil:
    """Whether an answer and nothing else stands here: a number for its id, and a plain result."""
    cdef Place begin
    cdef Span key
    cdef bint more = True, version = False
    found.id.at = found.result.at = NULL
    found.failed = False
    at = space(at, end)
    if at >= end or at[0] != 0x7B:
        return False
    at = space(at + 1, end)
    while more:
        begin = at = member(at, end, &key)
        if at == NULL:
            return False
        if named(key, b"id", 2) and found.id.at == NULL:
            at = digits(at, end)
            found.id.at, found.id.size = begin, at - begin
        elif named(key, b"result", 6) and found.result.at == NULL:
            at = plain_result(at, end, &found.failed)
            found.result.at, found.result.size = begin, at - begin
        elif named(key, b"jsonrpc", 7) and not version:
            at = word(at, end, b'"2.0"', 5)
            version = True
        else:
            return False
        if at != NULL:
            at = following(at, end, &more)
        if at == NULL:
            return False
    return (at - 1)[0] == 0x7D and space(at, end) == end and found.id.at != NULL and found.result.at != NULL and version


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


def call(bytes line not None):
    """Id, params, arguments and progress token (empty for none) of a plain call; None for anything else."""
    cdef Call found
    cdef Place at = <Place> PyBytes_AS_STRING(line)
    if not read_call(at, at + len(line), &found):
        return None
    return (
        piece(found.id.at, found.id.size), piece(found.params.at, found.params.size),
        piece(found.called.arguments.at, found.called.arguments.size), piece(found.called.token.at, found.called.token.size),
    )


def answer(bytes line not None):
    """Id and result of a plain answer, and whether it is an error's; None for anything else."""
    cdef Answered found
    cdef Place at = <Place> PyBytes_AS_STRING(line)
    if not read_answer(at, at + len(line), &found):
        return None
    return piece(found.id.at, found.id.size), piece(found.result.at, found.result.size), bool(found.failed)


def plain(bytes result not None):
    """Whether a plain result is an error; None for a result that is not plain."""
    cdef Place at = <Place> PyBytes_AS_STRING(result)
    cdef bint failed = False
    return bool(failed) if plain_result(at, at + len(result), &failed) == at + len(result) else None
