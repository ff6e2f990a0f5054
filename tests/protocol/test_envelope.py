"""The envelope: what is read, what is refused, and that what is written is what was read."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.protocol import envelope
from earnest.protocol.envelope import Limits, Message, WireError, parse
from properties import examples


def refused(data: bytes, limits: Limits = envelope.DEFAULT_LIMITS) -> WireError:
    with pytest.raises(WireError) as caught:
        parse(data, limits)
    return caught.value


PLAYBOOK: list[tuple[bytes, Message]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Message("request", b"1", "ping")),
    (
        b'{"method":"tools/call","params":{"b":1.10,"a":[ 1 ]},"jsonrpc":"2.0","id":"x"}',
        Message("request", b'"x"', "tools/call", b'{"b":1.10,"a":[ 1 ]}'),
    ),
    (b' {"jsonrpc": "2.0", "id": -7, "method": "a\\/b"}\n', Message("request", b"-7", "a/b")),
    (b'{"jsonrpc":"2.0","method":"n","params":null}', Message("notification", b"", "n")),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', Message("response", b"1", result=b"{}")),
    (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
        Message("error", b"", error=b'{"code":-32700,"message":"x"}'),
    ),
    (
        b'{"jsonrpc":"2.0","error":{"code":1,"message":""}}',
        Message("error", error=b'{"code":1,"message":""}'),
    ),
    (b'{"jsonrpc":"2.0","id":"\\u0061","result":1}', Message("response", b'"a"', result=b"1")),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"trace":7}', Message("response", b"1", result=b"{}")),
    ('{"jsonrpc":"2.0","id":"é","method":"m"}'.encode(), Message("request", '"é"'.encode(), "m")),
]


@pytest.mark.parametrize(("data", "message"), PLAYBOOK)
def test_reads(data: bytes, message: Message) -> None:
    assert parse(data) == message
    assert parse(envelope.write(message)) == message


REFUSED: list[tuple[bytes, int, bytes]] = [
    (b"", -32700, b""),
    (b"garbage", -32700, b""),
    (b"\xef\xbb\xbf{}", -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}', -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\udc00"}}', -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800x"}}', -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}', -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', -32700, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":"m"} {}', -32700, b""),
    (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', -32600, b""),
    (b"7", -32600, b""),
    (b'{"id":1,"method":"m"}', -32600, b"1"),
    (b'{"jsonrpc":"1.0","id":1,"method":"m"}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":null,"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":1e3,"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":true,"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 2000 + b'","method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":' + b"1" * 2000 + b',"method":"m"}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":3}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":1,"method":""}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"params":{}}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","result":{}}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":null,"result":{}}', -32600, b""),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"error":"no"}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', -32602, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1},"params":{"x":2}}', -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"a"}', -32600, b"1"),
    ('{"jsonrpc":"2.0","id":1,"method":"a","ｐａｒａｍｓ":{}}'.encode(), -32600, b"1"),
    (b'{"jsonrpc":"2.0","id":1,"Id":2,"method":"a"}', -32600, b"1"),
]


@pytest.mark.parametrize(("data", "code", "id"), REFUSED)
def test_refuses(data: bytes, code: int, id: bytes) -> None:
    reason = refused(data)
    assert (reason.rpc_code, reason.id) == (code, id)
    answer = json.loads(reason.answer())
    assert answer["error"]["code"] == code
    assert answer["id"] == (json.loads(id) if id else None)


def test_says_of_a_batch_that_only_one_revision_had_them() -> None:
    assert "2025-03-26" in refused(b"[]").message


def test_size_limit_names_itself() -> None:
    reason = refused(b'{"jsonrpc":"2.0","id":1,"method":"m"}', Limits(max_bytes=10))
    assert (reason.code, reason.http_status) == ("E1706", 413)
    assert "limit of 10" in reason.message


@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_depth_limit_is_exact(pair: tuple[bytes, bytes]) -> None:
    head, tail = pair
    step = head.count(b"[") + head.count(b"{")

    def nested(rounds: int) -> bytes:
        params = head * rounds + b'"[[[{{{"' + tail * rounds
        return b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"v":' + params + b"}}"

    assert parse(nested(10), Limits(max_depth=10 * step + 2)).kind == "request"
    assert refused(nested(10), Limits(max_depth=10 * step + 1)).code == "E1303"
    assert refused(nested(50_000)).code == "E1303"


def test_many_shallow_brackets_are_not_deep() -> None:
    flat = b"[" + b",".join([b"[]"] * 5000) + b"]"
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":' + flat + b"}").result == flat


def test_brackets_in_strings_are_not_depth() -> None:
    for text in (b'"[[[[[["', b'"a\\\\"', b'"\\"[[[["', b'"\\\\\\"[[["', b'"\\n[[[["'):
        params = b'{"v":[%b,{"%b":[]}]}' % (text, text[1:-1])
        assert envelope.depth_exceeds(params, 3) and not envelope.depth_exceeds(params, 4)


def test_one_line_changes_no_value() -> None:
    pretty = b'{\r\n "a": "x\\ny",\n "b": [1,\n2.50]\n}'
    line = envelope.one_line(pretty)
    assert b"\n" not in line and b"\r" not in line
    assert json.loads(line) == json.loads(pretty)
    assert envelope.one_line(b"{}") == b"{}"


def test_failure_reads_and_survives_garbage() -> None:
    assert envelope.failure(b'{"code":-32022,"message":"v","data":{"supported":[]}}') == envelope.Failure(
        -32022, "v", b'{"supported":[]}'
    )
    for bad in (b"{}", b'{"code":"x"}', b"[]", b"", b"\xff"):
        assert envelope.failure(bad).code == envelope.INTERNAL_ERROR


def test_numbers_pass_byte_for_byte() -> None:
    arguments = b'{"id":9223372036854775807,"z":-0.0,"e":1E2}'
    params = b'{"name":"t","arguments":' + arguments + b"}"
    message = parse(envelope.request(b"5", "tools/call", params))
    assert message.params == params
    structured = b'{"id":9007199254740993,"n":2005000002,"f":1.10}'
    body = b'{"content":[{"type":"text","text":"9007199254740993"}],"structuredContent":' + structured + b"}"
    assert parse(envelope.result(b"5", body)).result == body


NAMES = ["jsonrpc", "id", "method", "params", "result", "error", "Method", "ID", "extra", "ｉｄ", "param"]
VALUES = ['"2.0"', "1", '"a"', "null", '"tools/call"', "{}", '{"a":1,"a":2}', "[]", "1.5", '{"code":1}']
SPACES = st.sampled_from(["", "", "", " ", "\n"])


def reference(text: str) -> bool:
    """Whether a message is acceptable, by looking at every name with a parser that keeps duplicates."""
    pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=lambda found: found)
    names = [name for name, _ in pairs]
    folded = [unicodedata.normalize("NFKC", name).casefold() for name in names]
    known = {"jsonrpc", "id", "method", "params", "result", "error"}
    if len(set(folded)) != len(folded):
        return False
    return all(name in known or fold not in known for name, fold in zip(names, folded, strict=True))


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=5),
    SPACES,
    SPACES,
    st.integers(0, 5),
)
def test_cheap_look_for_duplicates_equals_the_exact_one(pairs: list[tuple[str, str]], before: str, after: str, at: int) -> None:
    all_pairs = [*pairs[:at], ("jsonrpc", '"2.0"'), ("method", '"m"'), *pairs[at:]]
    text = "{" + ",".join(f'{before}"{name}"{after}:{value}' for name, value in all_pairs) + "}"
    try:
        parse(text.encode())
    except WireError:
        return  # refused for this or another reason; the property is that nothing ambiguous gets through
    assert reference(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers() | st.text(max_size=10).filter(_encodable),
    st.text(min_size=1, max_size=10).filter(_encodable),
    st.dictionaries(st.text(max_size=6), JSON, max_size=4).filter(_encodable),
    st.booleans(),
    st.booleans(),
)
def test_what_is_forwarded_parses_equal_to_what_was_judged(
    id: int | str, method: str, params: dict[str, Any], ascii: bool, spaced: bool
) -> None:
    separators = None if spaced else (",", ":")
    judged = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    text = json.dumps(judged, ensure_ascii=ascii, separators=separators).encode()
    message = parse(text)
    again = envelope.write(message)
    assert parse(again) == message
    assert json.loads(again) == json.loads(text)


@pytest.mark.parametrize("size", [0, 100_000])
@pytest.mark.parametrize("text", ["[]" * 64 + "{}" * 64, "[]" * 64 + "{}" * 65, "", "{" * 129, "[" * 129])
def test_brackets_are_counted_alike_in_small_and_large_texts(text: str, size: int) -> None:
    data = b"x" * size + text.encode()
    assert envelope.many_brackets(data, 128) is (data.count(b"{") + data.count(b"[") > 128)


@pytest.mark.parametrize(
    ("raw", "code", "message"),
    [
        (b"{}", envelope.INTERNAL_ERROR, "malformed error"),
        (b'{"code":"7","message":"no"}', envelope.INTERNAL_ERROR, "malformed error"),
        (b'{"code":-32000}', -32000, "the server gave no reason"),
        (b'{"code":-32000,"message":null}', envelope.INTERNAL_ERROR, "malformed error"),
    ],
)
def test_an_error_that_is_none_is_written_anew(raw: bytes, code: int, message: str) -> None:
    assert json.loads(envelope.whole_error(raw)) == {"code": code, "message": message}


def test_an_error_with_code_and_message_stays_as_it_came() -> None:
    raw = b'{ "message":"no", "code":-1, "more":1.0, "data":{"a":1} }'
    assert envelope.whole_error(raw) == raw
