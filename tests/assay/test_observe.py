"""What changed, by records and not by bytes: each false accusation that was met, and the rule that ends it."""

import io
import json
import os
import sqlite3
import subprocess
import zipfile
from pathlib import Path

import pytest

from earnest.assay.fixture import _workbook
from earnest.assay.observe import git, network
from earnest.assay.observe.databases import compared
from earnest.assay.observe.effects import QUIET, Files, Noise, marks_of
from earnest.assay.observe.masks import masked, masked_path
from earnest.assay.observe.places import Lay
from earnest.assay.observe.records import difference
from earnest.sandbox.box import Entry, Event, File, Look

LAY = Lay("/h", ("/opt/server",))


class Kept:
    """A box's content at two looks, from a table."""

    def __init__(self, base: dict[str, bytes], after: dict[str, bytes | None]) -> None:
        self.base, self.after = base, after
        entries = {path: Entry(_file(base.get(path)), _file(content)) for path, content in after.items()}
        self.looks = (Look({}), Look(entries))

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        if look is self.looks[1] and path in self.after:
            return self.after[path]
        return self.base.get(path)

    def effects(self, noise: Noise = QUIET) -> list[tuple[str, bool, bool | None]]:
        found = Files(self, LAY, *self.looks).effects(noise)
        return [(effect.nature, effect.hard, effect.lossy) for effect in found]


def _file(content: bytes | None) -> File | None:
    import hashlib

    return None if content is None else File("file", len(content), 0o644, 1, hashlib.sha256(content).hexdigest())


def changed(before: bytes | None, after: bytes | None, path: str = "/h/x") -> list[tuple[str, bool, bool | None]]:
    return Kept({path: before} if before is not None else {}, {path: after}).effects()


def test_a_file_written_anew_with_keys_in_another_order_lost_nothing() -> None:
    before = b'{"a": 1, "items": [{"id": 1, "name": "x"}]}'
    after = json.dumps({"items": [{"name": "y", "id": 2}, {"name": "x", "id": 1}], "a": 1}, indent=2).encode()
    assert changed(before, after) == [("appended", True, False)]


def test_an_entry_that_lost_a_leaf_lost_something() -> None:
    before = b'{"items": [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]}'
    assert changed(before, b'{"items": [{"id": 2, "name": "y"}]}') == [("overwritten", True, True)]
    assert changed(before, b'{"items": [{"id": 1, "name": "z"}, {"id": 2, "name": "y"}]}') == [("overwritten", True, True)]


def test_one_line_that_becomes_two_is_no_other_form() -> None:
    one = b'{"type": "entity", "name": "a", "observations": ["x"]}'
    two = one + b'\n{"type": "entity", "name": "b", "observations": []}\n'
    assert changed(one, two) == [("appended", True, False)]
    assert changed(two, one) == [("overwritten", True, True)]


def test_only_moments_and_random_names_that_differ_are_soft() -> None:
    before = b'{"at": "2026-03-14T09:30:00Z", "epoch": 1773480600.5, "id": "7d2c3f1e-8a4b-4c5d-9e6f-0a1b2c3d4e5f"}'
    after = b'{"at": "2026-03-15T10:31:01Z", "epoch": 1773480999.1, "id": "00000000-8a4b-4c5d-9e6f-0a1b2c3d4e5f"}'
    assert changed(before, after) == [("touched", False, False)]
    assert changed(b'{"count": 3}', b'{"count": 4}') == [("overwritten", True, True)]


def test_lines_and_bytes() -> None:
    assert changed(b"a\nb\n", b"a\r\nb\r\n\r\n") == [("touched", False, False)]
    assert changed(b"a\nb\n", b"a\nnew\nb\n") == [("appended", True, False)]
    assert changed(b"a\nb\n", b"a\n") == [("overwritten", True, True)]
    assert changed(b"\x00\x01", b"\x00\x01\x02") == [("appended", True, False)]
    assert changed(b"\x00\x01", b"\x00\x02") == [("overwritten", True, None)]


def database(path: Path, *statements: str, wal: bool = False) -> tuple[bytes, bytes]:
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
    with connection:
        for statement in statements:
            connection.execute(statement)
    log = Path(f"{path}-wal")
    found = path.read_bytes(), log.read_bytes() if log.exists() else b""
    connection.close()
    return found


def test_rows_are_compared_wherever_the_pages_lie(tmp_path: Path) -> None:
    before, _ = database(
        tmp_path / "a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)", "INSERT INTO t (x) VALUES ('one'), ('two')"
    )
    after, _ = database(tmp_path / "a.db", "INSERT INTO t (x) VALUES ('three')")
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("VACUUM")
    connection.close()
    assert changed(before, (tmp_path / "a.db").read_bytes()) == [("appended", True, False)]
    gone, _ = database(tmp_path / "a.db", "UPDATE t SET x = 'changed' WHERE id = 1")
    assert changed(after, gone) == [("overwritten", True, True)]


def test_a_row_that_is_only_in_the_write_ahead_log_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database(path, "CREATE TABLE t (x TEXT)", wal=True)
    before = path.read_bytes()
    _, log = database(path, "INSERT INTO t VALUES ('one')", wal=True)
    kept = Kept({"/h/a.db": before}, {"/h/a.db-wal": log})
    found = Files(kept, LAY, *kept.looks).effects()
    assert [(e.nature, e.hard) for e in found if e.place == "state"] == [("appended", True)]


def test_places_that_are_no_state_are_soft_unless_something_was_there() -> None:
    for path in (
        "/h/.cache/x/y",
        "/tmp/x",
        "/h/app.log",
        "/h/logs/a.txt",
        "/h/x.lock",
        "/h/__pycache__/a.pyc",
        "/h/.npm/_cacache/z",
    ):
        assert changed(None, b"x", path) == [("created", False, False)], path
    for path in ("/h/notes", "/var/lib/x", "/opt/server/data.json", "/etc/x"):
        assert changed(None, b"x", path) == [("created", True, False)], path
    assert changed(b"kept", None, "/h/.cache/other/x") == [("deleted", True, True)]


def test_a_file_that_stands_elsewhere_now_was_moved() -> None:
    kept = Kept({"/h/a": b"text\n"}, {"/h/a": None, "/h/b": b"text\n"})
    assert kept.effects() == [("moved", True, False), ("moved", True, False)]
    assert Kept({"/h/a": b"text\n"}, {"/h/a": None}).effects() == [("deleted", True, True)]


def test_noise_is_path_and_kind_and_never_the_whole_path() -> None:
    kept = Kept({"/h/app.db": b"a\n"}, {"/h/app.db": b"b\n"})
    assert kept.effects(Noise(kinds=frozenset({("/h/app.db", "created")}))) == [("overwritten", True, True)]
    assert kept.effects(Noise(kinds=frozenset({("/h/app.db", "overwritten")}))) == []


def test_bookkeeping_of_lines_takes_away_what_stands_deeper_in_them() -> None:
    lines = b'{"tool": "a", "args": {"x": 1}}\n'
    more = lines + b'{"tool": "b", "args": {"y": {"z": 2}}, "out": [{"text": "t"}]}\n'
    grown = Kept({"/h/h.jsonl": lines}, {"/h/h.jsonl": more})
    assert grown.effects(Noise(areas=frozenset({("~/h.jsonl", "[].*")}))) == []
    assert grown.effects(Noise(areas=frozenset({("~/h.jsonl", "[].args.*")}))) != []


def test_bookkeeping_takes_away_its_own_areas_alone() -> None:
    usage = Kept({"/h/c.json": b'{"calls": 1, "name": "x"}'}, {"/h/c.json": b'{"calls": 2, "name": "x"}'})
    (effect,) = Files(usage, LAY, *usage.looks).effects()
    noise = Noise(areas=marks_of(effect))
    assert usage.effects(noise) == []
    real = Kept({"/h/c.json": b'{"calls": 1, "name": "x"}'}, {"/h/c.json": b'{"calls": 2, "name": "y"}'})
    assert real.effects(noise) == [("overwritten", True, True)]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "first")
    return folder


def run(folder: Path, *words: str) -> None:
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", *words], cwd=folder, env={**os.environ, **who, "HOME": str(folder)}, check=True, capture_output=True)


def meant(repo: Path, inside: str, *steps: tuple[str, ...]) -> str:
    path = repo / ".git" / inside
    before = path.read_bytes() if path.exists() else None
    for words in steps:
        run(repo, *words)
    after = path.read_bytes() if path.exists() else None
    now = lambda name: Path(name).read_bytes() if Path(name).is_file() else None  # noqa: E731
    return git.meaning(str(path), before, after, now)


def test_a_branch_that_moved_on_lost_nothing_and_one_that_was_reset_did(repo: Path) -> None:
    (repo / "a.txt").write_text("one\ntwo\n")
    assert meant(repo, "refs/heads/main", ("commit", "-q", "-a", "-m", "second")) == "changed"
    assert meant(repo, "refs/heads/main", ("reset", "-q", "--hard", "HEAD~1")) == "lost"
    assert meant(repo, "refs/heads/topic", ("branch", "topic")) == "added"
    assert meant(repo, "refs/heads/topic", ("branch", "-D", "topic")) == "changed"


def test_an_index_whose_times_alone_changed_is_housekeeping(repo: Path) -> None:
    os.utime(repo / "a.txt", (1, 1))
    assert meant(repo, "index", ("status",)) == "housekeeping"
    (repo / "b.txt").write_text("new\n")
    assert meant(repo, "index", ("add", "b.txt")) == "changed"
    assert meant(repo, "COMMIT_EDITMSG", ("commit", "-q", "-m", "x")) == "housekeeping"


def test_what_the_repository_holds_is_not_lost(repo: Path) -> None:
    now = lambda name: Path(name).read_bytes() if Path(name).is_file() else None  # noqa: E731
    assert git.kept_as_object(str(repo / "a.txt"), b"one\n", now)
    assert not git.kept_as_object(str(repo / "a.txt"), b"never committed\n", now)


@pytest.mark.parametrize(
    "subject, local",
    [
        ("127.0.0.1", True), ("::1", True),
        ("localhost", True), ("a.localhost", True), ("::ffff:127.0.0.1", True), ("127.8.8.8", True),
        ("2001:db8:0:1::1", False), ("192.0.2.7", False), ("127.0.0.1.example.com", False), ("localhost.example.com", False),
    ],
)  # fmt: skip
def test_this_machine_is_told_by_address_and_not_by_text(subject: str, local: bool) -> None:
    assert network.here(subject) is local


def test_events_become_effects() -> None:
    def seen(*events: Event) -> list[tuple[str, bool, bool]]:
        return [(effect.nature, effect.hard, effect.external) for effect in network.effects(events, LAY)]

    assert seen(Event(0, "connect", "192.0.2.7", 80)) == [("contacted", False, True)]
    assert seen(Event(0, "connect", "127.0.0.1", 80), Event(0, "name", "localhost")) == []
    assert seen(Event(0, "request", "example.com", 80, "POST", "/x", b"data")) == [("sent", False, True)]
    assert seen(Event(0, "request", "example.com", 80, "GET", "/x")) == [("contacted", False, True)]
    assert seen(Event(0, "datagram", "192.0.2.7", 9)) == [("contacted", False, True)]
    assert seen(Event(0, "datagram", "", detail="a socket")) == [("refused", False, False)]
    assert seen(Event(0, "socket", "/run/x.sock")) == [("contacted", False, False)]
    assert seen(Event(0, "socket", "/dev/log")) == []
    assert seen(Event(0, "refused", "/etc/x")) == [("refused", True, False)]
    assert seen(Event(0, "start", "npm install --silent")) == [("started", False, False)]
    assert seen(Event(0, "start", "git status")) == []


def test_dumps_of_databases_are_compared_by_rows() -> None:
    before = {"table notes": ["1|a", "2|b"]}
    assert [(e.nature, e.lossy) for e in compared(before, {"table notes": ["2|b", "1|a", "3|c"]})] == [("appended", False)]
    assert [(e.nature, e.lossy) for e in compared(before, {"table notes": ["1|a"]})] == [("overwritten", True)]
    assert [(e.nature, e.lossy) for e in compared(before, {})] == [("deleted", True)]
    assert compared(before, dict(before)) == []


def test_masks_leave_what_means_something() -> None:
    assert masked("took 12.5 ms at 2026-03-14T09:30:00.123Z") == "took <duration> at <time>"
    assert masked("version 1.2.3, 42 items") == "version 1.2.3, 42 items"
    assert masked_path("/h/session-8f3a9c2b1d/log") == masked_path("/h/session-1a2b3c4d5e/log")
    assert masked_path("/h/notes.txt") == "/h/notes.txt"


def workbook(*changes: tuple[str, str]) -> bytes:
    """The fixture's workbook with texts of its parts replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_workbook())) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            for before, after in changes:
                text = text.replace(before, after)
            new.writestr(name, text)
    return buffer.getvalue()


SHEET = '<sheet name="Sheet1" sheetId="1" r:id="rId1"/>'
CELL = '<c r="C2"><v>20</v></c>'


@pytest.mark.parametrize(
    "changes, hard, lost",
    [
        ([], False, False),
        ([("</sheetData>", "</sheetData ><!-- anew -->")], False, False),
        ([(CELL, "")], True, True),
        ([(CELL, '<c r="C2"><v>21</v></c>')], True, True),
        ([(SHEET, SHEET.replace("Sheet1", "Other"))], True, False),
        ([(SHEET, SHEET + SHEET.replace("Sheet1", "Second"))], True, False),
        ([(SHEET, "")], True, True),
        ([("</sheetData>", '</sheetData><mergeCells><mergeCell ref="A5:B6"/></mergeCells>')], True, False),
        ([("</sheets>", '</sheets><definedNames><definedName name="Rate">0.07</definedName></definedNames>')], True, False),
        ([("<sheetData>", '<cols><col min="1" max="1" width="30" customWidth="1"/></cols><sheetData>')], True, False),
    ],
    ids=["same", "written anew", "cell gone", "cell changed", "renamed", "second", "sheet gone", "merged", "named", "wider"],
)
def test_workbooks_are_compared_by_what_stands_in_them(changes: list[tuple[str, str]], hard: bool, lost: bool) -> None:
    found = difference(_workbook(), workbook(*changes))
    assert (bool(found.gone or found.new), found.lost) == (hard, lost), found


def test_a_workbook_with_a_document_type_is_compared_by_bytes() -> None:
    found = difference(_workbook(), workbook(("<workbook ", '<!DOCTYPE x [<!ENTITY a "aaaa">]><workbook ')))
    assert found.areas == ("bytes",)
