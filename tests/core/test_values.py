"""What counts as the same value, and what does not."""

import time

import pytest

from earnest.core.values import Calendar, keys, leaves, number_key, plain_number, tokens

CALENDAR = Calendar(
    months={"may": 5, "mai": 5, "mayo": 5},
    numbers={"two": "2"},
    hours={"noon": "12:00"},
    between=frozenset(("of", "de", "the")),
)


def spoken(text):
    return [key for token in tokens(text, CALENDAR) for key in (token.key, *token.readings)]


@pytest.mark.parametrize(
    "one, other",
    [
        ("Bob@Example.COM", "bob@example.com"),
        ("mailto:bob@example.com", "bob@example.com"),
        ("https://www.Example.com/", "example.com"),
        ("http://example.com:80/a/", "https://example.com/a"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("1,000.50", "1000.5"),
        ("1.000,50", "1000.50"),
        ("€100", "100"),
        ("10:05", "10:05:00"),
        ("3pm", "15:00"),
        ("12 a.m.", "00:00"),
        ("2024/5/9", "2024-05-09"),
        ("9.5.2024", "2024-05-09"),
        ("2024年5月9日", "2024-05-09"),
        ("下午3点", "15:00"),
        ("ＦＵＬＬ", "full"),
        ("./a//b/", "a/b"),
        ("Alice's", "alice"),
    ],
)
def test_these_are_the_same_value(one, other):
    assert keys(one) == keys(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("bob@example.com", "bob@example.com.evil.example"),
        ("example.com", "example.com/a"),
        ("example.com/a", "example.com/a?b=1"),
        ("https://user@example.com", "https://example.com"),
        ("ftp://example.com", "http://example.com"),
        ("007", "7"),
        ("10", "100"),
        ("a/b", "b"),
        ("intro.md", "docs/intro.md"),
        ("https://аpple.com", "https://apple.com"),
        ("INV-1", "INV-12"),
    ],
)
def test_these_are_different_values(one, other):
    assert keys(one) != keys(other)


@pytest.mark.parametrize(
    "text, key",
    [
        ("on May 15th, 2024", "d2024-05-15"),
        ("on the 15th of May", "d05-15"),
        ("am 15. Mai 2024", "d2024-05-15"),
        ("el 15 de mayo", "d05-15"),
        ("05/06/2024", "d2024-06-05"),
        ("at noon", "t12:00"),
        ("two of them", "n2"),
        ("2024-05-19T10:00:00Z", "t10:00"),
        ("pay 1.000", "n1000"),
    ],
)
def test_dates_hours_and_numbers_are_read_as_people_write_them(text, key):
    assert key in spoken(text)


def test_a_token_is_whole():
    assert keys("mail bob@example.com, then go to example.com/a") == (
        "wmail",
        "ebob@example.com",
        "wthen",
        "wgo",
        "wto",
        "uexample.com/a",
    )
    assert keys("给bob@x.example发100元") == ("w给", "ebob@x.example", "w发", "n100", "w元")


@pytest.mark.parametrize("number, plain", [("100.0", "100"), ("-0", "0"), ("0.50", "0.5"), ("1e3", "1000"), ("00", "0")])
def test_numbers_have_one_spelling(number, plain):
    assert plain_number(number) == plain
    assert number_key(100.0) == "n100"


def test_leaves_have_paths_and_no_nulls():
    assert leaves({"a": [{"b": 1}, None], "c": "x"}) == [("a[].b", 1), ("c", "x")]


@pytest.mark.parametrize("piece", ["a.", "a@", "1 ", "aa11", "a-", "100,", "1.1", "/", "http://", "年", "a/", "<", "gb29 "])
def test_reading_takes_time_in_proportion_to_the_text(piece):
    started = time.process_time()
    tokens(piece * 5_000)
    assert time.process_time() - started < 3
