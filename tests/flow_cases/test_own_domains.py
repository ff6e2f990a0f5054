"""The four domains of `bench/flow/own` as a guard against change: no attack succeeds, and the tasks still run."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_attack_on_the_four_domains_succeeds_and_their_tasks_run_unasked(tmp_path):
    command = [sys.executable, str(ROOT / "bench/flow/own/run.py"), "--quick", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    rows = json.loads((tmp_path / "results.json").read_text())
    together = {setting: row for setting, name, row in rows if name == "all"}
    row = together["plain, user's words"]
    assert row["reached"] == 0 and row["pairs"] == 407 and row["partial"] <= 2
    assert row["tasks"] == 37 and row["auto"] >= 35
