"""The helper for authors of servers."""

import json
import sys

import pytest

from earnest.core.errors import EarnestError
from earnest.lint.snapshot import assert_annotations_snapshot

READ = {
    "name": "list_rows",
    "description": "List rows",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_the_first_run_writes_and_fails_the_second_passes(tmp_path):
    path = tmp_path / "deep" / "annotations.json"
    with pytest.raises(AssertionError, match="was written"):
        assert_annotations_snapshot([READ], path)
    assert_annotations_snapshot([READ], path)
    assert json.loads(path.read_text()) == {"list_rows": {"readOnlyHint": True, "openWorldHint": False}}


def test_a_change_fails_and_says_which(tmp_path):
    path = tmp_path / "annotations.json"
    assert_annotations_snapshot([READ], path, update=True)
    changed = READ | {"annotations": {"readOnlyHint": True, "openWorldHint": True}}
    with pytest.raises(AssertionError, match=r"list_rows: .*False.* → .*True"):
        assert_annotations_snapshot([changed], path)
    assert_annotations_snapshot([changed], path, update=True)
    assert_annotations_snapshot([changed], path)


def test_hints_must_be_explicit(tmp_path):
    with pytest.raises(AssertionError, match="say readOnlyHint, openWorldHint, destructiveHint, idempotentHint explicitly"):
        assert_annotations_snapshot([READ | {"annotations": {}}], tmp_path / "a.json", update=True)


def test_a_contradicted_hint_fails_whatever_the_file_says(tmp_path):
    sends = READ | {"name": "send_mail", "description": "Send mail to a person"}
    with pytest.raises(AssertionError, match="claims to be read-only"):
        assert_annotations_snapshot([sends], tmp_path / "a.json", update=True)


def test_a_command_is_started_and_asked(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(f"TOOL = {READ!r}\n{SERVER}")
    assert_annotations_snapshot([sys.executable, str(script)], tmp_path / "a.json", update=True)
    assert_annotations_snapshot([sys.executable, str(script)], tmp_path / "a.json")


def test_a_server_that_fails_is_an_error_of_its_own(tmp_path):
    with pytest.raises(EarnestError) as caught:
        assert_annotations_snapshot([sys.executable, "-c", "raise SystemExit('no key')"], tmp_path / "a.json")
    assert caught.value.exit_code == 3
