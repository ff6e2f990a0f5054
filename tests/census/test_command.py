"""`earnest census` from one end to the other: three published servers asked, counted, compared, shown."""

import json
import sys

import pytest

from earnest.census.record import load as load_record
from earnest.cli import census as command
from earnest.core.errors import EarnestError

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a sandbox is needed"),
]
NAMES = ("filesystem", "time", "sqlite")


@pytest.fixture
def census(earnest_cmd, home, run_bounded):
    return lambda *words, code=0: _ended(run_bounded([*earnest_cmd, "census", *map(str, words)], home.env), code)


def _ended(done, code):
    assert done.code == code, (done.out, done.err)
    return done


def listing(real_server, names):
    lines = ['cohort = "three"']
    for name in names:
        server = real_server(name)
        prefix = server.command[0].partition("/.servers/")[0] + "/.servers/"
        folder = prefix + server.command[0].removeprefix(prefix).partition("/")[0]
        args = [word.replace(str(server.folder), "{HOME}") for word in server.command[1:]]
        lines += [
            f"[servers.{name}]",
            f"command = {json.dumps([server.command[0], *args])}",
            f"folders = [{json.dumps(folder)}]",
        ]
    return "\n".join(lines)


def test_three_published_servers(census, real_server, tmp_path):
    (tmp_path / "three.toml").write_text(listing(real_server, NAMES))
    run = census("run", tmp_path / "three.toml", "--out", tmp_path / "run", "--every", "0")
    assert "3 of 3 servers answered" in run.out and "time: 2 tools, both eras" in run.err
    found = {name: load_record(tmp_path / "run" / "records" / f"three+{name}.json") for name in NAMES}
    assert {leg.modern for leg in found["time"].legs} == {True, False}
    assert found["filesystem"].sdk and found["sqlite"].main.version == "2025-11-25"
    totals = json.loads(census("figures", tmp_path / "run", "--query", "totals", "--json").out)["totals"]
    assert (totals[0]["servers"], totals[0]["answered"], totals[0]["tools"]) == (3, 3, 22)
    again = census("run", tmp_path / "three.toml", "--out", tmp_path / "run", "--json")
    assert json.loads(again.out)["run"]["kept"] == 3
    same = census("diff", tmp_path / "run", tmp_path / "run")
    assert "22 unchanged" in same.out
    pages = census("report", tmp_path / "run", "--out", tmp_path / "site")
    assert "8 pages" in pages.out and (tmp_path / "site" / "three" / "index.html").exists()


def test_a_recording_is_a_cohort_of_its_own(census, tmp_path):
    old = {
        "name": "t",
        "description": "Returns a row",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object"},
    }
    new = {**old, "annotations": {}, "description": "Returns a row"}
    for name, tool in (("may", old), ("july", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"server": "s", "tools": [tool]}))
        census("run", tmp_path / f"{name}.json", "--out", tmp_path / name, "--cohort", name, "--licence", "CC0-1.0")
    changed = census("diff", tmp_path / "may", tmp_path / "july", code=1)
    assert "1 tightening" in changed.out and "readOnlyHint: true -> absent" in changed.out
    told = json.loads(census("diff", tmp_path / "may", tmp_path / "july", "--json", code=1).out)
    assert told[0]["changes"][0]["kind"] == "tightening" and told[0]["earlier"] == "may"
    both = census("dataset", tmp_path / "may", tmp_path / "july", "--out", tmp_path / "both")
    assert "2 servers, 2 tools" in both.out
    rows = json.loads(census("figures", tmp_path / "both", "--query", "hints", "--json").out)["hints"]
    assert {row["cohort"] for row in rows} == {"may", "july"}


def test_a_mistake_is_told_and_ends_with_two(census, tmp_path):
    assert "E1019" in census("run", tmp_path / "none.toml", code=2).err


def test_mistakes_are_told_with_what_to_do(tmp_path):
    (tmp_path / "tools.jsonl").write_text('{"tools": []}')
    (tmp_path / "list.toml").write_text("[servers.a]\nnpm = 'a@1'")
    for act, code, words in (
        (lambda: command.run(str(tmp_path / "tools.jsonl")), "E1018", "--cohort"),
        (lambda: command.run(str(tmp_path / "tools.jsonl"), cohort="a b"), "E1900", "--cohort"),
        (lambda: command.show_figures(tmp_path), "E1904", "no dataset"),
        (lambda: command.show_figures(tmp_path, names=["total"]), "E1018", "Did you mean totals"),
        (lambda: command.show_figures(tmp_path, names=["drift"]), "E1018", "--earlier"),
        (lambda: command.dataset([tmp_path]), "E1904", "no folder of a run"),
        (lambda: command.run(str(tmp_path / "list.toml"), only=["b"]), "E1018", "no server b"),
        (lambda: command.run(str(tmp_path / "list.toml"), scheduler="moon"), "E1018", "moon"),
    ):
        with pytest.raises(EarnestError) as caught:
            act()
        assert caught.value.code == code and words in f"{caught.value.message} {caught.value.remedy}"
