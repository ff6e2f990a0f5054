"""The bridge changes what the other era requires, and no other byte."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.canonical import members
from earnest.protocol import bridge
from earnest.protocol.bridge import Carries, ClientFacts, crossing
from earnest.protocol.envelope import WireError
from earnest.protocol.methods import Era, Method, lookup
from properties import examples

CLIENT = ClientFacts(b'{"experimental":{"x":{}}}', b'{"name":"c","version":"1"}')
IO = "io.modelcontextprotocol/"


def row(name: str, era: Era = "modern") -> Method:
    found = lookup(name, era)
    assert found is not None
    return found


CALL = row("tools/call")


def to(modern: bool, name: str, value: Any) -> Any:
    return json.loads(bridge.result_to(modern, row(name), json.dumps(value).encode()))


# requests


def test_a_legacy_call_gets_what_the_modern_era_requires() -> None:
    raw = b'{"name":"t","arguments":{"id":9223372036854775807,"z":-0.0,"e":1E2},"_meta":{"progressToken":7,"a/b":1.10}}'
    made = bridge.params_to(True, CALL, members(raw), CLIENT)
    seen = members(made)
    assert seen["arguments"] == b'{"id":9223372036854775807,"z":-0.0,"e":1E2}'
    meta = members(seen["_meta"])
    assert meta["progressToken"] == b"7" and meta["a/b"] == b"1.10"
    assert meta[IO + "protocolVersion"] == b'"2026-07-28"'
    assert meta[IO + "clientCapabilities"] == CLIENT.capabilities
    assert meta[IO + "clientInfo"] == CLIENT.info
    assert IO + "logLevel" not in meta


def test_a_client_cannot_smuggle_modern_meta_through_a_legacy_session() -> None:
    raw = members(
        b'{"name":"t","_meta":{"%bclientCapabilities":{"elicitation":{}},"%blogLevel":"debug"}}' % (IO.encode(), IO.encode())
    )
    meta = json.loads(bridge.params_to(True, CALL, raw, ClientFacts()))["_meta"]
    assert meta == {IO + "protocolVersion": "2026-07-28", IO + "clientCapabilities": {}}


def test_a_modern_call_loses_what_the_legacy_era_does_not_know() -> None:
    meta = {IO + "protocolVersion": "2026-07-28", IO + "clientCapabilities": {}, IO + "clientInfo": {}, IO + "logLevel": "info"}
    call = {"name": "t", "arguments": {"a": 1}, "inputResponses": {}, "requestState": "s", "future": [1]}
    bare = json.loads(bridge.params_to(False, CALL, members(json.dumps({**call, "_meta": meta}).encode()), CLIENT))
    assert bare == {"name": "t", "arguments": {"a": 1}, "future": [1]}
    kept = {**call, "_meta": {**meta, "progressToken": "p", "traceparent": "00"}}
    assert json.loads(bridge.params_to(False, CALL, members(json.dumps(kept).encode()), CLIENT))["_meta"] == {
        "progressToken": "p",
        "traceparent": "00",
    }


def test_there_and_back_gives_the_same_call() -> None:
    raw = b'{"name":"t","arguments":{"n":1.0},"_meta":{"progressToken":1}}'
    there = bridge.params_to(True, CALL, members(raw), CLIENT)
    assert bridge.params_to(False, CALL, members(there), CLIENT) == raw


def test_the_log_level_of_a_session_travels_with_each_request() -> None:
    meta = json.loads(bridge.params_to(True, row("tools/list"), {}, ClientFacts(log_level="warning")))["_meta"]
    assert meta[IO + "logLevel"] == "warning"


def test_params_are_valid_for_the_official_sdk() -> None:
    methods = pytest.importorskip("mcp_types.methods")
    for name, params in (
        ("tools/call", b'{"name":"t"}'),
        ("tools/list", b"{}"),
        ("resources/read", b'{"uri":"file:///x"}'),
        ("prompts/get", b'{"name":"p"}'),
    ):
        made = json.loads(bridge.params_to(True, row(name), members(params), CLIENT))
        model = methods.CLIENT_REQUESTS[name, "2026-07-28"]
        model.model_validate({"jsonrpc": "2.0", "id": 1, "method": name, "params": made})


@pytest.mark.parametrize(
    ("name", "era", "how"),
    [
        ("tools/call", "legacy", "pass"),
        ("completion/complete", "modern", "pass"),
        ("tools/resolve", "modern", "here"),
        ("ping", "legacy", "here"),
        ("server/discover", "modern", "here"),
        ("logging/setLevel", "legacy", "here"),
        ("subscriptions/listen", "modern", "here"),
        ("notifications/cancelled", "legacy", "here"),
        ("tasks/get", "legacy", "no"),
        ("tasks/update", "modern", "no"),
    ],
)
def test_crossing(name: str, era: Era, how: str) -> None:
    assert crossing(row(name, era)) == how


# results


def test_a_legacy_result_becomes_complete_and_uncacheable() -> None:
    assert to(True, "tools/call", {"content": []}) == {"content": [], "resultType": "complete"}
    assert to(True, "tools/list", {"tools": [], "nextCursor": "x"}) == {
        "tools": [],
        "nextCursor": "x",
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    assert to(True, "resources/read", {"contents": [], "ttlMs": 5, "cacheScope": "public"})["cacheScope"] == "private"


def test_a_legacy_server_cannot_smuggle_a_request_through_a_result() -> None:
    smuggled = {"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create"}}, "requestState": "s"}
    assert to(True, "tools/call", {**smuggled, "content": []}) == {"resultType": "complete", "content": []}


def test_a_modern_result_loses_only_what_is_new() -> None:
    listed = {"tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "_meta": {"a": 1}, "x": 1}
    assert to(False, "tools/list", listed) == {"tools": [], "_meta": {"a": 1}, "x": 1}
    # A tool may have a member of that name.
    assert to(False, "tools/call", {"content": [], "resultType": "complete", "ttlMs": 5}) == {"content": [], "ttlMs": 5}


@pytest.mark.parametrize("kind", ["input_required", "task", "other", 7])
def test_a_result_that_has_no_form_there_is_an_error_and_never_passed_on(kind: Any) -> None:
    value = {"resultType": kind, "inputRequests": {"a": {"method": "roots/list"}}}
    told = to(False, "tools/call", value)
    assert told["isError"] is True and "inputRequests" not in told
    with pytest.raises(WireError) as caught:
        to(False, "resources/read", value)
    assert caught.value.rpc_code == -32603


@pytest.mark.parametrize("raw", [b"", b"[]", b"7", b'{"a":1,"a":2}', b"{"])
@pytest.mark.parametrize("modern", [False, True])
def test_garbage_is_not_passed_on(raw: bytes, modern: bool) -> None:
    with pytest.raises(WireError):
        bridge.result_to(modern, CALL, raw)


def test_numbers_survive_both_ways() -> None:
    structured = b'{"id":9007199254740993,"n":2005000002,"f":1.10}'
    raw = b'{"content":[{"type":"text","text":"9007199254740993"}],"structuredContent":' + structured + b"}"
    there = bridge.result_to(True, CALL, raw)
    assert structured in there
    assert bridge.result_to(False, CALL, there) == raw


def test_structured_content_that_is_no_object_becomes_text_where_nothing_else_tells_it() -> None:
    complete = {"resultType": "complete"}
    assert to(False, "tools/call", {**complete, "content": [], "structuredContent": [1, 2]}) == {
        "content": [{"type": "text", "text": "[1, 2]"}]
    }
    told = [{"type": "text", "text": "two"}]
    assert to(False, "tools/call", {**complete, "content": told, "structuredContent": 2}) == {"content": told}
    assert to(False, "tools/call", {**complete, "content": told, "structuredContent": {"a": 1}})["structuredContent"] == {
        "a": 1
    }


def test_hints_and_unknown_fields_survive_and_only_an_impossible_output_schema_goes() -> None:
    plain = (
        b'{"name":"x","annotations":{"readOnlyHint":true,"category":"input","futureHint":[1]},'
        b'"_meta":{"a.example/k": 1},"unknownTopLevel":{"z":1},"outputSchema":{"type":"object"}}'
    )
    listed = (
        b'{"resultType":"complete","ttlMs":1,"cacheScope":"private","tools":[%b,{"name":"y","outputSchema":{"type":"array"}}]}'
        % plain
    )
    made = bridge.result_to(False, row("tools/list"), listed)
    assert made == b'{"tools":[' + plain + b',{"name":"y"}]}'
    assert plain in bridge.result_to(True, row("tools/list"), b'{"tools":[' + plain + b"]}")


def test_results_are_valid_for_the_official_sdk() -> None:
    methods = pytest.importorskip("mcp_types.methods")
    for name, legacy in (
        ("tools/call", {"content": []}),
        ("tools/list", {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        ("resources/read", {"contents": []}),
        ("prompts/list", {"prompts": []}),
        ("prompts/get", {"messages": []}),
        ("resources/templates/list", {"resourceTemplates": []}),
        ("completion/complete", {"completion": {"values": []}}),
    ):
        methods.parse_server_result(name, "2026-07-28", to(True, name, legacy))
        methods.parse_server_result(name, "2025-11-25", to(False, name, to(True, name, legacy)))


VALUE = st.sampled_from(["{}", "1.10", '"s"', "[ ]", "null", "9007199254740993"])
NAMES = ["a", "content", "structuredContent", "_meta", "nextCursor", "é"]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), VALUE),
    st.sampled_from(["tools/call", "tools/list", "prompts/get", "resources/read"]),
)
def test_legacy_there_and_back_is_the_same_result(result: dict[str, str], name: str) -> None:
    raw = ("{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{value}" for key, value in result.items()) + "}").encode()
    there = bridge.result_to(True, row(name), raw)
    back = members(bridge.result_to(False, row(name), there))
    expected = members(raw)
    if name == "tools/call" and expected.get("structuredContent", b"{}")[:1] != b"{":
        return  # no legacy result; its change is tested above
    assert back == expected


# errors


@pytest.mark.parametrize(
    ("modern", "code", "becomes"),
    [
        (True, -32002, -32602),
        (True, -32042, -32603),
        (True, -32022, -32603),
        (True, -32601, -32601),
        (True, -32000, -32000),
        (True, 1234, 1234),
        (False, -32020, -32603),
        (False, -32022, -32603),
        (False, -32602, -32602),
    ],
)
def test_errors(modern: bool, code: int, becomes: int) -> None:
    made = bridge.error_to(modern, b'{"code":%d,"message":"m","data":{"n":1.10},"x":1}' % code)
    assert made == b'{"code":%d,"message":"m","data":{"n":1.10},"x":1}' % becomes


def test_a_missing_resource_has_its_old_code_in_the_legacy_era() -> None:
    raw = b'{"code":-32602,"message":"m","data":{"uri":"u"}}'
    assert json.loads(bridge.error_to(False, raw, row("resources/read")))["code"] == -32002
    assert json.loads(bridge.error_to(False, raw, CALL))["code"] == -32602
    assert json.loads(bridge.error_to(False, b'{"code":-32602,"message":"m"}', row("resources/read")))["code"] == -32602


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"code":"x","message":3}', b'{"code":1,"code":2}'])
def test_a_malformed_error_is_an_internal_one(raw: bytes) -> None:
    made = json.loads(bridge.error_to(True, raw))
    assert isinstance(made["code"], int) and isinstance(made["message"], str)


# notifications


def note(modern: bool, method: str, params: Any = ..., subscription: bytes = b"") -> Any:
    raw = bridge.notification_to(modern, method, b"" if params is ... else json.dumps(params).encode(), subscription)
    return None if raw is None else json.loads(raw)


def test_progress_passes_byte_for_byte_both_ways() -> None:
    params = b'{"progressToken": "p","progress":0.10,"x":null}'
    for modern in (False, True):
        raw = bridge.notification_to(modern, "notifications/progress", params)
        assert raw == b'{"jsonrpc":"2.0","method":"notifications/progress","params":' + params + b"}"


def test_list_changes_need_a_subscription_in_the_modern_era() -> None:
    method = "notifications/tools/list_changed"
    assert note(False, method) == {"jsonrpc": "2.0", "method": method}
    assert note(True, method) is None
    assert note(True, method, ..., b"5")["params"] == {"_meta": {IO + "subscriptionId": 5}}
    assert note(True, method, {"_meta": {IO + "subscriptionId": "theirs", "a": 1}}, b'"mine"')["params"] == {
        "_meta": {"a": 1, IO + "subscriptionId": "mine"}
    }


def test_the_subscription_id_of_a_modern_server_stays_on_its_side() -> None:
    told = note(False, "notifications/resources/updated", {"_meta": {IO + "subscriptionId": 1}, "uri": "u"})
    assert told["params"] == {"uri": "u"}


@pytest.mark.parametrize(
    ("modern", "method"),
    [
        (True, "notifications/elicitation/complete"),
        (True, "notifications/tasks/status"),
        (False, "notifications/subscriptions/acknowledged"),
        (True, "notifications/cancelled"),
        (False, "notifications/cancelled"),
        (False, "notifications/unheard_of"),
        (True, "tools/list"),
    ],
)
def test_what_the_other_era_does_not_know_is_not_sent(modern: bool, method: str) -> None:
    assert note(modern, method, {}) is None


# capabilities


def test_only_what_the_bridge_carries_is_advertised() -> None:
    server = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {},
        "completions": {},
        "logging": {},
        "tasks": {"list": {}},
        "extensions": {IO + "tasks": {}, IO + "ui": {"mimeTypes": ["a"]}},
        "experimental": {"x": {}},
        "future": {"y": 1},
    }
    for modern in (False, True):
        made = json.loads(bridge.server_capabilities_to(modern, json.dumps(server).encode()))
        assert made == {
            "tools": {"listChanged": True},
            "resources": {"listChanged": True},
            "prompts": {},
            "completions": {},
            "extensions": {IO + "ui": {"mimeTypes": ["a"]}},
            "experimental": {"x": {}},
            "future": {"y": 1},
        }
        more = json.loads(
            bridge.server_capabilities_to(modern, json.dumps(server).encode(), Carries(logging=True, resources=True))
        )
        assert more["logging"] == {} and more["resources"]["subscribe"] is True and "tasks" not in more


def test_a_client_is_not_said_to_answer_what_cannot_reach_it() -> None:
    client = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}, "tasks": {}, "experimental": {"x": {}}}
    raw = json.dumps(client).encode()
    for modern in (False, True):
        assert json.loads(bridge.client_capabilities_to(modern, raw)) == {"experimental": {"x": {}}}
    asked = json.loads(bridge.client_capabilities_to(True, raw, Carries(asking=True)))
    assert asked == {"sampling": {}, "elicitation": {}, "roots": {}, "experimental": {"x": {}}}
    assert json.loads(bridge.client_capabilities_to(False, b"")) == {}


def test_hellos_are_valid_for_the_official_sdk() -> None:
    types = pytest.importorskip("mcp_types")
    info = b'{"name":"s","version":"1"}'
    discovered = types.DiscoverResult.model_validate_json(bridge.discover_result(b'{"tools":{}}', info, "do"))
    assert discovered.instructions == "do" and "2026-07-28" in discovered.supported_versions
    initialized = types.InitializeResult.model_validate_json(bridge.initialize_result("2025-06-18", b"", b"", ""))
    assert initialized.protocol_version == "2025-06-18" and initialized.instructions is None
