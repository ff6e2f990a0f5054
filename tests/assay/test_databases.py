"""Servers whose state is in a database: a real one runs beside them in the sandbox, and its rows are compared."""

import shutil
import sys
from pathlib import Path

import pytest

from assay.conftest import Assay, verdicts
from earnest.assay.bench import DATABASES

SERVERS = Path(__file__).parent.parent / "servers"
PROGRAMS = {"postgresql": ("postgres", "psql"), "mysql": ("mariadbd", "mysql"), "redis": ("redis-server", "redis-cli")}
PATHS = ":".join(("/usr/bin", "/usr/sbin", "/usr/local/bin", *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATABASES)
def test_what_tools_do_to_a_database_is_seen_in_its_rows(kind: str, assay: Assay) -> None:
    missing = [name for name in PROGRAMS[kind] if shutil.which(name, path=PATHS) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: scripts/setup-databases installs it where that can be done")
    command = (sys.executable, "-S", str(SERVERS / "database.py"), kind)
    few = [word for name in ("list_notes", "look_notes") for word in ("--tool", name)]
    report = assay("--database", kind, "--patience", "0", "--folder", str(SERVERS), *few, "--", *command, code=1)
    assert {name: said["read_only"] for name, said in verdicts(report).items()} == {
        "list_notes": "SUPPORTED",
        "look_notes": "CONTRADICTED",
    }
    tools = {tool["name"]: tool for tool in report["tools"]}
    assert not tools["list_notes"]["effective_calls"]
    assert all("rows new" in one["what"] for one in tools["look_notes"]["hints"]["read_only"]["evidence"])


def test_a_database_that_cannot_be_started_is_told(assay: Assay) -> None:
    command = (sys.executable, "-S", str(SERVERS / "database.py"), "redis")
    report = assay("--database", "oracle", "--", *command, code=2)
    assert report["error"]["code"] == "E1018" and "mysql" in report["error"]["remedy"]
