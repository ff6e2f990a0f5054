"""What a text hides: encodings undone, for the negative check alone.

Theory. Who wants a value to pass unseen writes it so that it does not look like itself. What comes out here is only ever
looked up
among untrusted values and secrets; it never counts as a user's word or a trusted value, so reading too much into a text
can only raise a question. Undone are base64 (both alphabets), hex, percent and quoted-printable encoding, characters
that are invisible, letters that look like Latin ones, and what was turned round. Bounded: `MAX_PIECES` pieces of at most
`MAX_BYTES`.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
import unicodedata
from typing import Final
from urllib.parse import unquote

MAX_PIECES: Final = 32
MAX_BYTES: Final = 16_384
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}[\s:]?){8,}(?![0-9A-Za-z])|(?:\\x[0-9a-fA-F]{2}){4,}")
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}")
_QUOTED: Final = re.compile(r"=[0-9A-F]{2}|=\r?\n")
_LOOKALIKES: Final = str.maketrans(
    "аеорсухкмтвнігѕјԁһӏԛԝαεορυικντβηιχγω",
    "aeopcyxkmtbhirsjdhlqwaeopuikvtbnixyw",
)
_SUSPECT: Final = re.compile(r"[\u0370-\u052f]")


def invisible(character: str) -> bool:
    """Whether a character shows nothing and is no blank: format characters, tags, variation selectors."""
    return unicodedata.category(character) in ("Cf", "Co", "Cn") or "\ufe00" <= character <= "\ufe0f"


def without_invisible(text: str) -> str:
    """The text without what does not show."""
    if text.isascii():
        return text
    return "".join(character for character in text if not invisible(character))


def tagged(text: str) -> str:
    """What is written in Unicode tag characters, which no screen shows."""
    return "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)


def readings(text: str) -> list[str]:
    """Other readings of a text, without the text itself. One level of encoding inside another is followed."""
    found: list[str] = []
    queue = [(text[: MAX_BYTES * 4], 0)]
    while queue and len(found) < MAX_PIECES:
        current, depth = queue.pop(0)
        for piece in _pieces(current):
            if piece != text and piece not in found and len(found) < MAX_PIECES:
                found.append(piece)
                if depth < 1:
                    queue.append((piece, depth + 1))
    return found


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    if not text.isascii():
        bare = without_invisible(text)
        if bare != text:
            found.append(bare)
        hidden = tagged(text)
        if hidden:
            found.append(hidden)
        if _SUSPECT.search(text):
            found.append(unicodedata.normalize("NFKC", bare).casefold().translate(_LOOKALIKES))
    if "%" in text and _PERCENT.search(text):
        found.append(unquote(text, errors="replace"))
    if "=" in text and _QUOTED.search(text):
        found.append(quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace"))
    for match in _BASE64.finditer(text):
        decoded = _base64(match.group())
        if decoded:
            found.append(decoded)
    for match in _HEX.finditer(text):
        decoded = _readable(bytes.fromhex(re.sub(r"\\x|[\s:]", "", match.group())))
        if decoded:
            found.append(decoded)
    return found


def _base64(text: str) -> str:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")[:MAX_BYTES]
    body = body[: len(body) - 1] if len(body) % 4 == 1 else body
    try:
        return _readable(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _readable(data: bytes) -> str:
    """The bytes as text, or nothing if they are not one: an ordinary word is base64 of noise."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    shown = sum(character.isprintable() or character in "\n\t\r" for character in text)
    return text if text and shown >= 0.95 * len(text) else ""
