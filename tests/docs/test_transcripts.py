"""The examples of docs/commands.md show what the commands say today."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_example_says_what_the_page_shows() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs-examples", "--check"], capture_output=True, text=True, timeout=290
    )
    assert done.returncode == 0, f"run scripts/docs-examples, if this is meant:\n{done.stdout}{done.stderr}"
