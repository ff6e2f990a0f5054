"""The JSON-RPC envelope: read once, judged as read, written anew.

Theory. Two parsers must never read one message in two ways. So the envelope is not patched but written anew
from the members that were read; `params`, `result` and `error` stay raw slices and go on byte for byte.
Refused are: a byte order mark, invalid UTF-8, lone surrogates, batches, a member twice (also when the names
are equal after NFKC and case folding), an id that is neither string nor integer, and anything deeper or
larger than the limits. Members the envelope does not know are not passed on. `"params": null` is read as no
params at all; nothing here ever adds a `null`.

Duplicates cost nothing to find in the usual case: a message without white space between its members is
exactly as long as the members that were kept, so equal lengths leave no room for a member that was
overwritten or unknown. Any other message takes the slow path, which looks at every name.

Sources: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, "Messages" (id is never null, one message in one HTTP
body).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

import msgspec
from msgspec import Raw

from earnest.core.canonical import compact, members
from earnest.core.errors import EarnestError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

Kind = Literal["request", "notification", "response", "error"]

_LARGE: Final = 16 * 1024
MAX_ID_BYTES: Final = 1024
"""Longest id token accepted. Ids are echoed and kept in tables, so an unbounded one is a way to fill
memory."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds on one message. `max_bytes` counts the whole body; `max_depth` counts nested objects and
    arrays."""

    max_bytes: int = 4 * 1024 * 1024
    max_depth: int = 128


DEFAULT_LIMITS: Final = Limits()


class WireError(EarnestError):
    """A message that is refused. `rpc_code` is the JSON-RPC code to answer with, `id` the raw id token to
    answer to.

    `id` is `b""` where none could be read, which is answered with `"id": null` (JSON-RPC 2.0, section 5).
    `data` is raw JSON for the error's `data` member, `http_status` the status of an HTTP answer. `code` is
    earnest's own.
    """

    def __init__(
        self,
        rpc_code: int,
        message: str,
        id: bytes = b"",
        *,
        data: bytes = b"",
        http_status: int = 400,
        code: str = "E1310",
        remedy: str = "",
    ) -> None:
        super().__init__(code, message, remedy)
        self.rpc_code = rpc_code
        self.id = id
        self.data = data
        self.http_status = http_status

    def answer(self) -> bytes:
        """The JSON-RPC error message that tells the peer."""
        return error(self.id, self.rpc_code, self.message, self.data)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. `id` is the raw token (`b""` if none); `params`, `result` and `error` are raw JSON or
    `b""`."""

    kind: Kind
    id: bytes = b""
    method: str = ""
    params: bytes = b""
    result: bytes = b""
    error: bytes = b""


class _Wire(msgspec.Struct, gc=False):
    jsonrpc: Raw = Raw()
    id: Raw = Raw()
    method: str = ""
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


_NAMES: Final = frozenset(_Wire.__struct_fields__)
_decode: Final = msgspec.json.Decoder(_Wire).decode
_encode: Final = msgspec.json.Encoder().encode

_INTEGER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)\Z")
_PLAIN_STRING: Final = re.compile(rb'"[^"\\]*"\Z')
_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NEAR: Final = 24
"""Bytes of a message that are quoted before what is wrong in it."""
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_NOT_MARKS: Final = bytes(set(range(256)) - set(b'[]{}"'))

# Lengths of a compact message: the name with its quotes and colon, and the comma before the next member.
_FRAME: Final = 1  # braces, less the comma that the last member does not have
_JSONRPC: Final = len('"jsonrpc":"2.0",')
_ID: Final = len('"id":,')
_METHOD: Final = len('"method":"",')
_PARAMS: Final = len('"params":,')
_RESULT: Final = len('"result":,')
_ERROR: Final = len('"error":,')
_JSON_METHOD: Final = '"method":,'
_REQUEST: Final = _FRAME + _JSONRPC + _ID + _METHOD + _PARAMS


def parse(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Message:
    """Read one message. Raises `WireError`, whose `id` is the message's own wherever it could be read."""
    if len(data) > limits.max_bytes:
        raise WireError(
            INVALID_REQUEST,
            f"message of {len(data)} bytes is larger than the limit of {limits.max_bytes}",
            http_status=413,
            code="E1706",
            remedy="Raise the body limit (`[limits] body_bytes`) if such messages are meant.",
        )
    if not data.isascii():
        _check_utf8(data)
    try:
        wire = _decode(data)
    except (msgspec.MsgspecError, RecursionError) as reason:
        raise _undecodable(data, reason, limits) from None
    if many_brackets(data, limits.max_depth) and depth_exceeds(data, limits.max_depth):
        raise _too_deep(limits)

    version, token = bytes(wire.jsonrpc), bytes(wire.id)
    method, params = wire.method, bytes(wire.params)
    if (
        _REQUEST + len(token) + len(method) + len(params) == len(data)
        and version == b'"2.0"'
        and params[:1] == b"{"
        and method
        and method.isascii()
        and token.isdigit()
        and token[0] != 0x30
        and len(token) <= MAX_ID_BYTES
    ):
        # Most messages: a request as clients write it. Equal lengths leave no room for anything else.
        return Message("request", token, method, params)
    if version != b'"2.0"':
        raise WireError(INVALID_REQUEST, 'member "jsonrpc" must be "2.0"', _echo(token))
    if token and not _INTEGER.match(token):
        token = _other_id(token, wire)
    elif len(token) > MAX_ID_BYTES:
        raise WireError(INVALID_REQUEST, f"id is longer than {MAX_ID_BYTES} bytes")

    length = _FRAME + _JSONRPC
    if token:
        length += _ID + len(token)
    if method:
        length += _METHOD + (len(method) if method.isascii() else len(method.encode()))
    if params:
        length += _PARAMS + len(params)
    result, failure = bytes(wire.result), bytes(wire.error)
    if result:
        length += _RESULT + len(result)
    if failure:
        length += _ERROR + len(failure)
    # An id `null` in an error response was read as none, which makes the length differ: such a message goes
    # slowly.
    if length != len(data) and not _is_spaced(data):
        _check_names(data, token)

    if method:
        if result or failure:
            raise WireError(INVALID_REQUEST, "a message is either a request or a response, not both", _echo(token))
        if params and params[0] != 0x7B:
            if params != b"null":
                raise WireError(INVALID_PARAMS, "params must be an object", _echo(token))
            params = b""
        return Message("request" if token else "notification", token, method, params)
    if params:
        raise WireError(INVALID_REQUEST, "params without a method", _echo(token))
    if failure:
        if result:
            raise WireError(INVALID_REQUEST, "a response has a result or an error, not both", _echo(token))
        if failure[0] != 0x7B:
            raise WireError(INVALID_REQUEST, "error must be an object", _echo(token))
        return Message("error", token, error=failure)
    if not result:
        raise WireError(INVALID_REQUEST, "message has neither method nor result nor error", _echo(token))
    if not token:
        raise WireError(INVALID_REQUEST, "a result needs an id")
    return Message("response", token, result=result)


def request(id: bytes, method: str, params: bytes = b"") -> bytes:
    """A request. `id` is a raw token; `params` raw JSON, left out where empty."""
    if params:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id, _encode(method), params)
    return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (id, _encode(method))


def notification(method: str, params: bytes = b"") -> bytes:
    """A notification; `params` is raw JSON, left out where empty."""
    if params:
        return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), params)
    return b'{"jsonrpc":"2.0","method":%b}' % _encode(method)


def result(id: bytes, raw: bytes) -> bytes:
    """A response that carries the raw JSON of a result."""
    return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"result":', raw, b"}"))  # formatting copies a large one twice


def error_object(code: int, message: str, data: bytes = b"") -> bytes:
    """The raw JSON of an `error` member; `data` is raw JSON, left out where empty."""
    if data:
        return b'{"code":%d,"message":%b,"data":%b}' % (code, _encode(message), data)
    return b'{"code":%d,"message":%b}' % (code, _encode(message))


def error(id: bytes, code: int, message: str, data: bytes = b"") -> bytes:
    """An error response. An empty `id` becomes `null`, which JSON-RPC wants where the id could not be
    read."""
    return error_raw(id, error_object(code, message, data))


def error_raw(id: bytes, raw: bytes) -> bytes:
    """An error response around the raw JSON of an `error` member, which goes on as it came."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id or b"null", raw)


def write(message: Message) -> bytes:
    """The message written anew: exactly the members that were read."""
    if message.kind == "request":
        return request(message.id, message.method, message.params)
    if message.kind == "notification":
        return notification(message.method, message.params)
    if message.kind == "response":
        return result(message.id, message.result)
    return error_raw(message.id, message.error)


class Failure(msgspec.Struct, frozen=True):
    """An `error` member as read. A malformed one has code `INTERNAL_ERROR` and no data."""

    code: int
    message: str
    data: bytes = b""


_MALFORMED: Final = "malformed error"


class _Failure(msgspec.Struct):
    code: int
    message: str = ""
    data: Raw = Raw()


def failure(raw: bytes) -> Failure:
    """Read the `error` member of an error response; never raises."""
    try:
        seen = msgspec.json.decode(raw, type=_Failure)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return Failure(INTERNAL_ERROR, _MALFORMED)
    return Failure(seen.code, seen.message, bytes(seen.data))


def whole_error(raw: bytes) -> bytes:
    """An `error` member as JSON-RPC wants it, with a code and a message: as it came where it has them, else written anew of
    what can be read of it. Clients that validate give up on less, and their call would hang."""
    seen = failure(raw)
    if seen.message and seen.message != _MALFORMED:
        return raw
    return error_object(seen.code, seen.message or "the server gave no reason", seen.data)


def one_line(data: bytes) -> bytes:
    """The same JSON without line breaks, as the stdio transport needs it.

    In JSON that was parsed a line break can only be white space (inside strings it must be escaped), so each
    becomes one space and no value changes.
    """
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def many_brackets(data: bytes, limit: int) -> bool:
    """Whether objects and arrays open more than `limit` times, so that they could nest as deeply. A large text is searched,
    which is fast where there are few of them; a small one is counted."""
    if len(data) < _LARGE:
        return data.count(b"{") + data.count(b"[") > limit
    for bracket in (b"{", b"["):
        at = data.find(bracket)
        while at >= 0:
            limit -= 1
            if limit < 0:
                return True
            at = data.find(bracket, at + 1)
    return False


def depth_exceeds(data: bytes, limit: int) -> bool:
    """Whether objects and arrays of valid JSON nest deeper than `limit`. Linear in the size, times at most
    `limit`."""
    if not many_brackets(data, limit):
        return False
    # Without escaped backslashes and then escaped quotes, every second piece between quotes stands outside
    # strings.
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    # All brackets become one kind, so that one round takes away exactly the innermost level.
    brackets = b"".join(bare.translate(_ONE_KIND, _NOT_MARKS).split(b'"')[::2])
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _echo(token: bytes) -> bytes:
    """The id to answer a refused message with: the token where it is one a peer may use, else none."""
    if len(token) <= MAX_ID_BYTES and (_INTEGER.match(token) or _PLAIN_STRING.match(token)):
        return token
    return b""


def _other_id(token: bytes, wire: _Wire) -> bytes:
    """An id that is not an integer: a string in one spelling, or none for the `null` of an error response."""
    if token[0] == 0x22 and len(token) <= MAX_ID_BYTES:
        if b"\\" not in token:
            return token
        try:
            # Escaped and plain spellings of one string are one id; tables compare tokens, so there is one
            # token.
            return _encode(msgspec.json.decode(token, type=str))
        except (msgspec.MsgspecError, UnicodeError):
            raise WireError(INVALID_REQUEST, "id holds an invalid escape") from None
    if token == b"null" and not wire.method and bytes(wire.error):
        return b""
    if token == b"null":
        raise WireError(INVALID_REQUEST, "id must not be null")
    if token[0] == 0x22:
        raise WireError(INVALID_REQUEST, f"id is longer than {MAX_ID_BYTES} bytes")
    raise WireError(INVALID_REQUEST, "id must be a string or an integer")


def _is_spaced(data: bytes) -> bool:
    """Whether white space is all that a message has beyond the members of the envelope, each once and in plain spelling."""
    plain = compact(data)
    wire = _decode(plain)
    length = _FRAME + (len(_JSON_METHOD) + len(_encode(wire.method)) if wire.method else 0)
    for raw, size in ((wire.jsonrpc, 11), (wire.id, 6), (wire.params, 10), (wire.result, 10), (wire.error, 9)):
        value = bytes(raw)
        length += size + len(value) if value else 0
    return length == len(plain)


def _check_utf8(data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as reason:
        raise WireError(PARSE_ERROR, f"not UTF-8 at byte {reason.start}") from None


def _check_names(data: bytes, token: bytes) -> None:
    """The slow path: every name of the envelope, exactly."""
    try:
        seen = members(data)
    except EarnestError as reason:
        code = PARSE_ERROR if reason.code == "E1301" else INVALID_REQUEST
        raise WireError(code, reason.message, _echo(token), code=reason.code) from None
    for name in seen:
        if name not in _NAMES and unicodedata.normalize("NFKC", name).casefold() in _NAMES:
            raise WireError(INVALID_REQUEST, f"member {name!r} can be mistaken for another", _echo(token))
    if seen.get("method") == b'""':
        raise WireError(INVALID_REQUEST, "method must not be empty", _echo(token))


def _too_deep(limits: Limits) -> WireError:
    return WireError(
        INVALID_REQUEST,
        f"message nests deeper than the limit of {limits.max_depth}",
        code="E1303",
        remedy="Raise the depth limit (`[limits] depth`) if such messages are meant.",
    )


def _undecodable(data: bytes, reason: Exception, limits: Limits) -> WireError:
    """Why a message that does not decode is refused."""
    start = data.lstrip(b" \t\r\n")[:1]
    if isinstance(reason, RecursionError):
        return _too_deep(limits)
    if start == b"[":
        return WireError(
            INVALID_REQUEST,
            "batches are not accepted: only MCP 2025-03-26 had them; send one message at a time",
        )
    if isinstance(reason, msgspec.ValidationError):
        what = "method must be a string" if start == b"{" else "a message must be an object"
        return WireError(INVALID_REQUEST, what)
    if b"\\u" in data and (half := _HALF.search(whole := _PAIR.sub(b"", data.replace(b"\\\\", b"")))):
        near = whole[max(0, half.start() - _NEAR) : half.end()].decode("utf-8", "replace")
        return WireError(PARSE_ERROR, f"not JSON: a lone surrogate (half of an escaped pair) is no character, in {near!r}")
    return WireError(PARSE_ERROR, f"not JSON: {reason}")
