"""Nothing that a person reads may hide, reorder or vanish."""

import hashlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earnest.protocol.visible import folded, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, é, 日本", "plain text, é, 日本"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\nb\x1b[31m", "a⟨U+000A⟩b⟨U+001B⟩[31m"),
        ("\u200b\ufeff\u00a0\u2028\u3164", "⟨U+200B⟩⟨U+FEFF⟩⟨U+00A0⟩⟨U+2028⟩⟨U+3164⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("x\ufe0f", "x⟨U+FE0F⟩"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_the_result_has_no_control_or_format_character(text: str) -> None:
    assert not {unicodedata.category(one) for one in visible(text)} & {
        "Cc",
        "Cf",
        "Cn",
        "Co",
        "Cs",
        "Zl",
        "Zp",
    }


def test_long_text_is_folded_with_length_and_digest() -> None:
    text = "a" * 999 + "\nrm -rf"
    shown = folded(text, 20)
    assert shown.startswith("a" * 20 + " … [folded: 1006 characters in all, sha256 ")
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in shown
    assert folded("a" * 20, 20) == "a" * 20
