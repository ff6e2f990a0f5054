"""Servers that need no install, held as any other."""

import json
from pathlib import Path

import pytest

from census_kit import PYTHON
from earnest.census.spec import Spec

SERVERS = Path(__file__).resolve().parents[1] / "servers"


@pytest.fixture
def scripted_spec(tmp_path):
    """`scripted_spec(name, script)`: an entry for a scripted server that is held like any other."""

    def make(name, script, **more):
        folder = tmp_path / "scripts" / name
        folder.mkdir(parents=True)
        file = folder / "script.json"
        file.write_text(json.dumps(script))
        file.chmod(0o644)
        return Spec(
            name=name,
            source="command",
            program=PYTHON,
            args=("-S", str(SERVERS / "scripted.py"), str(file)),
            folders=(str(SERVERS), str(folder)),
            **more,
        )

    return make
