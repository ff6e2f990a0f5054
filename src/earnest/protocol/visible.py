"""Text of strangers made safe to show a person: nothing invisible, nothing cut without saying so."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Final

_HIDDEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Unicode categories that draw nothing, reorder their neighbours or break lines."""

# Fillers and the Braille blank count as letters or symbols and still draw nothing.
_BLANK: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")


def visible(text: str) -> str:
    """The text with every control, bidirectional, zero-width, private or unassigned character as `⟨U+202E⟩`.

    Spaces other than the plain one, and variation selectors, are shown in the same way. The result is one
    line.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟨U+{ord(one):04X}⟩" if _hidden(one) else one for one in text)


def _hidden(one: str) -> bool:
    if one == " ":
        return False
    category = unicodedata.category(one)
    if category in _HIDDEN or category == "Zs" or one in _BLANK:
        return True
    return "\ufe00" <= one <= "\ufe0f" or "\U000e0100" <= one <= "\U000e01ef"


def folded(text: str, longest: int) -> str:
    """Visible text; where longer than `longest` characters its head, with the length and digest of the
    whole."""
    if len(text) <= longest:
        return visible(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{visible(text[:longest])} … [folded: {len(text)} characters in all, sha256 {digest[:16]}]"
