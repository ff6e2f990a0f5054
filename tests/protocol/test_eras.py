"""Eras are told by shape, never by one code, and a version is agreed or refused by name."""

import json
from typing import Any

import pytest

from earnest.core.canonical import members
from earnest.protocol import eras
from earnest.protocol.envelope import WireError
from earnest.protocol.eras import is_modern, modern_meta

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
