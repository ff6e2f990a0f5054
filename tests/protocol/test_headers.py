"""Headers repeat the body or are refused; what is generated is accepted."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.protocol import bridge, headers
from earnest.protocol.calls import read_params
from earnest.protocol.envelope import WireError
from earnest.protocol.headers import Declared, check, declared, decode_value, encode_value, generate
from earnest.protocol.methods import Method, lookup
from properties import examples

V = "2026-07-28"
REGION = Declared(("region",), "Region", "string")
COUNT = Declared(("page", "count"), "Count", "integer")
DRY = Declared(("dry",), "Dry", "boolean")
SCHEMA = (REGION, COUNT, DRY)


def row(name: str) -> Method:
    found = lookup(name, "modern")
    assert found is not None
    return found


CALL = row("tools/call")


def params(**arguments: Any) -> dict[str, bytes]:
    return read_params(json.dumps({"name": "t", "arguments": arguments}).encode())


def lines(*extra: tuple[str, str]) -> list[tuple[str, str]]:
    return [("MCP-Protocol-Version", V), ("mcp-method", "tools/call"), ("MCP-NAME", "t"), *extra]


@pytest.mark.parametrize("value", ["", "a b", "é", " x", "x ", "=?base64?eA==?=", "a\tb", "a\r\nX: y", "日本", "="])
def test_values_survive_both_ways(value: str) -> None:
    coded = encode_value(value)
    assert coded.isascii() and coded.isprintable() and coded == coded.strip()
    assert decode_value(coded) == value


@pytest.mark.parametrize("value", ["=?base64?e?=", "=?base64?eB==?=", "=?base64?/w==?=", "=?base64?e A==?="])
def test_malformed_base64_means_nothing(value: str) -> None:
    assert decode_value(value) is None


@settings(max_examples=examples(100))
@given(st.text(st.characters(codec="utf-8")))
def test_every_value_survives(value: str) -> None:
    assert decode_value(encode_value(value)) == value


def test_accepts_headers_that_repeat_the_body_and_keeps_the_others_aside() -> None:
    given_lines = lines(
        ("Mcp-Param-Region", "eu"),
        ("mcp-param-count", "42"),
        ("MCP-PARAM-DRY", "true"),
        ("Mcp-Param-Later", "x"),
    )
    body = params(region="eu", page={"count": 42.0}, dry=True)
    assert check(given_lines, CALL, "tools/call", body, V, SCHEMA) == (("Mcp-Param-Later", "x"),)


def test_an_unknown_definition_forwards_all_params() -> None:
    assert check(lines(("Mcp-Param-A", "1")), CALL, "tools/call", params(), V, None) == (("Mcp-Param-A", "1"),)


@pytest.mark.parametrize(
    ("given_lines", "arguments"),
    [
        ([], {}),
        (lines()[1:], {}),
        ([("MCP-Protocol-Version", "2025-11-25"), *lines()[1:]], {}),
        ([lines()[0], ("Mcp-Method", "tools/list"), lines()[2]], {}),
        ([lines()[0], ("Mcp-Method", "Tools/Call"), lines()[2]], {}),
        (lines()[:2], {}),
        ([*lines()[:2], ("Mcp-Name", "T")], {}),
        ([*lines()[:2], ("Mcp-Name", "=?base64?dQ==?=")], {}),
        (lines(("mcp-name", "t")), {}),
        (lines(("mcp-method", "tools/call")), {}),
        (lines(), {"region": "eu"}),
        (lines(("Mcp-Param-Region", "us")), {"region": "eu"}),
        (lines(("Mcp-Param-Region", "eu")), {}),
        (lines(("Mcp-Param-Region", "eu")), {"region": None}),
        (lines(("Mcp-Param-Region", "eu"), ("mcp-param-region", "eu")), {"region": "eu"}),
        (lines(("Mcp-Param-Count", "43")), {"page": {"count": 42}}),
        (lines(("Mcp-Param-Count", "4.2e1")), {"page": {"count": 42}}),
        (lines(("Mcp-Param-Count", "1.5")), {"page": {"count": 1.5}}),
        (lines(("Mcp-Param-Count", "9007199254740993")), {"page": {"count": 9007199254740993}}),
        (lines(("Mcp-Param-Dry", "True")), {"dry": True}),
    ],
)
def test_refuses_a_mismatch(given_lines: list[tuple[str, str]], arguments: dict[str, Any]) -> None:
    with pytest.raises(WireError) as caught:
        check(given_lines, CALL, "tools/call", params(**arguments), V, SCHEMA, b"9")
    assert (caught.value.rpc_code, caught.value.http_status, caught.value.id) == (-32020, 400, b"9")


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("resources/read", b'{"uri":"file:///\xc3\xa9"}', "=?base64?ZmlsZTovLy/DqQ==?="),
        ("prompts/get", b'{"name":"p"}', "p"),
        ("tasks/get", b'{"taskId":"7"}', "7"),
        ("tools/list", b"{}", None),
    ],
)
def test_the_name_of_the_object_is_repeated(name: str, body: bytes, expected: str | None) -> None:
    made = generate(row(name), name, read_params(body), V)
    assert dict(made).get("Mcp-Name") == expected
    assert check(made, row(name), name, read_params(body), V, ()) == ()


def test_a_renamed_tool_gets_a_new_header() -> None:
    body = read_params(b'{"name":"files/read","arguments":{"region":"eu"}}')
    made = generate(CALL, "tools/call", body, V, SCHEMA, [("Mcp-Param-X", "1"), ("mcp-param-region", "stale")])
    assert made == [
        ("MCP-Protocol-Version", V),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "files/read"),
        ("Mcp-Param-Region", "eu"),
        ("Mcp-Param-X", "1"),
    ]


VALUE = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8"), max_size=6)


@settings(max_examples=examples(150))
@given(VALUE, VALUE, VALUE)
def test_what_is_generated_is_accepted(region: Any, count: Any, dry: Any) -> None:
    body = params(region=region, page={"count": count}, dry=dry)
    made = generate(CALL, "tools/call", body, V, SCHEMA)
    assert check(made, CALL, "tools/call", body, V, SCHEMA) == ()


def schema(**properties: Any) -> bytes:
    return json.dumps({"type": "object", "properties": properties}).encode()


def test_reads_declarations_through_nested_properties() -> None:
    nested = {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}}
    found = declared(schema(region={"type": "string", "x-mcp-header": "Region"}, page=nested))
    assert set(found) == {REGION, COUNT}


@pytest.mark.parametrize(
    "bad",
    [
        schema(a={"type": "number", "x-mcp-header": "A"}),
        schema(a={"type": ["string"], "x-mcp-header": "A"}),
        schema(a={"x-mcp-header": "A"}),
        schema(a={"type": "string", "x-mcp-header": ""}),
        schema(a={"type": "string", "x-mcp-header": "A B"}),
        schema(a={"type": "string", "x-mcp-header": 1}),
        schema(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
        schema(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
        schema(a={"anyOf": [{"type": "string", "x-mcp-header": "A"}]}),
        b'{"x-mcp-header":"A","type":"string"}',
        b'{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}',
        b"{",
    ],
)
def test_a_bad_declaration_drops_the_tool(bad: bytes) -> None:
    with pytest.raises(EarnestError) as caught:
        declared(bad)
    assert caught.value.code == "E1330"


def test_data_in_a_schema_is_no_declaration() -> None:
    assert declared(schema(a={"type": "string", "default": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": 1}]})) == ()
    assert declared(b"true") == ()


def test_agrees_with_the_official_implementation() -> None:
    official = pytest.importorskip("mcp.shared.inbound")
    for value in ("plain", "é", " a", "=?base64?x?=", "a\nb"):
        assert official.encode_header_value(value) == encode_value(value)
    for name, spelled in (("VERSION", "MCP_PROTOCOL_VERSION_HEADER"), ("METHOD", "MCP_METHOD_HEADER")):
        assert getattr(headers, name).lower() == getattr(official, spelled)


def test_the_official_server_accepts_what_is_generated_for_a_bridged_call() -> None:
    official = pytest.importorskip("mcp.shared.inbound")
    raw = read_params('{"name":"té","arguments":{"region":" eu"}}'.encode())
    made = bridge.params_to(True, CALL, raw, bridge.ClientFacts())
    lines = generate(CALL, "tools/call", read_params(made), V, SCHEMA)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": json.loads(made)}
    folded = {name.lower(): value for name, value in lines}
    assert isinstance(official.classify_inbound_request(request, headers=folded), official.InboundModernRoute)
