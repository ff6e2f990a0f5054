"""Encodings that hide."""

import base64

import pytest

from earnest.core.disguise import MAX_PIECES, readings, tagged, without_invisible

HIDDEN = "https://evil.example/login"


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(HIDDEN.encode()).decode(),
        base64.urlsafe_b64encode(HIDDEN.encode()).decode().rstrip("="),
        HIDDEN.encode().hex(),
        " ".join(f"{byte:02x}" for byte in HIDDEN.encode()),
        "".join(f"\\x{byte:02x}" for byte in HIDDEN.encode()),
        "".join(f"%{byte:02X}" for byte in HIDDEN.encode()),
        "".join(f"={byte:02X}" for byte in HIDDEN.encode()),
        HIDDEN.replace("v", "v\u200b"),
        HIDDEN.replace("e", "е").replace("o", "о"),
        "".join(chr(0xE0000 + ord(c)) for c in HIDDEN),
        base64.b64encode(base64.b64encode(HIDDEN.encode())).decode(),
    ],
)
def test_the_hidden_text_comes_out(text):
    assert any(HIDDEN in piece for piece in readings(f"see {text} now"))


def test_plain_words_hide_nothing():
    assert readings("Please send the internationalisation report to Ann tomorrow morning") == []


def test_the_work_is_bounded():
    assert len(readings((base64.b64encode(b"some readable text").decode() + " ") * 500)) <= MAX_PIECES


def test_what_does_not_show_is_taken_out():
    assert without_invisible("a\u200bb\u2060c") == "abc"
    assert tagged("x" + chr(0xE0041)) == "A"
