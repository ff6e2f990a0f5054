"""What a stranger's text hides from the eye is spelled out."""

from __future__ import annotations

import pytest

from earnest.core.visible import visible


@pytest.mark.parametrize("text", ["plain text", "Größe 日本語 😀", "a-b_c/d"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    "code",
    [0, 9, 10, 27, 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x202E, 0x2028, 0x2066, 0x3164, 0xFE0F, 0xE0041, 0xD800],
)
def test_what_cannot_is_spelled_out(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a<U+{code:04X}>b"
