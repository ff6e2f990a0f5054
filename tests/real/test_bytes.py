"""What a published server answers arrives as the bytes it wrote, whatever a client library would have made of it.

The label of a result (tests/gateway/test_labels.py) is all that is added; it is taken out here, and what remains compared.
"""

import json
import re

import pytest

from earnest.core.canonical import members
from servers.client import StdioClient

pytestmark = pytest.mark.real

CALLS = {
    "filesystem": [
        ("read_text_file", {"path": "{folder}/a.txt"}),
        ("get_file_info", {"path": "{folder}/a.txt"}),
        ("read_text_file", {"path": "{folder}/none"}),
    ],
    "memory": [("create_entities", {"entities": [{"name": "ü", "entityType": "t", "observations": []}]}), ("read_graph", {})],
    "everything": [
        ("get-annotated-message", {"messageType": "success", "includeImage": True}),
        ("get-structured-content", {"location": "New York"}),
        ("get-sum", {"a": 0.1, "b": 0.2}),
        ("echo", {"message": "\u2028\U0001f600\x7f"}),
    ],
    "git": [("git_log", {"repo_path": "{repository}"}), ("git_show", {"repo_path": "{repository}", "revision": "HEAD"})],
    "time": [("convert_time", {"source_timezone": "UTC", "time": "25:00", "target_timezone": "UTC"})],
    "fetch": [("fetch", {"url": "http://127.0.0.1:1/"})],
    "sqlite": [("read_query", {"query": "SELECT 0.1 + 0.2, 9007199254740993, 'ü'"}), ("list_tables", {})],
}
"""Calls that run unasked and answer the same twice, errors among them."""


async def results(command, env, cwd, era, calls):
    """The raw result of each call."""
    client = await StdioClient.start(command, env=env, cwd=cwd)
    try:
        await client.open(era)
        found = []
        for name, arguments in calls:
            id = await client.begin("tools/call", {"name": name, "arguments": arguments})
            await client.answer(id)
            (line,) = [raw for raw in client.lines if json.loads(raw).get("id") == id]
            found.append(members(line.strip())["result"])
        return found
    finally:
        await client.close()


LABEL = rb'"dev\.earnest/labels":\{"private":(?:true|false),"untrusted":(?:true|false)\}'
ALONE = re.compile(rb'"_meta":\{' + LABEL + rb"\},?")
FIRST = re.compile(rb'(?<="_meta":\{)' + LABEL + rb",")
LAST = re.compile(rb"," + LABEL + rb"(?=\})")


def unlabelled(raw):
    """A result without the one label that it carries."""
    for pattern in (ALONE, FIRST, LAST):
        rest, found = pattern.subn(b"", raw)
        if found:
            assert found == 1, raw
            return rest
    raise AssertionError(f"no label: {raw!r}")


def era_pairs():
    return [(name, "legacy") for name in CALLS] + [(name, "modern") for name in ("git", "time", "fetch")]


@pytest.mark.parametrize("name, era", era_pairs())
async def test_a_result_passes_byte_for_byte_in_its_own_era(rig, earnest_cmd, repository, name, era):
    server = rig.server(name, trust="trusted")
    (server.folder / "a.txt").write_text("\u00e4\u2028 \U0001f600\r\n")
    there = json.dumps(CALLS[name]).replace("{folder}", str(server.folder)).replace("{repository}", str(repository))
    calls = json.loads(there)
    env = {**rig.home.env, **server.env}
    plain = await results(server.command, env, str(server.folder), era, calls)
    if name == "memory":
        (server.folder / "memory.jsonl").unlink()
    seen = await results([*earnest_cmd, "stdio", name], rig.home.env, str(rig.folder), era, calls)
    assert [unlabelled(raw) for raw in seen] == plain
    assert {receipt.decision for receipt in await rig.receipts()} == {"allow"}
    assert all(receipt.result_bytes == len(raw) for receipt, raw in zip(await rig.receipts(), plain, strict=True))
