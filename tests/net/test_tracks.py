"""What is read in compiled code is read as the long way reads it, or not at all; and nothing is read beyond its end."""

import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from earnest.core import canonical
from earnest.core.errors import EarnestError
from earnest.net.tracks import AVAILABLE, compiled
from earnest.pdp.floor import _worth_a_look
from earnest.protocol import calls, envelope
from earnest.protocol.envelope import WireError
from earnest.protocol.outcomes import outcome

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="earnest was installed without its compiled piece")

KEYS = st.text(alphabet="aAbBcé_\"\\\n0", max_size=4)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS, v, max_size=5), max_leaves=12)
SPACES = {True: (", ", ": "), False: (",", ":")}
WRITTEN = st.builds(
    lambda value, spaced, plain: json.dumps(value, separators=SPACES[spaced], ensure_ascii=plain).encode(),
    VALUES,
    st.booleans(),
    st.booleans(),
)
DAMAGE = st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=2)), max_size=3)
BITES = b'{}[]",:\\0123456789.-+eEuntrfals \t\n\r\x00\x1f\x7f\x80\xc3\xa9\xed\xa0\x80\xf0\x9f\x98\x80\xff'


def damaged(raw: bytes, damage: list[tuple[int, bytes]]) -> bytes:
    for at, piece in damage:
        at %= len(raw) + 1
        raw = raw[:at] + piece + raw[at + 1 :]
    return raw


def exact(raw: bytes) -> bytes | None:
    try:
        return canonical.canonical(raw)
    except EarnestError:
        return None


@given(WRITTEN, DAMAGE)
@settings(max_examples=400, deadline=None)
@example(b'{"a":1,"a":2}', [])
@example(b'{"a":1,"A":2}', [])
@example(b'[1,2}', [])
@example(b'"\\ud800"', [])
@example(b'"\\ud83d\\ude00"', [])
@example(b'"\xed\xa0\x80"', [])
@example(b"01", [])
@example(b"-", [])
@example(b"1.", [])
@example(b'{"a":}', [])
@example(b'{"a" 1}', [])
@example(b"{,}", [])
@example(b"[1,]", [])
def test_a_canonical_form_is_the_one_of_the_core_or_none(raw: bytes, damage: list[tuple[int, bytes]]) -> None:
    raw = damaged(raw, damage)
    found = compiled.canonical_form(raw.strip(b" \t\r\n"))
    assert found is None or found == exact(raw)


def test_plain_arguments_have_their_form_here() -> None:
    for raw in (b"{}", b'{"b":1,"a":[2.50,{"y":null,"x":"z"}]}', b'{ "k" : "\xc3\xa4" , "j" : [ ] }', b'[true,false,-0.0,1E9]'):
        assert compiled.canonical_form(raw) == exact(raw) is not None


@given(st.lists(st.sampled_from([*"eEaArRnNsStThHoOkK/\\~%$*.jJ\"' -_x", "hooks", ".json", "earnest", "é"]), max_size=14))
@settings(max_examples=400, deadline=None)
def test_the_floor_looks_at_all_arguments_that_it_would_look_at(parts: list[str]) -> None:
    raw = "".join(parts).encode()
    assert compiled.reaches(raw) or not _worth_a_look(raw)


def test_the_floor_is_spared_what_cannot_reach_a_place() -> None:
    assert not compiled.reaches(b'{"city":"Graz","days":3}')


RESULTS = [
    b'{"resultType":"complete","content":[{"type":"text","text":"x"}],"isError":false}',
    b'{"content":[],"structuredContent":{"a":[1]},"isError":true}',
    b'{ "content" : [ { "text" : "\xc3\xa4\\n" , "type" : "text" } ] }',
]


@given(st.sampled_from(RESULTS), DAMAGE)
@settings(max_examples=400, deadline=None)
@example(b'{"content":[],"content":[]}', [])
@example(b'{"content":[{"type":"text","text":"x","_meta":{}}]}', [])
@example(b'{"content":[{"type":"text","text":"x"}],"_meta":{}}', [])
@example(b'{"isError":true}', [])
@example(b'{"content":[],"isError":null}', [])
def test_a_plain_result_is_one_that_sets_no_label(raw: bytes, damage: list[tuple[int, bytes]]) -> None:
    raw = damaged(raw, damage)
    failed = compiled.plain(raw)
    if failed is None:
        return
    read = outcome(raw)
    assert not read.malformed and read.result_type == "complete" and read.is_error is failed
    assert read.restrict.private is not True and read.restrict.untrusted is not True
    assert not (read.task_id or read.input_requests or read.request_state)


CALLS = [
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}',
    b' { "id" : "a" , "params" : { "_meta" : { "progressToken" : "p" , "traceparent" : "00-1" } , "arguments" : { } ,'
    b' "name" : "x" } , "method" : "tools/call" , "jsonrpc" : "2.0" } \r',
    b'{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x","arguments":{},'
    b'"_meta":{"baggage":"b","k":[{}],"progressToken":3}}}',
]
ANSWERS = [b'{"jsonrpc":"2.0","id":7,"result":%b}' % raw for raw in RESULTS]


@given(st.sampled_from(CALLS), DAMAGE)
@settings(max_examples=400, deadline=None)
@example(CALLS[0][:-1] + b',"id":8}', [])
@example(CALLS[0][:-1] + b',"ID":8}', [])
@example(CALLS[0][:-1] + b',"result":{}}', [])
@example(CALLS[0].replace(b"{}", b'{},"name":"y"'), [])
@example(CALLS[1].replace(b"00-1", b"\\ud800"), [])
def test_a_plain_call_is_read_as_the_long_way_reads_it(raw: bytes, damage: list[tuple[int, bytes]]) -> None:
    raw = damaged(raw, damage)
    found = compiled.call(raw)
    if found is None:
        return
    message = envelope.parse(raw)
    assert (message.kind, message.id, message.method, message.params) == ("request", found[0], "tools/call", found[1])
    params = calls.read_params(message.params)
    assert params.keys() in ({"name", "arguments"}, {"name", "arguments", "_meta"}) and params["arguments"] == found[2]
    assert found[2][:1] == b"{"
    try:
        meta = calls.Metas().read(params).members
    except WireError:
        return  # such a call lays no track, and only the values of four members may differ from those of one that did
    assert found[3] == (meta.get("progressToken", b"") if _open(meta.get("progressToken", b"")) else b"")
    key = compiled.call_key(message.params)
    assert key is not None and key.startswith(params["name"])


def _open(token: bytes) -> bool:
    return token[:1] in (b'"', *(b"%d" % n for n in range(10)))


@given(st.sampled_from(ANSWERS), DAMAGE)
@settings(max_examples=300, deadline=None)
@example(ANSWERS[0][:-1] + b',"id":8}', [])
@example(ANSWERS[0][:-1] + b',"error":{}}', [])
@example(ANSWERS[0].replace(b"7", b"07"), [])
def test_a_plain_answer_is_read_as_the_long_way_reads_it(raw: bytes, damage: list[tuple[int, bytes]]) -> None:
    raw = damaged(raw, damage)
    found = compiled.answer(raw)
    if found is None or (found[0][:1] == b"0" and len(found[0]) > 1):  # which is no trip's number
        return
    message = envelope.parse(raw)
    assert (message.kind, message.id, message.result) == ("response", found[0], found[1])
    assert compiled.plain(found[1]) is found[2]


Meta = dict[str, object]
METAS = st.fixed_dictionaries(
    {},
    optional={
        "progressToken": st.integers(-3, 3) | st.sampled_from(["a", "b", None, {}]),
        "traceparent": st.sampled_from(["00-1", "00-2", 7]),
        "tracestate": st.sampled_from(["s=1", "s=2"]),
        "baggage": st.sampled_from(["k=1", "k=2"]),
        "other": st.sampled_from(["1", 2, {"traceparent": "x"}]),
    },
)


@given(METAS, METAS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_calls_with_one_key_differ_in_their_trace_and_token_alone(one: Meta, two: Meta, spaced: bool) -> None:
    def params(meta: Meta) -> bytes:
        return json.dumps({"name": "x", "arguments": {}, "_meta": meta}, separators=SPACES[spaced]).encode()

    def rest(meta: Meta) -> list[tuple[str, object]]:
        return [(name, "open" if may_differ(name, value) else value) for name, value in meta.items()]

    def may_differ(name: str, value: object) -> bool:
        if name == "progressToken":
            return _open(json.dumps(value).encode())
        return isinstance(value, str) and name in ("traceparent", "tracestate", "baggage")

    keys = compiled.call_key(params(one)), compiled.call_key(params(two))
    assert None not in keys and (keys[0] == keys[1]) == (rest(one) == rest(two))


def test_calls_and_answers_of_each_form_are_plain() -> None:
    assert [compiled.call(raw) is not None for raw in CALLS] == [True, True, True]
    assert [compiled.answer(raw) is not None for raw in ANSWERS] == [True, True, True]


def test_results_of_text_are_plain() -> None:
    assert [compiled.plain(raw) for raw in RESULTS] == [False, True, False]


def test_any_bytes_can_be_looked_at() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        raw = bytes(chance.choices(BITES, k=chance.randrange(40)))
        compiled.canonical_form(raw), compiled.reaches(raw), compiled.plain(raw), compiled.shape(raw)
        compiled.call(raw), compiled.answer(raw), compiled.call_key(raw)
    for opening in (b"[", b'{"a":', b'{"content":[', b'{"content":[{"text":"'):
        for count in (1, 47, 48, 49, 50_000):
            compiled.canonical_form(opening * count), compiled.plain(opening * count)
    wide = json.dumps({f"k{n}": n for n in range(100)}).encode()
    assert compiled.canonical_form(wide) is None and exact(wide) is not None


def test_heads_of_one_shape_differ_in_their_length_alone() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %b\r\nA: b\r\n\r\n"
    assert compiled.shape(head % b"12") == compiled.shape(head % b"4096") == head % b""
    for length in (b"", b"-1", b" 12", b"12 ", b"1" * 10, b"0x1"):
        assert compiled.shape(head % length) is None
    assert compiled.shape(b"GET / HTTP/1.1\r\nX-Content-Length: 3\r\n\r\n") is None
    dated = b"HTTP/1.1 200 OK\r\ndate: %b\r\nContent-Length: %d\r\n\r\n"
    one, other = b"Mon, 30 Nov 2026 21:26:10 GMT", b"Tue, 01 Dec 2026 21:26:10 GMT"
    bare = dated.replace(b"%b", b"").replace(b"%d", b"")
    assert compiled.shape(dated % (one, 3)) == compiled.shape(dated % (other, 44)) == bare
    for odd in (one + b" ", one[:-4] + b"\nX:y", b"x", one[:-1] + b"\xff"):
        assert compiled.shape(dated % (odd, 3)) == (dated % (odd, 3)).replace(b": 3\r", b": \r")
    assert compiled.stream_shape(dated % (one, 3)) is None
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nDate: %b\r\n\r\n"
    assert compiled.stream_shape(chunked % one) == compiled.stream_shape(chunked % other) == chunked.replace(b"%b", b"")


def test_a_guard_holds_while_what_it_names_is_the_same() -> None:
    class Owner:
        mark: object = None
        count = 1000

    owner, held, entries = Owner(), object(), {"a": "x"}
    owner.mark = held
    guards = (
        compiled.Guard("is", owner, "mark", held),
        compiled.Guard("equals", owner, "count", 10**3),
        compiled.Guard("item", entries, "a", entries["a"]),
        compiled.Guard("lacks", entries, "b"),
    )
    assert compiled.holds(guards)
    for change, back in (
        (lambda: setattr(owner, "mark", object()), lambda: setattr(owner, "mark", held)),
        (lambda: setattr(owner, "count", 1001), lambda: setattr(owner, "count", 1000)),
        (lambda: entries.pop("a"), lambda: entries.update(a="x")),
        (lambda: entries.update(b="y"), lambda: entries.pop("b")),
    ):
        change()
        assert not compiled.holds(guards)
        back()
        assert compiled.holds(guards)
    with pytest.raises(ValueError):
        compiled.Guard("was", owner, "mark")
