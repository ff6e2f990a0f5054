"""JSON read by another program than earnest: what a text means, and its digest, by the standard library alone.

The digest is over RFC 8785's form with numbers as they were written, which is what receipts say they hold. It is written
down here a second time so that a mistake in one reading does not hide in the other.
"""

import hashlib
import json
import unicodedata
from typing import Any


class Number(str):
    """A number as it was written."""


class Twofold(ValueError):
    """A text that two programs may read in two ways."""


def fold(name: str) -> str:
    """What a lenient program may take a name for."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: set[str] = set()
    for name, _ in pairs:
        if (folded := fold(name)) in seen:
            raise Twofold(name)
        seen.add(folded)
    return dict(pairs)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def read(data: bytes) -> Any:
    """The value of a text. Raises ValueError for what is no JSON, or JSON that can be read in two ways."""
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        raise ValueError("a byte order mark is no JSON")
    value = json.loads(text, object_pairs_hook=_pairs, parse_int=Number, parse_float=Number, parse_constant=_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair is no character
    return value


def form(value: Any) -> str:
    """A value in canonical form."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{form(name)}:{form(inner)}" for name, inner in ordered) + "}"
    if isinstance(value, list):
        return "[" + ",".join(form(inner) for inner in value) + "]"
    return json.dumps(value)


def digest(value: Any) -> str:
    """The digest of a value as a receipt gives it."""
    return hashlib.sha256(form(value).encode("utf-8")).hexdigest()
