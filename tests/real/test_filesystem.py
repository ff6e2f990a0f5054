"""`server-filesystem` through the gateway: what runs unasked, what waits for a person, and what is on disk then."""

import asyncio

import pytest

from real.rig import WAYS, bare, text, way_in, wire

pytestmark = pytest.mark.real


@pytest.fixture
def server(rig):
    return rig.server("filesystem", trust="trusted")


@pytest.mark.parametrize("way", WAYS)
async def test_a_write_waits_for_a_person_and_reads_do_not(rig, server, way):
    path = str(server.folder / "letter.txt")
    async with way_in(rig, way, "filesystem", server) as through:
        written, ask = await rig.answered(through.call("write_file", path=path, content="dear\nreader\n"))
        assert not written.is_error
        assert (server.folder / "letter.txt").read_text() == "dear\nreader\n"
        assert (ask["server"], ask["tool"]) == ("filesystem", "write_file") and "dear" in ask["text"]
        read = await through.call("read_text_file", path=path)
        assert text(read) == "dear\nreader\n"
        made = await through.call("create_directory", path=str(server.folder / "box"))
        assert not made.is_error and (server.folder / "box").is_dir()
        outside = await through.call("read_text_file", path="/etc/hostname")
        assert outside.is_error and "outside allowed directories" in text(outside)
    assert await rig.decided() == [
        ("write_file", "ask", "approved"),
        ("write_file", "allow", "ok"),
        ("read_text_file", "allow", "ok"),
        ("create_directory", "allow", "ok"),
        ("read_text_file", "allow", "error"),
    ]
    asked, went, *_ = await rig.receipts()
    assert went.approval == ask["id"] and asked.arguments_sha256 == went.arguments_sha256 and went.pin == asked.pin
    assert went.profile["destructive"] == {"value": True, "basis": "pack"}


async def test_a_no_leaves_the_disk_as_it_was(rig, server):
    path = server.folder / "kept.txt"
    path.write_text("kept")
    async with rig.stdio("filesystem") as client:
        arguments = {"source": str(path), "destination": str(server.folder / "gone.txt")}
        refused, _ = await rig.answered(client.call_tool("move_file", arguments), "no")
        assert refused.is_error
        assert path.read_text() == "kept" and not (server.folder / "gone.txt").exists()
        # A no is the answer to one call, so the next asks again; and one yes moves once.
        moved, _ = await rig.answered(client.call_tool("move_file", arguments))
        assert not moved.is_error and (server.folder / "gone.txt").read_text() == "kept"
        path.write_text("again")
        waiting = asyncio.ensure_future(client.call_tool("move_file", {**arguments, "destination": str(server.folder / "b")}))
        await rig.somebody_waits()
        assert path.read_text() == "again"
        waiting.cancel()
        await rig.nobody_waits()
        assert path.read_text() == "again", "an ask that nobody waits for any more is withdrawn"
    assert await rig.decided() == [
        ("move_file", "ask", "declined"),
        ("move_file", "ask", "approved"),
        ("move_file", "allow", "ok"),
        ("move_file", "ask", "cancelled"),
    ]


async def test_a_dry_run_reads_and_the_real_edit_asks(rig, server):
    path = server.folder / "poem.txt"
    path.write_text("roses are red\n")
    edit = {"path": str(path), "edits": [{"oldText": "red", "newText": "blue"}]}
    async with rig.http("/s/filesystem/mcp", "2026-07-28") as client:
        shown = await client.call_tool("edit_file", {**edit, "dryRun": True})
        assert "+roses are blue" in text(shown) and path.read_text() == "roses are red\n"
        await rig.answered(client.call_tool("edit_file", {**edit, "dryRun": False}))
        assert path.read_text() == "roses are blue\n"
    dry, asked, went = await rig.receipts()
    assert (dry.decision, asked.decision, went.decision) == ("allow", "ask", "allow")
    assert dry.profile["read_only"] == {"value": True, "basis": "pack"}
    assert asked.profile["read_only"] == {"value": False, "basis": "pack"}


async def test_results_are_those_of_the_bare_server(rig, server):
    folder = server.folder
    (folder / "a.txt").write_text("α\r\n\x00 ünicode \U0001f600\n" * 3)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "b.txt").write_text("x" * 200_000)
    pixel = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256))
    (folder / "c.png").write_bytes(pixel)
    calls = [
        ("read_text_file", {"path": str(folder / "a.txt")}),
        ("read_text_file", {"path": str(folder / "a.txt"), "head": 2}),
        ("read_text_file", {"path": str(folder / "deep" / "er" / "b.txt")}),
        ("read_media_file", {"path": str(folder / "c.png")}),
        ("read_multiple_files", {"paths": [str(folder / "a.txt"), str(folder / "none")]}),
        ("list_directory", {"path": str(folder)}),
        ("directory_tree", {"path": str(folder)}),
        ("search_files", {"path": str(folder), "pattern": "**/*.txt"}),
        ("list_allowed_directories", {}),
        ("read_text_file", {"path": str(folder / "nothing")}),
    ]
    async with bare(server) as client:
        plain = [wire(await client.call_tool(name, arguments)) for name, arguments in calls]
    async with rig.stdio("filesystem") as client:
        assert [wire(await client.call_tool(name, arguments)) for name, arguments in calls] == plain
    async with rig.http("/s/filesystem/mcp", "2026-07-28") as client:
        for (name, arguments), wanted in zip(calls, plain, strict=True):
            bridged = wire(await client.call_tool(name, arguments))
            assert bridged.pop("resultType") == "complete"
            assert bridged == wanted, name
    assert {decision for _, decision, _ in await rig.decided()} == {"allow"}
