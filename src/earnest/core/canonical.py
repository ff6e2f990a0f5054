"""The canonical form of JSON: what pins, digests and approvals are taken over.

Theory. The form is RFC 8785 (JCS) with one change: a number keeps the text it came with, because `1E2`,
`9223372036854775807` and `-0.0` must reach the far side, the digest and the policy as what they were, and a
detour through a double would change them. So: no white space, keys sorted by their UTF-16 code units,
strings with the shortest escapes, numbers as they stood.

Two parsers must never read one text in two ways, so what they are known to disagree about is refused:
duplicate keys (exact, or equal after NFKC and case folding), lone surrogates, a byte order mark, NaN,
trailing data, and nesting deeper than `DEPTH`.

There are two roads to one answer. The exact one uses the standard library's scanner with hooks that see
every pair and every number. The fast one lets msgspec decode and encode again, and is believed only when
nothing could have been lost on the way: encoding never writes a longer text than it read, so a result of
the same length (white space apart, which msgspec takes away without looking at keys) proves that there was
no longer escape, and no key that swallowed another.
Anything doubtful takes the exact road, which alone makes errors. A property test holds the two equal.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

import msgspec

from earnest.core.errors import EarnestError

DEPTH: Final = 128
"""How many arrays and objects may stand inside each other."""

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(b for b in range(256) if b not in b"[]{}")
_SPACE: Final = re.compile(r"[ \t\n\r]*")


class _Number(str):
    """The text of a number, kept apart from strings."""

    __slots__ = ()


_decode: Final = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode
_decode_members: Final[Callable[[bytes], dict[str, bytes]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode  # type: ignore[assignment]
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_encode: Final = msgspec.json.Encoder().encode
_format: Final = msgspec.json.format
_bytes: Final = bytes


def canonical(raw: bytes) -> bytes:
    """The canonical form of one JSON text (RFC 8785, numbers as written).

    Raises `EarnestError`: E1301 not JSON, E1302 duplicate key, E1303 nested deeper than `DEPTH`.
    """
    fast = _fast(raw)
    return _exact(raw) if fast is None else fast


def digest(raw: bytes) -> str:
    """SHA-256 over the canonical form, as 64 hexadecimal digits. Raises as `canonical` does."""
    fast = _fast(raw)
    return hashlib.sha256(_exact(raw) if fast is None else fast).hexdigest()


def members(raw: bytes) -> dict[str, bytes]:
    """The members of one object, in their order, each value as the bytes it stood in (without white space
    around it).

    Duplicates are looked for on this level only. Raises `EarnestError`: E1301 not JSON or not an object,
    E1302 duplicate key, E1303 nested deeper than `DEPTH`.
    """
    if raw == b"{}":
        return {}
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        try:
            if not raw.isascii():
                raw.decode()  # what msgspec steps over it does not check for valid UTF-8
            found = _decode_members(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return _exact_members(raw)
        # Two quotes, a colon, and a comma or the closing brace for each pair, and one opening brace: a text
        # longer than that has white space or escapes in it, or a key that swallowed another.
        length = 1
        for key, value in found.items():
            found[key] = plain = _bytes(value)
            length += len(key) + len(plain) + 4
        # Never equal for keys beyond ASCII: they have fewer characters than bytes.
        if length == len(raw) or _is_spaced(raw, found):
            if len(found) == 1:
                return found
            keys = "".join(found)
            if keys == keys.lower() or len({key.lower() for key in found}) == len(found):
                return found
    return _exact_members(raw)


def _is_spaced(raw: bytes, found: Mapping[str, bytes]) -> bool:
    """Whether white space is all that an object has beyond the members that were found in it: without it, the text is as long
    as they are. Many clients and servers write a space behind each comma and colon."""
    plain = compact(raw)
    values = _decode_members(plain)
    length = 4 * len(found) + 1 + len("".join(found))
    for value in values.values():
        length += len(_bytes(value))
    return length == len(plain)


def compact(raw: bytes) -> bytes:
    """A JSON text that msgspec has read, without white space between its tokens. The tokens stay as they are, doubled keys
    too."""
    return _format(raw, indent=-1)


def build(members: Mapping[str, bytes]) -> bytes:
    """One object from raw values, in the order given. The values are not looked at. Raises E1301 for a key
    with a lone surrogate."""
    try:
        return b"{" + b",".join([_encode(key) + b":" + value for key, value in members.items()]) + b"}"
    except UnicodeEncodeError:
        raise EarnestError("E1301", "a key holds half of a surrogate pair") from None


def depth(raw: bytes) -> int:
    """How deeply arrays and objects nest in a well-formed JSON text: 0 for a scalar. Not recursive; linear
    but for the nesting itself. Stops counting at `DEPTH` + 1."""
    rest = _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS)
    levels = 0
    # Each round takes away what is innermost. Well-formed text is gone after as many rounds as it has levels.
    while rest and levels <= DEPTH:
        rest = re.sub(rb"(?:\[\]|\{\})+", b"", rest)
        levels += 1
    return levels


def fold(key: str) -> str:
    """What a lenient parser may take a key for: NFKC and case folding."""
    if key.isascii():
        return key.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())


# The fast road


def _fast(raw: bytes) -> bytes | None:
    """The canonical form, or None where the exact road has to say."""
    try:
        value = _decode(raw)
        result = _encode_sorted(value)
        if len(result) != len(raw):
            raw = compact(raw)
            if len(result) != len(raw):
                return None
        if not raw.isascii() or raw.count(b"[") + raw.count(b"{") > DEPTH:
            return result if _plain(value) else None
        lower = raw.lower()
        # Keys that differ in case alone swallow each other when everything is lower case, and the text gets
        # shorter.
        if lower != raw and len(_encode_sorted(_decode(lower))) != len(raw):
            return None
        return result
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> bool:
    """Whether all keys are ASCII and distinct in lower case, and the depth is within bounds. Level by
    level."""
    level = [value]
    for _ in range(DEPTH):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                folded = set()
                for key, inner in item.items():
                    if not key.isascii():
                        return False
                    folded.add(key.lower())
                    if type(inner) is dict or type(inner) is list:
                        below.append(inner)
                if len(folded) != len(item):
                    return False
            elif type(item) is list:
                below.extend([inner for inner in item if type(inner) is dict or type(inner) is list])
        if not below:
            return True
        level = below
    return False


# The exact road


def _refuse_constant(text: str) -> NoReturn:
    raise EarnestError("E1301", f"not JSON: {text} is no JSON value")


def _no_value(_: str) -> None:
    return None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs) and len({fold(key) for key in result}) == len(pairs):
        return result
    seen: dict[str, str] = {}
    for key, _ in pairs:
        folded = fold(key)
        other = seen.get(folded)
        if other is not None:
            what = f"{key[:80]!a} stands twice"
            if other != key:
                what = f"{other[:80]!a} and {key[:80]!a} are one key to some parsers"
            raise EarnestError("E1302", f"duplicate key: {what}", "Send each key once, in one spelling.")
        seen[folded] = key
    return result


_scanner: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant
)
_validator: Final = json.JSONDecoder(
    parse_float=_no_value, parse_int=_no_value, parse_constant=_refuse_constant
)


def _text(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise EarnestError("E1301", f"not JSON: invalid UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise EarnestError("E1301", "not JSON: it starts with a byte order mark")
    return text


def _too_deep() -> EarnestError:
    return EarnestError("E1303", f"nested deeper than {DEPTH} levels", "Flatten the value.")


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") > DEPTH and depth(raw) > DEPTH:
        raise _too_deep()


def _exact(raw: bytes) -> bytes:
    text = _text(raw)
    parts: list[str] = []
    try:
        value = _scanner.decode(text)
        _write(value, parts, 0)
        return "".join(parts).encode()
    except json.JSONDecodeError as error:
        raise EarnestError("E1301", f"not JSON: {error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise EarnestError("E1301", "not JSON: half of a surrogate pair") from None
    except RecursionError:
        raise _too_deep() from None


def _utf16(item: tuple[str, Any]) -> bytes:
    # Big endian, so that bytes compare as code units do (RFC 8785, 3.2.3).
    return item[0].encode("utf-16-be")


def _write(value: Any, parts: list[str], level: int) -> None:
    if type(value) is str:
        parts.append(encode_basestring(value))
    elif type(value) is _Number:
        parts.append(value)
    elif value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif level >= DEPTH:
        raise _too_deep()
    elif type(value) is dict:
        mark = "{"
        for key, inner in sorted(value.items(), key=_utf16):
            parts.append(mark)
            parts.append(encode_basestring(key))
            parts.append(":")
            _write(inner, parts, level + 1)
            mark = ","
        parts.append("}" if value else "{}")
    else:
        mark = "["
        for inner in value:
            parts.append(mark)
            _write(inner, parts, level + 1)
            mark = ","
        parts.append("]" if value else "[]")


def _exact_members(raw: bytes) -> dict[str, bytes]:
    text = _text(raw)
    try:
        value = _validator.decode(text)
        if type(value) is not dict:
            raise EarnestError("E1301", "not a JSON object")
        _encode(value)  # halves of surrogate pairs, at any depth
    except json.JSONDecodeError as error:
        raise EarnestError("E1301", f"not JSON: {error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise EarnestError("E1301", "not JSON: half of a surrogate pair") from None
    except RecursionError:
        raise _too_deep() from None
    _check_depth(raw)
    # From here on the text is known to be well formed, and its slices are found by walking over it once more.
    pairs: list[tuple[str, Any]] = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = _validator.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _validator.raw_decode(text, start)
        pairs.append((key, text[start:end].encode()))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _pairs(pairs)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
