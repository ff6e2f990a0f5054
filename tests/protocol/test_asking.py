"""What an answer is worth: only a person's, only to this question, and only in time."""

import json
from typing import Any

import pytest

from earnest.core.canonical import members
from earnest.protocol import asking
from earnest.protocol.asking import Answer, State, form, read_answer, read_retry

QUESTION = form("Send mail?", "7F3K")
EARLIER = form("Send mail?", "A1B2")


def answer(result: Any, elapsed_s: float = 4.0) -> Answer:
    return read_answer(None if result is None else json.dumps(result).encode(), QUESTION, elapsed_s)


ACCEPT: list[Any] = [
    {"action": "accept", "content": {}},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": {"answer": None}},
    {"action": "accept", "content": {"answer": ""}},
    {"action": "accept", "content": {"answer": True}},
    {"action": "accept", "content": {"answer": EARLIER.yes}},
    {"action": "accept", "content": {"answer": EARLIER.no}},
    {"action": "accept", "content": {"answer": "once"}},
    {"action": "accept", "content": {"answer": [QUESTION.yes]}},
    {"action": "accept", "content": {"Answer": QUESTION.yes}},
    {"action": "accept", "content": [QUESTION.yes]},
    {"action": "ACCEPT", "content": {"answer": QUESTION.yes}},
    {"content": {"answer": QUESTION.yes}},
    {"action": "cancel"},
    {"action": 1},
    [],
    None,
]


@pytest.mark.parametrize("result", ACCEPT)
def test_an_accept_without_the_right_echo_is_nobody(result: Any) -> None:
    assert answer(result).verdict == "nobody"


def test_the_right_echo_is_a_yes_and_its_twin_a_no() -> None:
    assert answer({"action": "accept", "content": {"answer": QUESTION.yes}}).verdict == "yes"
    assert answer({"action": "accept", "content": {"answer": QUESTION.no}}).verdict == "no"


def test_two_answers_in_one_are_nobody() -> None:
    raw = b'{"action":"accept","content":{"answer":"no-7F3K","answer":"once-7F3K"}}'
    assert read_answer(raw, QUESTION, 4.0).verdict == "nobody"


@pytest.mark.parametrize("elapsed_s", [0.0, 0.005, 0.499, float("nan"), -1.0])
@pytest.mark.parametrize(
    "result",
    [{"action": "decline"}, {"action": "accept", "content": {"answer": QUESTION.yes}}, {"action": "cancel"}],
)
def test_faster_than_a_person_is_nobody(result: Any, elapsed_s: float) -> None:
    got = answer(result, elapsed_s)
    assert got.verdict == "nobody"
    assert "decline" not in got.why


def test_a_decline_after_reading_time_is_a_no() -> None:
    assert answer({"action": "decline"}, 4.0).verdict == "no"
    assert answer({"action": "decline"}, 0.5).verdict == "no"
    assert read_answer(b'{"action":"decline"}', QUESTION, 4.0, floor_s=5.0).verdict == "nobody"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_form_has_one_required_string_of_two_values(version: str) -> None:
    params = json.loads(asking.elicitation(QUESTION, version))
    assert params["message"] == "Send mail?"
    assert params.get("mode", "form") == "form" and ("mode" in params) == (version > "2025-06-18")
    schema = params["requestedSchema"]
    assert schema["required"] == ["answer"] and list(schema["properties"]) == ["answer"]
    field = schema["properties"]["answer"]
    assert field["type"] == "string" and "default" not in field
    assert field["enum"] == ["no-7F3K", "once-7F3K"]
    titles = field.get("enumNames") or [choice["title"] for choice in field["oneOf"]]
    assert titles == ["No", "Yes, once"]


def test_the_form_is_valid_for_the_official_sdk() -> None:
    types = pytest.importorskip("mcp_types")
    for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
        types.ElicitRequestFormParams.model_validate_json(asking.elicitation(QUESTION, version))
    types.InputRequiredResult.model_validate_json(asking.input_required(QUESTION, "2026-07-28", "sealed"))


def test_a_nonce_that_can_repeat_is_refused() -> None:
    with pytest.raises(ValueError):
        form("x", "abc")


STATE = State("ap1", "ann", "tools/call", "d1", QUESTION.yes, QUESTION.no, 1_000, 61_000, upstream="u\u00e9")
BOUND: dict[str, Any] = {"principal": "ann", "method": "tools/call", "digest": "d1", "now_ms": 5_000}


def sealer(plain: bytes) -> str:
    return "v1." + plain.hex()


def opener(sealed: str) -> bytes | None:
    return bytes.fromhex(sealed[3:]) if sealed.startswith("v1.") else None


def raw_state() -> bytes:
    return json.dumps(asking.seal(STATE, sealer)).encode()


def test_a_sealed_state_comes_back() -> None:
    assert asking.unseal(raw_state(), opener, **BOUND) == STATE


@pytest.mark.parametrize(
    "change",
    [{"principal": "bob"}, {"method": "prompts/get"}, {"digest": "d2"}, {"now_ms": 61_000}, {"now_ms": 999}],
)
def test_a_state_of_another_request_is_none(change: dict[str, Any]) -> None:
    assert asking.unseal(raw_state(), opener, **{**BOUND, **change}) is None


@pytest.mark.parametrize("raw", [b"", b"null", b"7", b'"other"', b'"v1.7b7d"', b'"v1.00"'])
def test_a_state_that_is_not_ours_is_none(raw: bytes) -> None:
    assert asking.unseal(raw, opener, **BOUND) is None


def retry(responses: Any) -> dict[str, bytes]:
    params = {"name": "t", "arguments": {"n": 1}, "requestState": "v1.x"}
    if responses is not ...:
        params["inputResponses"] = responses
    return members(json.dumps(params).encode())


YES = {"action": "accept", "content": {"answer": QUESTION.yes}}


@pytest.mark.parametrize("responses", [..., None, {}, [], {"other": YES}, {asking.INPUT_KEY: {"action": "accept"}}])
def test_a_retry_without_our_answer_is_nobody(responses: Any) -> None:
    assert read_retry(retry(responses), STATE, 5_000).verdict == "nobody"


def test_a_retry_with_our_answer() -> None:
    assert read_retry(retry({asking.INPUT_KEY: YES}), STATE, 5_000).verdict == "yes"
    assert read_retry(retry({asking.INPUT_KEY: YES}), STATE, 1_100).verdict == "nobody"


def test_the_server_behind_sees_its_own_state_and_not_our_answer() -> None:
    params = members(asking.forwarded(retry({asking.INPUT_KEY: YES, "mine": {"a": 1.10}}), STATE))
    assert json.loads(params["requestState"]) == "ué"
    assert json.loads(params["inputResponses"]) == {"mine": {"a": 1.1}}
    assert params["arguments"] == b'{"n": 1}'
    bare = State("ap1", "ann", "tools/call", "d1", "y", "n", 0, 1)
    assert set(members(asking.forwarded(retry({asking.INPUT_KEY: YES}), bare))) == {"name", "arguments"}


@pytest.mark.parametrize("modern", [False, True])
def test_refusals_are_results_a_model_can_act_on(modern: bool) -> None:
    types = pytest.importorskip("mcp_types")
    for make in (asking.denied, asking.declined, asking.waiting, asking.expired):
        raw = make("r-1", modern)
        value = json.loads(raw)
        assert value["isError"] is True
        assert ("resultType" in value) == modern
        assert value["_meta"] == {"dev.earnest/receipt": "r-1"}
        [block] = value["content"]
        assert "r-1" in block["text"] and not any(word in block["text"] for word in ("rule", "policy", "label"))
        types.CallToolResult.model_validate_json(raw)
    for make in (asking.denied, asking.waiting, asking.expired):
        assert "declined" not in make("r", modern).decode() and "said no. Do" not in make("r", modern).decode()


@pytest.mark.parametrize("receipt", ["", "r-1"])
@pytest.mark.parametrize("modern", [False, True])
def test_a_failure_that_is_no_decision_says_why(receipt: str, modern: bool) -> None:
    value = json.loads(asking.failed("the server is gone", receipt, modern))
    assert value["isError"] is True and ("resultType" in value) == modern
    assert value["content"][0]["text"].startswith("The server is gone.")
    assert value.get("_meta", {}).get("dev.earnest/receipt", "") == receipt
