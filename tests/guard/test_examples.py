"""Each program of examples/guard, run as its reader would run it: with the framework it is for."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "guard"
REFUSED = "was not made"

PRINTED = {
    "functions.py": "asked: send_mail to max@evil.example\nrefused: ask\nsent: ['ann@corp.example']\n",
    "mcp_client.py": "tools: list, read, search, send\nann@corp.example sent\nmax@evil.example refused\n",
    "fastmcp_server.py": (
        "middleware: read_note ran\nmiddleware: delete_note refused\nasked: delete_note\nclient: delete_note ran\n"
    ),
    "langchain_tools.py": ["Opening hours", f"The call of transfer {REFUSED}"],
    "pydantic_ai_agent.py": [f"The call of delete_repository {REFUSED}", "deleted: []"],
    "openai_agent.py": ["1. Buy at", "200", "asked: https://evil.example/in", f"The call of post {REFUSED}"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_does_what_its_first_lines_say(name):
    run = [sys.executable, str(FOLDER / name)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, cwd=FOLDER.parents[1], env={"PYTHONPATH": "src"})
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = PRINTED[name]
    if isinstance(wanted, str):
        assert done.stdout == wanted
    else:
        lines = done.stdout.splitlines()
        assert len(lines) == len(wanted) and all(map(str.startswith, lines, wanted)), done.stdout


def test_every_example_is_run_and_named():
    files = {path.name for path in FOLDER.glob("*.py")}
    assert files == PRINTED.keys()
    assert all(f"`{name}`" in (FOLDER / "README.md").read_text() for name in files)
