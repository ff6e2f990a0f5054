"""Server-sent events: the parser agrees with the specification in any chunking; encode is its inverse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.net.sse import COMMENT, Event, Parser, encode
from properties import examples


def parse(*chunks: bytes, limit: int = 10_000) -> list[Event]:
    parser = Parser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_each_line_ending_ends_a_line() -> None:
    for eol in (b"\n", b"\r", b"\r\n"):
        assert parse(eol.join([b"event: a", b"data: 1", b"data:2", b"", b""])) == [Event(b"1\n2", b"a")]


def test_a_blank_line_of_a_cr_dispatches_without_waiting_for_more() -> None:
    assert parse(b"data: x\r\r") == [Event(b"x")]
    assert parse(b"data: x\r", b"\n\r", b"\ndata: y\n\n") == [Event(b"x"), Event(b"y")]


def test_a_byte_order_mark_is_skipped_once_and_only_at_the_start() -> None:
    assert parse(b"\xef", b"\xbb", b"\xbfdata: x\n\n") == [Event(b"x")]
    assert parse(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n") == []


def test_comments_unknown_fields_and_events_without_data_are_dropped() -> None:
    assert parse(b": hello\n\nfoo: bar\nevent: ping\n\ndata\n\n") == [Event(b"")]
    assert parse(COMMENT * 3) == []


def test_one_space_after_the_colon_is_no_part_of_the_value() -> None:
    assert parse(b"data:  x\n\n") == [Event(b" x")]


def test_ids_persist_and_one_with_nul_is_ignored() -> None:
    assert [e.id for e in parse(b"id: 7\ndata: a\n\nid: a\0b\ndata: b\n\nid\ndata: c\n\n")] == [
        b"7",
        b"7",
        b"",
    ]


def test_retry_takes_digits_only() -> None:
    parser = Parser(100)
    parser.feed(b"retry: 1500\n")
    parser.feed(b"retry: 2s\n")
    assert parser.retry_ms == 1500


def test_an_event_past_the_limit_is_an_error_whether_in_one_line_or_many() -> None:
    for stream in (b"data: " + b"x" * 200, b"data: 12345\n" * 30, b"x" * 200):
        with pytest.raises(EarnestError) as info:
            parse(stream, limit=100)
        assert info.value.code == "E1226"


def test_many_small_events_and_comments_never_reach_the_limit() -> None:
    assert len(parse((b": " + b"c" * 80 + b"\ndata: x\n\n") * 50, limit=100)) == 50


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: a",
                b"data:",
                b"data",
                b"\n",
                b"\r",
                b"\r\n",
                b"\n\n",
                b"id: 1",
                b"event: e",
                b":c",
                b"\xef\xbb\xbf",
            ]
        ),
        max_size=14,
    ),
    st.data(),
)
@settings(max_examples=examples(150), deadline=None)
def test_any_chunking_yields_the_same_events(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    whole = parse(stream)
    assert parse(*(bytes([b]) for b in stream)) == whole
    cut = data.draw(st.integers(0, len(stream)))
    assert parse(stream[:cut], b"", stream[cut:]) == whole


@given(st.lists(st.binary(max_size=20).filter(lambda b: b"\r" not in b), max_size=5))
@settings(max_examples=examples(100), deadline=None)
def test_what_was_encoded_is_parsed_back(payloads: list[bytes]) -> None:
    stream = b"".join(encode(p, str(n)) for n, p in enumerate(payloads))
    assert parse(stream) == [Event(p, b"message", str(n).encode()) for n, p in enumerate(payloads)]


def test_a_line_break_in_data_cannot_forge_a_field() -> None:
    assert parse(encode(b"a\rid: 9\r\nevent: x\n\ndata: b")) == [Event(b"a\nid: 9\nevent: x\n\ndata: b")]
    for name in ("event_id", "event"):
        with pytest.raises(ValueError):
            encode(b"x", **{name: "1\ndata: forged"})
