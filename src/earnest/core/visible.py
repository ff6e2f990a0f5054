"""Text from strangers, made safe to show to a person: what cannot be seen, or reorders what can, is spelled
out."""

from __future__ import annotations

import unicodedata
from typing import Final

# Letters and marks by category, yet blank or invisible on screen: Hangul fillers, Braille blank, combining
# grapheme joiner, Khmer inherent vowels, Mongolian and general variation selectors.
_BLANK: Final = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)
_HIDDEN: Final = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"])


def visible(text: str) -> str:
    """`text` with control, bidi, zero-width, unassigned and blank characters written as `<U+202E>`.

    An ordinary space stays. A line feed does not: the caller splits lines before, where lines are wanted.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join([f"<U+{ord(char):04X}>" if _hides(char) else char for char in text])


def _hides(char: str) -> bool:
    return char != " " and (unicodedata.category(char) in _HIDDEN or ord(char) in _BLANK)
