"""`earnest receipts`: the record as a program, a person and an auditor read it."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from cli.conftest import Foreground
from conftest import new_home
from earnest.cli.receipts import moment
from earnest.core.errors import EarnestError

FIELDS = [
    "id", "time", "server", "tool", "decision", "reasons", "arguments_sha256", "pin", "policy_sha256", "labels_before",
    "labels_after", "outcome",
]  # fmt: skip


class Recorded:
    """A home in which a daemon has decided two calls, an allow and a deny. `flag`: of its configuration."""

    def __init__(self, home):
        self.home = home
        self.run = Foreground([sys.executable, "-m", "earnest", "run", "--port", "0", "--json"], home.env)
        client = self.run.client()
        assert not client.call("file-ops", "read", {"file": "recipe.txt"}).is_error
        assert client.call("liar", "tidy", {}).is_error
        self.flag = ("--config", self.run.ready["config"])

    def close(self):
        self.run.process.kill()
        self.run.process.communicate()


@pytest.fixture(scope="module")
def running():
    """One whose daemon is there; only looked at."""
    with new_home() as home:
        made = Recorded(home)
        yield made
        made.close()


@pytest.fixture(scope="module")
def ended():
    """One whose daemon has ended, and all files of it by path."""
    with new_home() as home:
        made = Recorded(home)
        made.run.end()
        # The daemon signs its last checkpoint when it ends; `stop` waits for that.
        subprocess.run([sys.executable, "-m", "earnest", "stop", *made.flag], env=home.env, capture_output=True, timeout=60)
        yield made, {path: path.read_bytes() for path in home.earnest.rglob("*") if path.is_file() and path.stat().st_size}
        made.close()


@pytest.fixture
def cli_in(run_bounded):
    """`cli_in(recorded)`: the command in that home, with the flag of its configuration."""

    def of(recorded):
        command = [sys.executable, "-m", "earnest"]
        return lambda *words: run_bounded([*command, *words, *recorded.flag], recorded.home.env)

    return of


@pytest.fixture
def cli_of_running(running, cli_in):
    return cli_in(running)


@pytest.fixture
def tampered(ended, cli_in):
    """The command, the folder of receipts and the lines in it; what is done to them is undone."""
    recorded, files = ended
    folder = next(recorded.home.earnest.glob("c-*/receipts"))
    [file] = [path for path in folder.iterdir() if path.suffix == ".jsonl"]
    yield cli_in(recorded), folder, file, file.read_bytes().splitlines(keepends=True)
    for path in (one for one in recorded.home.earnest.rglob("*") if one.is_file() and one not in files):
        path.unlink()  # as SQLite leaves beside a store that was read
    for path, data in files.items():
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
            path.chmod(0o600)


def lines(said):
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_each_line_joins_decision_and_outcome(cli_of_running):
    first, second = lines(cli_of_running("receipts", "--json"))
    assert [name for name in first if name in FIELDS] == FIELDS
    assert (first["server"], first["tool"], first["decision"], first["outcome"]) == ("file-ops", "read", "allow", "ok")
    assert first["labels_before"] == [] and first["labels_after"] == ["private"]
    assert first["pin"].startswith("v1:") and len(first["arguments_sha256"]) == len(first["policy_sha256"]) == 64
    assert first["time"].endswith("Z") and first["reasons"][0]["rule"] == "preset/balanced: reads run"
    assert (second["server"], second["decision"]) == ("liar", "deny") and second["outcome"] != "ok"


def test_filters_choose(cli_of_running):
    def some(*words):
        return [line["tool"] for line in lines(cli_of_running("receipts", "--json", *words))]

    assert some("--server", "file*") == ["read"] and some("--tool", "t?dy") == ["tidy"]
    assert some("--decision", "deny") == ["tidy"] and some("--since", "5m") == ["read", "tidy"]
    assert some("--since", datetime.fromtimestamp(time.time() + 60, UTC).isoformat()) == []
    id = lines(cli_of_running("receipts", "--json"))[1]["id"]
    assert some("--id", id) == ["tidy"]
    for wrong in (("--decision", "maybe"), ("--since", "yesterday")):
        said = cli_of_running("receipts", *wrong)
        assert said.code == 2 and "E1018" in said.err


def test_a_person_gets_a_table_and_one_receipt_whole(cli_of_running):
    table = cli_of_running("receipts").out
    assert "file-ops/read" in table and "strangers destroy nothing" in table
    id = lines(cli_of_running("receipts", "--json"))[0]["id"]
    shown = cli_of_running("receipts", "show", id).out
    assert '{"file":' in shown.replace(" ", "").replace('{"file":', '{"file":') and "500 g flour" in shown
    assert "read_only: yes (claimed)" in shown
    told = json.loads(cli_of_running("receipts", "show", id, "--json").out)
    assert json.loads(told["arguments"]["text"]) == {"file": "recipe.txt"} and told["receipt"]["id"] == id
    missing = cli_of_running("receipts", "show", "gateway.999")
    assert missing.code == 2 and "E1420" in missing.err


def test_a_whole_record_verifies_with_and_without_a_daemon(cli_of_running, tampered):
    told = json.loads(cli_of_running("receipts", "verify", "--json").out)
    assert told["intact"] and told["writers"][0]["records"] >= 4 and told["writers"][0]["covered"] >= 4
    assert tampered[0]("receipts", "verify").code == 0


def _swap(rows):
    rows[1], rows[2] = rows[2], rows[1]


@pytest.mark.parametrize(
    "kind, harm",
    [
        ("change", lambda rows: rows.__setitem__(0, rows[0].replace(b"file-ops", b"file-opz"))),
        ("loss", lambda rows: rows.pop(1)),
        ("reordering", _swap),
        ("truncation", lambda rows: rows.pop()),
    ],
)
def test_a_record_that_was_tampered_with_is_told_with_where(tampered, kind, harm):
    cli, _, file, rows = tampered
    harm(rows)
    file.write_bytes(b"".join(rows))
    said = cli("receipts", "verify")
    assert said.code == 1 and "NOT whole" in said.out and f"  {kind}: " in said.out, said.out
    as_json = cli("receipts", "verify", "--json")
    told = json.loads(as_json.out)
    assert as_json.code == 1 and not told["intact"] and kind in {finding["kind"] for finding in told["writers"][0]["findings"]}
    assert all(finding["first"] for finding in told["writers"][0]["findings"])


def test_what_the_store_noted_counts_where_the_checkpoints_are_gone_too(tampered):
    cli, folder, file, rows = tampered
    for path in folder.iterdir():
        if path != file:
            path.unlink()
    file.write_bytes(b"".join(rows[:-1]))
    said = cli("receipts", "verify")
    assert said.code == 1 and "  truncation: " in said.out


def test_what_stands_outside_counts_where_store_and_checkpoints_are_gone_too(tampered):
    cli, folder, file, rows = tampered
    for path in (*folder.iterdir(), *folder.parent.glob("store.db*")):
        if path != file:
            path.unlink()
    file.write_bytes(b"".join(rows[:-1]))
    said = cli("receipts", "verify")
    assert said.code == 1 and "  truncation: " in said.out


def test_where_nothing_was_recorded_that_is_said_and_fine(cli):
    for words, word in ((("receipts",), "No receipts."), (("receipts", "verify"), "no receipts yet")):
        said = cli(*words)
        assert said.code == 0 and word in said.out
    assert cli("receipts", "--json").out == ""


def test_moments():
    assert [moment(text, 1000000.0) for text in ("30s", "2h", "1.5d", "1w")] == [999970, 992800, 870400, 395200]
    assert moment("2026-11-30T18:00:00Z", 0) == datetime(2026, 11, 30, 18, tzinfo=UTC).timestamp()
    with pytest.raises(EarnestError, match="soon"):
        moment("soon", 0)
