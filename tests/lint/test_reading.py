"""Recorded lists in all the shapes people have them in."""

import json
import os
import threading
from pathlib import Path

import pytest

from earnest.core.errors import EarnestError
from earnest.lint import reading
from earnest.lint.reading import read_bytes, read_path

TOOL = {"name": "get_time", "description": "Get the time", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}},
        {"tools": [TOOL]},
        {"tools": [TOOL], "nextCursor": None, "ttlMs": 0, "cacheScope": "private"},
        [TOOL],
        TOOL,
        [{"server": "a", "tools": [TOOL]}],
    ],
)
def test_a_list_is_known_by_its_shape(value):
    [server] = read_bytes(json.dumps(value).encode(), "a")
    assert (server.name, [tool.name for tool in server.tools]) == ("a", ["get_time"])


def test_lines_are_servers():
    lines = "\n".join(json.dumps({"server": name, "tools": [TOOL]}) for name in "ab")
    assert [server.name for server in read_bytes(lines.encode(), "x")] == ["a", "b"]


def test_a_pipe_is_no_recording_of_a_folder_but_is_read_where_it_is_named(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([TOOL]))
    pipe = tmp_path / "b.json"
    os.mkfifo(pipe)
    assert [server.name for server in read_path(tmp_path)] == ["a"]
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps([TOOL])))
    writer.start()
    [server] = read_path(pipe)
    writer.join()
    assert server.name == "b"


def test_what_has_no_end_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 1000)
    with pytest.raises(EarnestError, match="larger") as caught:
        read_path(Path("/dev/zero"))
    assert caught.value.code == "E1020"


def test_an_empty_list_is_a_server_without_tools():
    assert read_bytes(b'{"tools": []}', "a")[0].tools == ()


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 5000,
        b"[" * 5000 + b"]" * 5000,
        b"{}\n" + b"[" * 5000,
        b"",
        b"{",
        b"{}",
        b"[]",
        b"[1]",
        b'{"tools": 3}',
        b'"tools"',
        b"{}\n{",
        b"\xff\xfe",
    ],
)
def test_what_holds_no_tools_is_refused_with_a_code(data):
    with pytest.raises(EarnestError) as caught:
        read_bytes(data, "x")
    assert caught.value.code == "E1020"


def test_one_tool_a_file_makes_the_folder_a_server(tmp_path):
    folder = tmp_path / "thing" / "__toolsnaps__"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.snap").write_text(json.dumps(TOOL | {"name": name}))
    [server] = read_path(tmp_path)
    assert server.name == "thing" and [tool.name for tool in server.tools] == ["a", "b"]


def test_a_server_of_one_tool_is_a_server(tmp_path):
    for name in ("fetch", "clock"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"server": name, "tools": [TOOL | {"name": name}]}))
    assert sorted(server.name for server in read_path(tmp_path)) == ["clock", "fetch"]


def test_two_recordings_of_one_server_are_compared(tmp_path):
    for day, text in (("2026-01-01", "Get the time"), ("2026-02-01", "Get the time, or else")):
        (tmp_path / f"{day}.json").write_text(
            json.dumps({"server": "clock", "tools": [TOOL | {"description": text}, TOOL | {"name": "b"}]})
        )
    [server] = read_path(tmp_path)
    assert server.earlier is not None and server.earlier[0].description == "Get the time"
    assert server.tools[0].description == "Get the time, or else"


def test_two_servers_of_one_name_in_one_dump_are_two(tmp_path):
    (tmp_path / "dump.jsonl").write_text("\n".join(json.dumps({"server": "echo", "tools": [TOOL]}) for _ in "ab"))
    assert [server.earlier for server in read_path(tmp_path)] == [None, None]


def test_a_folder_without_lists_is_refused(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "x"}')
    with pytest.raises(EarnestError) as caught:
        read_path(tmp_path)
    assert caught.value.code == "E1020"
