"""Eras are told by shape, never by one code, and a version is agreed or refused by name."""

import json
from typing import Any

import pytest

from earnest.core.canonical import members
from earnest.protocol import envelope, eras
from earnest.protocol.envelope import Message, WireError
from earnest.protocol.eras import Probe, Step, http_evidence, is_modern, modern_meta

DISCOVER = b'{"supportedVersions":["2026-07-28"],"capabilities":{},"resultType":"complete","ttlMs":0,"cacheScope":"private"}'
INITIALIZE = b'{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'


def result(raw: bytes) -> Message:
    return Message("response", b"1", result=raw)


def error(code: int, data: Any = None) -> Message:
    return Message("error", b"1", error=envelope.error_object(code, "m", json.dumps(data).encode() if data else b""))


def play(probe: Probe, *answers: Message | None) -> list[str]:
    steps = [probe.start()]
    for answer in answers:
        assert steps[-1].action in ("discover", "initialize")
        steps.append(probe.answered(answer))
    return [step.action for step in steps]


def unsupported(*versions: str) -> Message:
    return error(-32022, {"supported": list(versions), "requested": "2026-07-28"})


PLAYBOOK: list[tuple[list[Message | None], list[str]]] = [
    ([result(DISCOVER)], ["discover", "modern"]),
    ([error(-32601), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([error(-32600), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([error(0), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([None, result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([result(b"{}"), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([result(b'{"supportedVersions":["2025-11-25"]}'), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([result(b'{"supportedVersions":["2030-01-01"]}')], ["discover", "failed"]),
    ([error(-32021, {"requiredCapabilities": {}})], ["discover", "modern"]),
    ([error(-32020)], ["discover", "modern"]),
    ([unsupported("2026-07-28"), result(DISCOVER)], ["discover", "discover", "modern"]),
    ([unsupported("2026-07-28"), unsupported("2026-07-28")], ["discover", "discover", "failed"]),
    ([unsupported("2027-01-01")], ["discover", "failed"]),
    ([unsupported("2025-11-25"), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    ([error(-32022, "x"), result(INITIALIZE)], ["discover", "initialize", "legacy"]),
    # A slow server locked itself modern by the probe that we gave up on.
    ([None, unsupported("2026-07-28"), result(DISCOVER)], ["discover", "initialize", "discover", "modern"]),
    ([error(-32601), error(-32601)], ["discover", "initialize", "failed"]),
    ([error(-32601), None], ["discover", "initialize", "failed"]),
    ([error(-32601), result(b'{"protocolVersion":"1999-01-01"}')], ["discover", "initialize", "failed"]),
    ([error(-32601), result(b"[]")], ["discover", "initialize", "failed"]),
]


@pytest.mark.parametrize(("answers", "actions"), PLAYBOOK)
def test_probe(answers: list[Message | None], actions: list[str]) -> None:
    assert play(Probe(), *answers) == actions


@pytest.mark.parametrize(
    ("answers", "actions"),
    [
        ([result(INITIALIZE)], ["initialize", "legacy"]),
        ([unsupported("2026-07-28"), result(DISCOVER)], ["initialize", "discover", "modern"]),
        ([error(-32601), result(DISCOVER)], ["initialize", "discover", "modern"]),
        ([error(-32601), error(-32601)], ["initialize", "discover", "failed"]),
        ([None, None], ["initialize", "discover", "failed"]),
    ],
)
def test_probe_for_a_legacy_client(answers: list[Message | None], actions: list[str]) -> None:
    assert play(Probe(prefer_modern=False), *answers) == actions


def test_a_probe_always_ends() -> None:
    answers = [None, result(b"{}"), error(-32022, "x"), unsupported("2026-07-28"), unsupported("2025-11-25"), error(1)]
    for prefer in (True, False):
        pending: list[list[Message | None]] = [[]]
        while pending:
            path = pending.pop()
            if play(Probe(prefer), *path)[-1] in ("discover", "initialize"):
                assert len(path) < 6
                pending.extend([*path, answer] for answer in answers)


def test_a_settled_probe_carries_the_hello() -> None:
    probe = Probe()
    assert probe.start() == Step("discover", "2026-07-28")
    assert probe.answered(error(-32601)) == Step("initialize", "2025-11-25")
    assert probe.answered(result(INITIALIZE)) == Step("legacy", "2025-06-18", INITIALIZE)


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def params(meta: Any) -> dict[str, bytes]:
    return members(json.dumps({"_meta": meta}).encode())


def test_reads_modern_meta() -> None:
    meta = modern_meta(params({**META, "io.modelcontextprotocol/logLevel": None, "progressToken": 1}))
    assert (meta.version, meta.capabilities, meta.info, meta.log_level) == ("2026-07-28", b"{}", b"", b"")


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({}, -32602),
        (None, -32602),
        ([], -32602),
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
        ({"io.modelcontextprotocol/clientCapabilities": {}}, -32602),
        ({**META, "io.modelcontextprotocol/clientCapabilities": []}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": 5}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}, -32022),
        ({**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, -32022),
    ],
)
def test_refuses_modern_meta(meta: Any, code: int) -> None:
    with pytest.raises(WireError) as caught:
        modern_meta(params(meta), b"4")
    assert (caught.value.rpc_code, caught.value.id, eras.http_status(code)) == (code, b"4", 400)
    if code == -32022:
        data = json.loads(caught.value.data)
        assert data["requested"] == meta["io.modelcontextprotocol/protocolVersion"]
        assert "2026-07-28" in data["supported"] and "2025-11-25" in data["supported"]


def test_one_modern_key_makes_a_request_modern() -> None:
    assert is_modern(params(META))
    for key in META:
        assert is_modern(params({key: META[key]}))
    assert is_modern(members(b'{"_meta":{"io.modelcontextprotocol\\u002fprotocolVersion":"x"}}'))
    for legacy in ({}, None, {"progressToken": 1}, {"io.modelcontextprotocol/related-task": {"taskId": "1"}}):
        assert not is_modern(params(legacy))
    assert not is_modern({})


@pytest.mark.parametrize(
    ("requested", "agreed"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25"), ("x", "2025-11-25")],
)
def test_initialize_leads_into_the_legacy_era_alone(requested: str, agreed: str) -> None:
    assert eras.agree(requested) == agreed


def body(code: int) -> bytes:
    return envelope.error(b"", code, "m")


@pytest.mark.parametrize(
    ("status", "answer", "tried", "evidence"),
    [
        (400, body(-32022), "modern", "modern"),
        (400, body(-32020), "modern", "modern"),
        (400, body(-32600), "modern", "legacy"),
        (400, b"", "modern", "legacy"),
        (400, b"Bad Request: Missing session ID", "modern", "legacy"),
        (404, b"<html>", "modern", "legacy"),
        (405, b"", "initialize", "sse"),
        (404, b"", "initialize", "sse"),
        (400, body(-32022), "initialize", "modern"),
        (401, b"", "modern", None),
        (403, b"", "modern", None),
        (503, b"", "modern", None),
        (429, b"", "initialize", None),
    ],
)
def test_http_evidence(status: int, answer: bytes, tried: Any, evidence: str | None) -> None:
    assert http_evidence(status, answer, tried=tried) == evidence
