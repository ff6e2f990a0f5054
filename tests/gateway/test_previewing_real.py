"""`server-filesystem` run over a copy first: every tool that changes something shows its change, the others show none; a yes
makes it, and an undo takes it back byte for byte, with modes and times."""

import asyncio
import os

import pytest

from gateway.harness import Person, until
from gateway.test_previewing import wants
from sandbox import tree

pytestmark = pytest.mark.real

MUTATORS = {
    "write_file, a new one": ("write_file", {"path": "{}/fresh.txt", "content": "new\n"}, [("created", "fresh.txt")]),
    "write_file, over one": ("write_file", {"path": "{}/notes.txt", "content": "all new\n"}, [("changed", "notes.txt")]),
    "edit_file": (
        "edit_file",
        {"path": "{}/notes.txt", "edits": [{"oldText": "two", "newText": "2"}]},
        [("changed", "notes.txt")],
    ),
    "create_directory": ("create_directory", {"path": "{}/deep/er"}, [("created", "deep"), ("created", "deep/er")]),
    "move_file, a file": (
        "move_file",
        {"source": "{}/notes.txt", "destination": "{}/sub/moved.txt"},
        [("deleted", "notes.txt"), ("moved", "sub/moved.txt")],
    ),
    "move_file, a folder": (
        "move_file",
        {"source": "{}/sub", "destination": "{}/other"},
        [("created", "other"), ("moved", "other/one.bin"), ("deleted", "sub"), ("deleted", "sub/one.bin")],
    ),
}
READERS = {
    "read_file": {"path": "{}/notes.txt"},
    "read_text_file": {"path": "{}/notes.txt"},
    "read_media_file": {"path": "{}/sub/one.bin"},
    "read_multiple_files": {"paths": ["{}/notes.txt"]},
    "list_directory": {"path": "{}"},
    "list_directory_with_sizes": {"path": "{}"},
    "directory_tree": {"path": "{}"},
    "search_files": {"path": "{}", "pattern": "**/*.txt"},
    "get_file_info": {"path": "{}/notes.txt"},
    "list_allowed_directories": {},
}


@pytest.fixture
def server(real_server):
    found = real_server("filesystem")
    (found.folder / "sub").mkdir()
    (found.folder / "sub" / "one.bin").write_bytes(bytes(range(256)))
    (found.folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (found.folder / "notes.txt").chmod(0o640)
    for path in (found.folder / "notes.txt", found.folder / "sub" / "one.bin"):
        os.utime(path, ns=(1_500_000_000_123_456_789, 1_500_000_000_123_456_789))
    tree.settle(found.folder)
    return found


@pytest.fixture
async def live(gateway, server):
    wants("A")
    words = {"command": server.command, "contain": {"write": [str(server.folder)]}}
    labels = "\n".join(f'[labels."files/{name}"]\nread_only = false' for name in READERS)
    return await gateway({"files": words}, "cautious", labels)


def filled(arguments, folder):
    if isinstance(arguments, dict):
        return {name: filled(value, folder) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [filled(value, folder) for value in arguments]
    return arguments.replace("{}", str(folder))


async def test_every_change_is_shown_made_and_undone(live, server):
    client = await live.opened("/s/files/mcp")
    listed = {tool["name"] for tool in await client.list_all()}
    assert listed == {name for name, *_ in MUTATORS.values()} | READERS.keys()
    before = tree.picture(server.folder)
    for what, (name, arguments, wanted) in MUTATORS.items():
        call = asyncio.ensure_future(client.call(name, filled(arguments, server.folder)))
        await until(lambda: live.app.approvals.listed())
        [row] = await live.app.ops["approvals"]({}, Person())
        seen = [(each["change"], os.path.relpath(each["path"], server.folder)) for each in row["preview"]["changes"]]
        assert (row["preview"]["real"], seen) == (True, wanted), what
        assert tree.picture(server.folder) == before, what
        await live.app.ops["approve"]({"id": row["id"], "answer": "once"}, Person())
        answer = await call
        assert not answer["result"].get("isError"), what
        changed = {path for path, _ in tree.picture(server.folder).items() ^ before.items()} - {".", "sub"}
        assert {path for _, path in wanted} >= changed, what
        [done] = [each for each in live.app.undos.listed() if not each.undone]
        await live.app.ops["undo"]({"id": done.meta.id}, Person())
        assert tree.picture(server.folder) == before, what


async def test_what_only_reads_shows_no_change(live, server):
    client = await live.opened("/s/files/mcp")
    before = tree.picture(server.folder)
    calls = [asyncio.ensure_future(client.call(name, filled(READERS[name], server.folder))) for name in READERS]
    seen = set()
    while not all(call.done() for call in calls):
        # What one read lets the conversation see is one more thing to ask about the next: some are asked twice.
        for row in await live.app.ops["approvals"]({}, Person()):
            assert row["preview"]["real"] and row["preview"]["changes"] == [], row["tool"]
            assert "nothing is changed" in row["text"]
            seen.add(row["tool"])
            await live.app.ops["approve"]({"id": row["id"], "answer": "once"}, Person())
        await asyncio.sleep(0.02)
    answers = [call.result() for call in calls]
    assert seen == READERS.keys()
    assert not [answer for answer in answers if answer["result"].get("isError")]
    assert tree.picture(server.folder) == before
