"""Secrets are taken out of text in every form that programs give to strings."""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.scrub import REDACTED, Scrubber

SECRETS = ["hunter2hunter2", 'with"quote\\and/slash', "schlüssel größe+x", "a'b&c<d>eee"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "write",
    [
        lambda s: s,
        lambda s: json.dumps(s),
        lambda s: json.dumps(s, ensure_ascii=False),
        lambda s: json.dumps(json.dumps(s)),
        lambda s: json.dumps(s).replace("/", "\\/"),
        lambda s: urllib.parse.quote(s),
        lambda s: urllib.parse.quote(s, safe=""),
        lambda s: urllib.parse.quote_plus(s),
        lambda s: re.sub("%..", lambda found: found[0].lower(), urllib.parse.quote(s, safe="")),
        lambda s: html.escape(s),
    ],
)
def test_no_spelling_of_a_secret_stays(secret: str, write) -> None:
    text, count = Scrubber([secret]).counted(f"before {write(secret)} after")
    assert count == 1 and text.startswith("before ") and text.endswith(" after")
    assert text.replace('"', "").replace("\\", "") == f"before {REDACTED} after"


@settings(max_examples=60)
@given(
    before=st.binary(max_size=7),
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6),
    after=st.binary(max_size=7),
)
def test_in_base64_nothing_of_a_secret_can_be_read_wherever_it_begins(before: bytes, secret: str, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(before + secret.encode() + after).decode()
        text = Scrubber([secret])(whole)
        left = sum(map(len, text.split(REDACTED)))
        # At each side at most one character carries bits of the secret.
        assert REDACTED in text and left <= len(whole) - (len(secret) * 8 // 6 - 2)


def test_what_one_secret_leaves_is_no_part_of_another() -> None:
    scrub = Scrubber(["abcdef-ghijkl", "ghijkl-mnopqr", "redacted"])
    assert scrub("x abcdef-ghijkl-mnopqr y") == f"x {REDACTED} y"
    assert scrub("abcdef-ghijkl") == REDACTED


def test_a_secret_of_several_lines_is_known_by_each_of_them() -> None:
    key = "-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END X-----"
    scrub = Scrubber([key])
    assert scrub("said MIIEvQIBADANBgkqhkiG9w0") == f"said {REDACTED}"
    assert scrub(f"<{key}>") == f"<{REDACTED}>"
    assert scrub("short") == "short"


def test_short_values_stay_and_later_ones_are_learnt() -> None:
    scrub = Scrubber(["abcde", "", "   a   "])
    assert scrub("abcde a") == "abcde a"
    scrub.add(["learnt-later"])
    assert scrub("it is learnt-later") == f"it is {REDACTED}"
