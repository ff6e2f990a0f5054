"""`earnest receipts`: the record as a program, a person and an auditor read it."""

import json
import time
from datetime import UTC, datetime

import pytest

from earnest.cli.receipts import moment
from earnest.core.errors import EarnestError

FIELDS = [
    "id", "time", "server", "tool", "decision", "reasons", "arguments_sha256", "pin", "policy_sha256", "labels_before",
    "labels_after", "outcome",
]  # fmt: skip


@pytest.fixture
def after_calls(demo):
    """The flag of a configuration whose daemon has decided two calls, an allow and a deny."""
    client = demo.client()
    assert not client.call("file-ops", "read", {"file": "recipe.txt"}).is_error
    assert client.call("liar", "tidy", {}).is_error
    return ("--config", demo.ready["config"])


def lines(said):
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_each_line_joins_decision_and_outcome(after_calls, cli):
    first, second = lines(cli("receipts", "--json", *after_calls))
    assert [name for name in first if name in FIELDS] == FIELDS
    assert (first["server"], first["tool"], first["decision"], first["outcome"]) == ("file-ops", "read", "allow", "ok")
    assert first["labels_before"] == [] and first["labels_after"] == ["private"]
    assert first["pin"].startswith("v1:") and len(first["arguments_sha256"]) == len(first["policy_sha256"]) == 64
    assert first["time"].endswith("Z") and first["reasons"][0]["rule"] == "preset/balanced: reads run"
    assert (second["server"], second["decision"]) == ("liar", "deny") and second["outcome"] != "ok"


def test_filters_choose(after_calls, cli):
    def some(*words):
        return [line["tool"] for line in lines(cli("receipts", "--json", *words, *after_calls))]

    assert some("--server", "file*") == ["read"] and some("--tool", "t?dy") == ["tidy"]
    assert some("--decision", "deny") == ["tidy"] and some("--since", "5m") == ["read", "tidy"]
    assert some("--since", datetime.fromtimestamp(time.time() + 60, UTC).isoformat()) == []
    id = lines(cli("receipts", "--json", *after_calls))[1]["id"]
    assert some("--id", id) == ["tidy"]
    for wrong in (("--decision", "maybe"), ("--since", "yesterday")):
        said = cli("receipts", *wrong, *after_calls)
        assert said.code == 2 and "E1018" in said.err


def test_a_person_gets_a_table_and_one_receipt_whole(after_calls, cli):
    table = cli("receipts", *after_calls).out
    assert "file-ops/read" in table and "strangers destroy nothing" in table
    id = lines(cli("receipts", "--json", *after_calls))[0]["id"]
    shown = cli("receipts", "show", id, *after_calls).out
    assert '{"file":' in shown.replace(" ", "").replace('{"file":', '{"file":') and "500 g flour" in shown
    assert "read_only: yes (claimed)" in shown
    told = json.loads(cli("receipts", "show", id, "--json", *after_calls).out)
    assert json.loads(told["arguments"]["text"]) == {"file": "recipe.txt"} and told["receipt"]["id"] == id
    missing = cli("receipts", "show", "gateway.999", *after_calls)
    assert missing.code == 2 and "E1420" in missing.err


def test_a_whole_record_verifies_with_and_without_a_daemon(after_calls, cli, demo):
    told = json.loads(cli("receipts", "verify", "--json", *after_calls).out)
    assert told["intact"] and told["writers"][0]["records"] >= 4 and told["writers"][0]["covered"] >= 4
    demo.end()
    assert cli("receipts", "verify", *after_calls).code == 0


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
def test_a_record_that_was_tampered_with_is_told_with_where(after_calls, cli, demo, home, kind, harm):
    demo.end()
    [file] = [path for path in home.earnest.glob("c-*/receipts/*") if path.suffix == ".jsonl"]
    rows = file.read_bytes().splitlines(keepends=True)
    harm(rows)
    file.write_bytes(b"".join(rows))
    said = cli("receipts", "verify", *after_calls)
    assert said.code == 1 and "NOT whole" in said.out and f"  {kind}: " in said.out, said.out
    as_json = cli("receipts", "verify", "--json", *after_calls)
    told = json.loads(as_json.out)
    assert as_json.code == 1 and not told["intact"] and kind in {finding["kind"] for finding in told["writers"][0]["findings"]}
    assert all(finding["first"] for finding in told["writers"][0]["findings"])


def test_what_the_store_noted_counts_where_the_checkpoints_are_gone_too(after_calls, cli, demo, home):
    demo.end()
    folder = next(home.earnest.glob("c-*/receipts"))
    [file] = [path for path in folder.iterdir() if path.suffix == ".jsonl"]
    for path in folder.iterdir():
        if path != file:
            path.unlink()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    said = cli("receipts", "verify", *after_calls)
    assert said.code == 1 and "  truncation: " in said.out


def test_what_stands_outside_counts_where_store_and_checkpoints_are_gone_too(after_calls, cli, demo, home):
    demo.end()
    folder = next(home.earnest.glob("c-*/receipts"))
    [file] = [path for path in folder.iterdir() if path.suffix == ".jsonl"]
    for path in (*folder.iterdir(), *folder.parent.glob("store.db*")):
        if path != file:
            path.unlink()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    said = cli("receipts", "verify", *after_calls)
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
