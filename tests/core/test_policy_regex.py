"""`matches`: agrees with a known engine, takes linear time, refuses what is not regular."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.core.regex import Regex, glob
from properties import examples

atoms = st.sampled_from(["a", "b", "1", "_", ".", r"\w", r"\d", r"\s", r"\W", r"\b", "[a-b1]", "[^a]", "^", r"\Z"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda t: f"({t[0]}|{t[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"])).map(lambda t: f"(?:{t[0]}){t[1]}"),
    ),
    max_leaves=8,
)


@settings(max_examples=examples(200), deadline=None)
@given(patterns, st.text("ab1_ -", max_size=8))
def test_it_finds_what_a_backtracking_engine_finds(pattern: str, text: str) -> None:
    assert Regex(pattern.replace(r"\Z", "$")).search(text) is bool(re.search(pattern, text, re.ASCII))


@pytest.mark.parametrize("pattern", ["(a*)*$", "(a|aa)+$", "(a?){30}a{30}", "(.*)*x", ".*.*.*.*x"])
def test_no_pattern_takes_more_than_linear_time(pattern: str) -> None:
    text = "a" * 20_000 + "b"
    started = time.process_time()
    Regex(pattern).search(text)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", "(?=a)", "(?<!a)b", "(?i", "a**b)", "[", "(", "a{1001}", "*a", "a++", r"\p", "[b-a]"]
)
def test_what_is_not_regular_or_malformed_is_refused(pattern: str) -> None:
    with pytest.raises(EarnestError) as caught:
        Regex(pattern)
    assert caught.value.code == "E1109"


@pytest.mark.parametrize("pattern", ["(a{100}){100}", "((((){999}){999}){999}){999}"])
def test_a_pattern_that_grows_too_large_is_refused_at_once(pattern: str) -> None:
    started = time.process_time()
    with pytest.raises(EarnestError):
        Regex(pattern)
    assert time.process_time() - started < 2


def test_flags_stand_at_the_start() -> None:
    assert Regex("(?i)AbC").search("xaBcx")
    assert not Regex("AbC").search("xaBcx")
    assert Regex("(?s)a.b").search("a\nb")
    assert not Regex("a.b").search("a\nb")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [("*", "", True), ("a*c", "abc", True), ("a*c", "abd", False), ("?", "", False), ("a?c", "abc", True),
     ("*a*b", "xaxxb", True),
     ("[a]", "a", False), ("a.c", "abc", False), ("*" * 30 + "b", "a" * 2000, False)],
)  # fmt: skip
def test_globs_know_star_and_question_mark_alone(pattern: str, text: str, expected: bool) -> None:
    assert glob(pattern, text) is expected
