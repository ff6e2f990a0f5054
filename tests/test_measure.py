"""`bench/measure.py`: a part that fails costs only itself."""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"

START = """
import json
print(json.dumps({"direct": 20.0, "warm": 30.0, "added": 10.0, "cold": 530.0, "daemon": 500.0}))
"""


@pytest.fixture
def measure(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import measure

    (tmp_path / "start.py").write_text(START)
    (tmp_path / "peers.py").write_text("raise SystemExit('nginx, 1 connections: wrong answers')")
    for name, path in (("HERE", "."), ("RESULTS", "results"), ("PAGE", "page.md"), ("PICTURE", "img/page.svg")):
        monkeypatch.setattr(measure, name, tmp_path / path)
    monkeypatch.setattr(measure, "commands", lambda rounds, seconds: {"peers": ["peers.py"], "start": ["start.py"]})
    return measure


def test_a_part_that_fails_is_named_and_the_others_are_written(measure, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["measure.py"])
    assert measure.main() == 1
    (kept,) = (tmp_path / "results").iterdir()
    found = json.loads(kept.read_text())
    assert found["failed"] == {"peers": "nginx, 1 connections: wrong answers"} and found["start"]["added"] == 10.0
    page = (tmp_path / "page.md").read_text()
    assert "**Not measured:** peers" in page and "(+10)" in page
    assert "| a warm daemon adds to a server's start | 40 ms | 10.00 ms | holds |" in page


def test_a_part_that_is_run_again_leaves_the_others(measure, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["measure.py"])
    measure.main()
    monkeypatch.setattr(sys, "argv", ["measure.py", "--parts", "peers"])
    (tmp_path / "peers.py").write_text("print('{}')")
    assert measure.main() == 0
    found = json.loads(next((tmp_path / "results").iterdir()).read_text())
    assert found["failed"] == {} and found["start"]["added"] == 10.0 and found["peers"] == {}


def test_a_fraction_of_a_second_is_refused_in_words(measure, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["measure.py", "--seconds", "0.5"])
    with pytest.raises(SystemExit):
        measure.main()
    assert "not a whole number of seconds" in capsys.readouterr().err


def test_a_verdict_is_measured_both_ways(measure, tmp_path):
    import decide

    rig = decide.Rig(str(tmp_path))
    arguments = decide.ARGUMENTS["path"].replace(b"FOLDER", str(tmp_path).encode())
    assert decide.measured(rig, arguments, 32, 16)["judge"] > 0
    if decide.AVAILABLE:
        assert decide.along(rig, arguments, 16) > 0
