"""Writing and undoing: backups, journal, modes, links, and files that changed in between."""

import json
import os
from pathlib import Path

import pytest

from earnest.config.clients import changes
from earnest.config.clients.dialect import ClientFile, entries, read
from earnest.config.clients.names import assign, slug
from earnest.config.clients.registry import client
from earnest.config.clients.wrap import Listener
from earnest.core.errors import EarnestError

CURSOR = client("cursor")
TEXT = b'{ // mine\n "mcpServers": {"fs": {"command": "npx", "args": ["x"]},\n  "web": {"url": "https://x.example"}},\n}'
LISTENER = Listener("http://127.0.0.1:1", "t")


def change_of(path: Path) -> changes.Change:
    file = read(CURSOR, str(path))
    chosen = {entry.where: entry.name for entry in entries(CURSOR, file)}
    return changes.wrapping(CURSOR, file, chosen, "earnest", LISTENER)


def undo(path: Path, instance: str) -> changes.Undo:
    return changes.undoing(CURSOR, read(CURSOR, str(path)), changes.journal(instance))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_bytes(TEXT)
    return path


def test_a_written_change_has_a_private_backup_and_keeps_mode_and_link(tmp_path: Path, path: Path) -> None:
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to("mcp.json")
    record = changes.write(change_of(link), str(tmp_path / "i"), 5.0)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert Path(record.backup).read_bytes() == TEXT and os.stat(record.backup).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "i" / "init.json").st_mode & 0o777 == 0o600
    assert path.read_bytes() != TEXT
    assert sorted(os.listdir(tmp_path)) == ["i", "link.json", "mcp.json"]


def test_undo_restores_byte_for_byte_through_several_changes(tmp_path: Path, path: Path) -> None:
    instance = str(tmp_path / "i")
    changes.write(change_of(path), instance, 1.0)
    file = read(CURSOR, str(path))
    data = file.data.replace(b'"fs"', b'"new": {"command": "z"}, "fs"', 1)
    path.write_bytes(data)
    file = read(CURSOR, str(path))
    where = ("mcpServers", "new")
    changes.write(changes.wrapping(CURSOR, file, {where: "new"}, "earnest", None), instance, 2.0)
    found = undo(path, instance)
    assert not found.left
    assert found.change.after == TEXT.replace(b'"fs"', b'"new": {"command": "z"}, "fs"')


def test_undo_without_other_edits_comes_from_the_backup(tmp_path: Path, path: Path) -> None:
    instance = str(tmp_path / "i")
    changes.write(change_of(path), instance, 1.0)
    found = undo(path, instance)
    assert found.exact and found.change.after == TEXT


def test_undo_with_other_edits_and_no_backups_takes_back_our_ranges(tmp_path: Path, path: Path) -> None:
    instance = str(tmp_path / "i")
    record = changes.write(change_of(path), instance, 1.0)
    os.unlink(record.backup)
    path.write_bytes(path.read_bytes().replace(b"// mine", b"// ours"))
    found = undo(path, instance)
    assert not found.exact and found.change.after == TEXT.replace(b"// mine", b"// ours")


def test_a_remote_entry_nobody_remembers_is_left_and_named(tmp_path: Path, path: Path) -> None:
    path.write_bytes(change_of(path).after)
    found = undo(path, str(tmp_path / "empty"))
    assert [entry.name for entry in found.left] == ["web"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path, path: Path) -> None:
    change = change_of(path)
    path.write_bytes(TEXT + b"\n")
    with pytest.raises(EarnestError, match="changed while") as caught:
        changes.write(change, str(tmp_path / "i"), 1.0)
    assert caught.value.code == "E1029" and path.read_bytes() == TEXT + b"\n"
    assert sorted(os.listdir(tmp_path)) == ["i", "mcp.json"]


def test_nothing_is_written_where_no_backup_can_be_made(tmp_path: Path, path: Path) -> None:
    (tmp_path / "i").write_text("a file where the instance should be")
    with pytest.raises(EarnestError, match="no backup") as caught:
        changes.write(change_of(path), str(tmp_path / "i"), 1.0)
    assert caught.value.code == "E1013" and path.read_bytes() == TEXT


def test_a_journal_that_cannot_be_read_is_an_error_naming_the_backups(tmp_path: Path) -> None:
    (tmp_path / "init.json").write_text("[")
    with pytest.raises(EarnestError, match="init") as caught:
        changes.journal(str(tmp_path))
    assert "backups" in caught.value.remedy


def test_the_same_server_has_one_name_and_another_of_that_name_a_number() -> None:
    def file(servers: object) -> ClientFile:
        from earnest.config.clients.dialect import parsed

        return parsed(CURSOR, "f.json", json.dumps({"mcpServers": servers}).encode())

    one = entries(CURSOR, file({"My Files!": {"command": "x", "args": ["1"]}, "web": {"url": "https://a"}}))
    two = entries(CURSOR, file({"my-files": {"command": "x", "args": ["2"]}, "web": {"url": "https://a"}}))
    three = entries(
        CURSOR,
        file({"my_files": {"command": "x", "args": ["1"]}, "My Files": {"command": "x", "args": ["1"]}}),
    )
    assert assign([*one, *two, *three]) == ("my-files", "web", "my-files-2", "web", "my_files", "my-files")
    assert assign(one, {"web": None}) == ("my-files", "web-2")
    assert assign(one, {"web": ("url", "https://a")}) == ("my-files", "web")
    assert slug("Ä/ö") == "server" and slug("__A__b") == "a__b" and len(slug("x" * 90)) == 48
