"""Assays for tests: the command line run once for a server, and a box without walls for the oracle's own rules."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Home

Assay = Callable[..., "dict[str, Any]"]


@pytest.fixture
def assay(home: Home) -> Assay:
    """`assay(*options, "--", *command)`: the report as JSON. `code`: the exit code wanted."""

    def run(*words: str, code: int = 0, cwd: Path | None = None) -> dict[str, Any]:
        command = [sys.executable, "-m", "earnest", "assay", "--json", *words]
        done = subprocess.run(command, env=home.env, cwd=cwd or home.path, capture_output=True, text=True, timeout=280)
        assert done.returncode == code, f"{done.returncode}\n{done.stderr[-3000:]}\n{done.stdout[-3000:]}"
        return dict(json.loads(done.stdout))

    return run


def verdicts(report: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The words of a report: tool to hint to verdict."""
    return {tool["name"]: {hint: found["verdict"] for hint, found in tool["hints"].items()} for tool in report["tools"]}


def server(name: str) -> list[str]:
    """The command of one of tests/servers, in an interpreter that starts fast."""
    return [sys.executable, "-S", str(ROOT / "tests" / "servers" / name)]
