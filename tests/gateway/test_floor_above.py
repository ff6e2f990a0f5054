"""A folder above a protected place: read by whom the operator believes, denied to whoever may change it, as far as is known."""

from pathlib import Path
from typing import Any

import pytest

from gateway.harness import ScriptedServer, bench

LOOK = {
    "name": "look",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


@pytest.mark.parametrize(
    ("more", "trust", "denied"),
    [
        ("", "untrusted", True),
        ("", "trusted", False),
        ('[labels."s/look"]\nread_only = true\n', "untrusted", False),
    ],
    ids=["a claim of nobody's", "a claim that counts", "the operator's word"],
)
async def test_a_claim_to_read_only_counts_here_as_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, trust: str, denied: bool
) -> None:
    server = ScriptedServer("s", [LOOK])
    text: Any = f'preset = "observe"\n{more}'
    async with bench(tmp_path, monkeypatch, server, text=text, trust={"s": trust}) as b:
        client = await b.client()
        for path in (tmp_path / "home", tmp_path / "home" / ".config"):
            call = client.call("look", {"path": str(path)})
            if denied:
                result = await call.result()
                assert result.get("isError"), (path, result, b.last_reasons())
                assert "floor/own-files" in b.last_reasons()
            else:
                server.calls.clear()
                assert not (await call.result()).get("isError")
