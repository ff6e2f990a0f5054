"""Text from strangers, made safe to show to a person: what cannot be seen, or reorders what can, is spelled
out."""

from __future__ import annotations

import unicodedata
from typing import Final

# Letters and marks by category, yet blank or invisible on screen: Hangul fillers, Braille blank, combining
# grapheme joiner, Khmer inherent vowels, Mongolian and general variation selectors.
_BLANK: Final = frozenset(
    [847, 4447, 4448, 6068, 6069, 10240, 12644, 65440, *range(6155, 6160), *range(65024, 65040), *range(917760, 918000)]
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
