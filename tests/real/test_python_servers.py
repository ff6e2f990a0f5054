"""`server-git`, `-time`, `-sqlite`, `-memory` through the gateway: decisions by pack and argument, results as ever."""

import sqlite3
import subprocess

import pytest

from real.rig import bare, text, way_in, wire

pytestmark = pytest.mark.real


def alike(seen, wanted):
    """Whether two results are the same, but for what a modern client is told of any result."""
    kept = [{name: value for name, value in one.items() if name not in ("resultType", "_meta")} for one in (seen, wanted)]
    return kept[0] == kept[1]


def git(folder, *words):
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("way", ["stdio legacy", "http modern", "typed modern", "all legacy"])
async def test_git_reads_and_commits_unasked_and_resets_with_a_yes(rig, repository, way):
    server = rig.server("git", trust="trusted")
    path = {"repo_path": str(repository)}
    reads = [("git_log", path), ("git_status", path), ("git_show", {**path, "revision": "HEAD"}), ("git_diff_unstaged", path)]
    async with bare(server) as client:
        plain = [wire(await client.call_tool(name, arguments)) for name, arguments in reads]
    async with way_in(rig, way, "git", server) as through:
        seen = [wire(await through.call(name, **arguments)) for name, arguments in reads]
        assert all(alike(one, wanted) for one, wanted in zip(seen, plain, strict=True))
        assert "first" in seen[0]["content"][0]["text"]

        (repository / "notes.txt").write_text("one\ntwo\n")
        await through.call("git_add", **path, files=["notes.txt"])
        done = await through.call("git_commit", **path, message="second")
        assert not done.is_error, text(done)
        assert git(repository, "log", "--format=%s").splitlines() == ["second", "first"]

        (repository / "notes.txt").write_text("lost?\n")
        await through.call("git_add", **path, files=["notes.txt"])
        refused, ask = await rig.answered(through.call("git_reset", **path), "no")
        assert refused.is_error and ask["tool"] == "git_reset"
        assert git(repository, "diff", "--cached", "--name-only") == "notes.txt"
        reset, _ = await rig.answered(through.call("git_reset", **path))
        assert not reset.is_error and git(repository, "diff", "--cached", "--name-only") == ""
    assert [(tool, decision) for tool, decision, _ in await rig.decided()] == [
        *((name, "allow") for name, _ in reads),
        ("git_add", "allow"),
        ("git_commit", "allow"),
        ("git_add", "allow"),
        ("git_reset", "ask"),
        ("git_reset", "ask"),
        ("git_reset", "allow"),
    ]


@pytest.mark.parametrize("way", ["stdio modern", "http legacy", "all modern"])
async def test_sqlite_is_judged_by_the_statement(rig, way):
    server = rig.server("sqlite", trust="trusted")
    file = server.folder / "test.db"

    def rows(query):
        with sqlite3.connect(file) as database:
            return database.execute(query).fetchall()

    async with way_in(rig, way, "sqlite", server) as through:
        await through.call("create_table", query="CREATE TABLE books (title TEXT, year INTEGER)")
        await through.call("write_query", query="INSERT INTO books (title, year) VALUES ('Emma', 1815), ('Dracula', 1897)")
        read = await through.call("read_query", query="SELECT title FROM books WHERE year < 1850")
        assert text(read) == "[{'title': 'Emma'}]"
        listed = await through.call("list_tables")
        assert text(listed) == "[{'name': 'books'}]"

        # The server looks at the first word alone; the refiner reads the statement.
        asks = [
            ("write_query", "UPDATE books SET year = 0"),
            ("write_query", "DROP TABLE books"),
            ("read_query", "SELECT load_extension('evil')"),
            ("create_table", "CREATE TABLE copy AS SELECT writefile('x', title) FROM books"),
            ("write_query", "INSERT OR REPLACE INTO books VALUES ('Emma', 0)"),
        ]
        for tool, query in asks:
            refused, ask = await rig.answered(through.call(tool, query=query), "no")
            assert refused.is_error and query in ask["arguments"].replace("\\u0027", "'")
        assert rows("SELECT * FROM books") == [("Emma", 1815), ("Dracula", 1897)]
        dropped, _ = await rig.answered(through.call("write_query", query="DROP TABLE books"))
        assert not dropped.is_error and rows("SELECT name FROM sqlite_master") == []
    decisions = [(tool, decision) for tool, decision, _ in await rig.decided()]
    assert decisions == [
        ("create_table", "allow"),
        ("write_query", "allow"),
        ("read_query", "allow"),
        ("list_tables", "allow"),
        *((tool, "ask") for tool, _ in asks),
        ("write_query", "ask"),
        ("write_query", "allow"),
    ]


@pytest.mark.parametrize("way", ["stdio legacy", "stdio modern", "http modern"])
async def test_time_runs_unasked_and_labels_nothing(rig, way):
    server = rig.server("time", trust="verified")
    moment = {"source_timezone": "Europe/Vienna", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    async with bare(server) as client:
        wrong = wire(await client.call_tool("convert_time", {**moment, "time": "noon"}))
    async with way_in(rig, way, "time", server) as through:
        now = await through.call("get_current_time", timezone="Europe/Vienna")
        assert '"Europe/Vienna"' in text(now)
        there = await through.call("convert_time", **moment)
        assert "+7.0h" in text(there) or "+8.0h" in text(there)
        assert alike(wire(await through.call("convert_time", **{**moment, "time": "noon"})), wrong)
    assert await rig.decided() == [
        ("get_current_time", "allow", "ok"),
        ("convert_time", "allow", "ok"),
        ("convert_time", "allow", "error"),
    ]
    assert {tuple(receipt.labels_after) for receipt in await rig.receipts()} == {()}


@pytest.mark.parametrize("way", ["stdio legacy", "http modern", "all legacy"])
async def test_memory_keeps_what_was_told_and_forgets_with_a_yes(rig, way):
    server = rig.server("memory", trust="trusted")
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes \U0001f600 programs"]}
    async with way_in(rig, way, "memory", server) as through:
        made = await through.call("create_entities", entities=[ada])
        assert not made.is_error
        assert '"Ada"' in (server.folder / "memory.jsonl").read_text()
        read = await through.call("open_nodes", names=["Ada"])
        assert read.structured_content["entities"] == [ada]
        async with bare(server) as client:
            assert alike(wire(read), wire(await client.call_tool("open_nodes", {"names": ["Ada"]})))
        gone, _ = await rig.answered(through.call("delete_entities", entityNames=["Ada"]))
        assert not gone.is_error and '"Ada"' not in (server.folder / "memory.jsonl").read_text()
    assert [(tool, decision) for tool, decision, _ in await rig.decided()] == [
        ("create_entities", "allow"),
        ("open_nodes", "allow"),
        ("delete_entities", "ask"),
        ("delete_entities", "allow"),
    ]
