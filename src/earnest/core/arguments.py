"""Arguments as policy conditions read them.

Integers are exact whatever their size, other numbers are doubles. What two parsers could read in two ways is
refused (law 8): duplicate keys, also equal after NFKC and case folding, and everything that is not strictly
JSON.
"""

from __future__ import annotations

import json
from typing import Any, Final

from earnest.core import canonical
from earnest.core.errors import EarnestError


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len({canonical.fold(key) for key in result}) != len(pairs):
        raise EarnestError("E1302", "duplicate key in the arguments", "Send each key once, in one spelling.")
    return result


def _constant(text: str) -> Any:
    raise EarnestError("E1301", f"the arguments are not JSON: {text} is no JSON value")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def load(raw: bytes) -> Any:
    """The value of one JSON text; empty is an empty object, as absent `arguments` are.

    Raises `EarnestError`: E1301 not JSON (or a number of more than 4300 digits), E1302 duplicate key, E1303
    too deep.
    """
    if not raw:
        return {}
    if b"\\u" in raw or raw.count(b"[") + raw.count(b"{") > canonical.DEPTH:
        canonical.canonical(raw)  # refuses halves of surrogate pairs and what is too deep
    try:
        text = raw.decode()
        if text.startswith("\ufeff"):
            raise EarnestError("E1301", "the arguments are not JSON: they start with a byte order mark")
        return _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise EarnestError("E1301", f"the arguments are not JSON that can be read: {error}") from None
