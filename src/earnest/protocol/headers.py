"""The headers of the modern HTTP transport that repeat the body: checked on the way in, made anew on the way
out.

Theory. The body is the truth. `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` and, where a tool's schema
says so with `x-mcp-header`, `Mcp-Param-*` must repeat it, because something on the way may have routed or
decided by them; a mismatch is refused with -32020 and status 400. A header given twice is a mismatch: one
reader takes the first, another the last. `Mcp-Param-*` that no schema declares are none of our business and
go on as they came. After any rewrite (an alias in `name`) headers are generated from the new body, never
edited.

Sources: MCP 2026-07-28, "Streamable HTTP"; SEP-2663 for `tasks/*`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from earnest.core.canonical import members
from earnest.core.errors import EarnestError
from earnest.protocol.calls import text
from earnest.protocol.envelope import WireError
from earnest.protocol.methods import Method

HEADER_MISMATCH: Final = -32020

VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM_PREFIX: Final = "Mcp-Param-"
SCHEMA_KEY: Final = "x-mcp-header"
_ESCAPED_KEY: Final = re.compile("".join(rf"(?:{c}|\\u00{ord(c):02x})" for c in SCHEMA_KEY).encode(), re.IGNORECASE)

SAFE_INTEGER: Final = 2**53 - 1
"""Largest magnitude of an integer that may stand in a header; beyond it parsers disagree."""

_PREFIX: Final = PARAM_PREFIX.lower()
_SAFE: Final = re.compile(r"[\x20-\x7e]*\Z")
_BASE64: Final = re.compile(r"=\?base64\?(.*)\?=\Z", re.DOTALL)
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?\Z")
_TYPES: Final = frozenset(("string", "integer", "boolean"))

# Keywords of JSON Schema 2020-12 under which schemas stand, by the shape of their value. `properties` is
# apart: only it leads to arguments that can be found without evaluating the schema.
_ONE: Final = frozenset(
    (
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    )
)
_LIST: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
_MAP: Final = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))


class Declared(msgspec.Struct, frozen=True):
    """One `x-mcp-header`: the path of the argument, the token after `Mcp-Param-`, and the declared type."""

    path: tuple[str, ...]
    token: str
    type: str

    @property
    def header(self) -> str:
        """The whole header name."""
        return PARAM_PREFIX + self.token


def encode_value(value: str) -> str:
    """A value as it stands in a header: as it is where that is safe, else `=?base64?…?=` over UTF-8."""
    if _SAFE.match(value) and value == value.strip(" ") and not _BASE64.match(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def decode_value(value: str) -> str | None:
    """The value a header means; `None` for a base64 form that is malformed or not in its one canonical
    spelling."""
    found = _BASE64.match(value)
    if found is None:
        return value
    try:
        raw = base64.b64decode(found[1], validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == found[1] else None
    except (binascii.Error, ValueError):
        return None


def may_declare(definition: bytes) -> bool:
    """Whether a tool's definition can declare headers, however the word is spelled in it: JSON may write any letter as an
    escape (RFC 8259, section 7)."""
    return SCHEMA_KEY.encode() in definition or (b"\\u00" in definition and _ESCAPED_KEY.search(definition) is not None)


def declared(input_schema: bytes) -> tuple[Declared, ...]:
    """The headers that a tool's input schema declares.

    Raises `EarnestError` E1330 where a declaration breaks a rule; over HTTP such a tool must not be served.
    """
    try:
        schema: Any = msgspec.json.decode(input_schema)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as reason:
        raise EarnestError("E1330", f"input schema is not JSON: {reason}") from None
    found: dict[str, Declared] = {}
    for path, node in _schemas(schema):
        if SCHEMA_KEY not in node:
            continue
        token, kind = node[SCHEMA_KEY], node.get("type")
        where = ".".join(path) if path else "a schema that is no plain property"
        if not path:
            raise _bad(where, "arguments there cannot be found without evaluating the schema")
        if not isinstance(token, str) or not _TOKEN.match(token):
            raise _bad(where, "it must be a header token")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise _bad(where, "only string, integer and boolean properties may have one")
        if token.lower() in found:
            raise _bad(where, f"{token!r} is used twice")
        found[token.lower()] = Declared(path, token, kind)
    return tuple(found.values())


def _bad(where: str, why: str) -> EarnestError:
    return EarnestError(
        "E1330",
        f"{SCHEMA_KEY} on {where[:200]}: {why}",
        "The tool is left out over HTTP; its author has to correct the schema.",
    )


def _schemas(root: object) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every schema below `root` with its path through `properties`, `None` off that chain. References stay
    closed."""
    stack: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for key, value in node.items():
            if key == "properties" and isinstance(value, dict):
                for name, below in value.items():
                    stack.append((None if path is None else (*path, name), below))
            if key in _ONE:
                stack.append((None, value))
            if key in _LIST and isinstance(value, list):
                stack.extend((None, below) for below in value)
            if key in _MAP and isinstance(value, dict):
                stack.extend((None, below) for below in value.values())


class Lines(tuple[tuple[str, str], ...]):
    """Header lines of one head, and what they were last found to repeat: requests with the same head share them."""

    _passed: tuple[object, ...] | None = None
    _forward: tuple[tuple[str, str], ...] = ()

    def check(
        self,
        method: Method,
        params: Mapping[str, bytes],
        version: str,
        schema: Sequence[Declared] | None,
        id: bytes = b"",
    ) -> tuple[tuple[str, str], ...]:
        """As the function `check`. Where no argument has a header of its own, only version, method and name are compared, and
        that is not done again for the same ones. Raises `WireError` -32020."""
        if schema:
            return check(self, method, method.name, params, version, schema, id)
        asked = (method, params.get(method.names), version)
        if asked != self._passed:
            self._forward = check(self, method, method.name, params, version, schema, id)
            self._passed = asked
        return self._forward


def check(
    given: Iterable[tuple[str, str]],
    method: Method | None,
    name: str,
    params: Mapping[str, bytes],
    version: str,
    schema: Sequence[Declared] | None,
    id: bytes = b"",
) -> tuple[tuple[str, str], ...]:
    """Check the headers of one modern request against its body; returns the undeclared `Mcp-Param-*` to
    forward.

    `given`: header lines as they came. `method`, `params`: row and members of the body; `name`: the body's
    method. `version`: the body's `io.modelcontextprotocol/protocolVersion`. `schema`: what the called tool
    declares, `None` where its definition is not known. Raises `WireError` -32020.
    """
    seen: dict[str, str] = {}
    params_given: dict[str, tuple[str, str]] = {}
    for header, value in given:
        key = header.lower()
        if key in ("mcp-protocol-version", "mcp-method", "mcp-name"):
            if key in seen:
                raise mismatch(f"{header} is given twice", id)
            seen[key] = value.strip(" \t")
        elif key.startswith(_PREFIX):
            if key in params_given:
                raise mismatch(f"{header} is given twice", id)
            params_given[key] = (header, value.strip(" \t"))
    if seen.get("mcp-protocol-version") != version:
        raise mismatch(f"{VERSION} does not repeat the protocol version of the body", id)
    if decode_value(seen.get("mcp-method", "")) != name:
        raise mismatch(f"{METHOD} does not repeat the method of the body", id)
    if method is not None and method.mcp_name and decode_value(seen.get("mcp-name", "")) != text(params, method.names):
        raise mismatch(f"{NAME} does not repeat {method.names!r} of the body", id)
    if method is not None and method.name == "tools/call":
        for one in schema or ():
            _check_param(one, params_given.pop(one.header.lower(), None), params, id)
    return tuple(params_given.values())


def _check_param(one: Declared, header: tuple[str, str] | None, params: Mapping[str, bytes], id: bytes) -> None:
    raw = _argument(params, one.path)
    expected = _render(raw)
    if expected is None:
        if header is not None:
            raise mismatch(f"{one.header} has no argument in the body", id)
        return
    if header is None:
        raise mismatch(f"{one.header} is missing", id)
    got = decode_value(header[1])
    if got == expected:
        return
    # Integers are compared as numbers: 42 and 42.0 are one.
    if (
        got is not None
        and one.type == "integer"
        and raw[:1] not in b'"tf'
        and _DECIMAL.match(got)
        and len(got) < 40
        and Decimal(got) == Decimal(raw.decode())
    ):
        return
    raise mismatch(f"{one.header} does not repeat {'.'.join(one.path)!r} of the body", id)


def mismatch(why: str, id: bytes) -> WireError:
    """The refusal of a request whose headers say something else than its body."""
    return WireError(HEADER_MISMATCH, why, id, code="E1331", remedy="Headers are made from the body; list the tools again.")


def _argument(params: Mapping[str, bytes], path: tuple[str, ...]) -> bytes:
    """The raw value of an argument by its path, `b""` where there is none."""
    raw = params.get("arguments", b"")
    for key in path:
        if raw[:1] != b"{":
            return b""
        try:
            raw = members(raw).get(key, b"")
        except EarnestError as reason:
            raise WireError(-32602, f"arguments: {reason.message}", code=reason.code) from None
    return raw


def _render(raw: bytes) -> str | None:
    """A raw argument as header text before encoding; `None` where there is none or it has no portable
    form."""
    if raw in (b"", b"null") or raw[:1] in b"[{":
        return None
    if raw in (b"true", b"false"):
        return raw.decode()
    if raw[:1] == b'"':
        return msgspec.json.decode(raw, type=str)
    try:
        number = Decimal(raw.decode())
        if abs(number) > SAFE_INTEGER or number != number.to_integral_value():
            return None
    except InvalidOperation:
        return None
    return str(int(number))


def generate(
    method: Method | None,
    name: str,
    params: Mapping[str, bytes],
    version: str,
    schema: Sequence[Declared] = (),
    forward: Iterable[tuple[str, str]] = (),
) -> list[tuple[str, str]]:
    """The headers for one modern body. `forward` are undeclared `Mcp-Param-*` of the request this one stems
    from."""
    made = [(VERSION, version), (METHOD, encode_value(name))]
    if method is not None and method.mcp_name:
        made.append((NAME, encode_value(text(params, method.names))))
    taken: set[str] = set()
    if name == "tools/call":
        for one in schema:
            taken.add(one.header.lower())
            value = _render(_argument(params, one.path))
            if value is not None:
                made.append((one.header, encode_value(value)))
    made.extend((header, value) for header, value in forward if header.lower() not in taken)
    return made
