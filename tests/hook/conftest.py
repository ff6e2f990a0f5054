"""A host with earnest's hook: real shims, a real daemon. The test's own process is the host."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Home

ROOT = Path(__file__).resolve().parents[2]
BOOT = ROOT / "src" / "earnest" / "shim" / "boot.py"


class Host:
    """One host process: every event is a hook of its own, as it is in life."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.cwd = str(home.path / "project")
        Path(self.cwd).mkdir()
        self.uses = 0

    def command(self, event: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(BOOT), "hook", "claude-code", event]

    def tell(self, event: str, session: str = "one", **members: Any) -> dict[str, Any] | None:
        """What the host reads: the one document, or nothing."""
        body = {"session_id": session, "cwd": self.cwd, "hook_event_name": event, "transcript_path": "/t", **members}
        done = subprocess.run(
            self.command(event), input=json.dumps(body).encode(), env=self.home.env, capture_output=True, timeout=30
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def start(self, session: str = "one", source: str = "startup") -> None:
        assert self.tell("SessionStart", session, source=source) is None

    def says(self, words: str, session: str = "one") -> None:
        assert self.tell("UserPromptSubmit", session, prompt=words) is None

    def before(self, tool: str, session: str = "one", **input: Any) -> str:
        """The host's word for a call: allow, ask, deny, or nothing."""
        self.uses += 1
        told = self.tell("PreToolUse", session, tool_name=tool, tool_input=input, tool_use_id=f"u{self.uses}")
        if told is None:
            return ""
        said = told["hookSpecificOutput"]
        assert said["hookEventName"] == "PreToolUse" and said["permissionDecisionReason"]
        self.reason = said["permissionDecisionReason"]
        return str(said["permissionDecision"])

    def after(self, tool: str, response: Any, session: str = "one", **input: Any) -> None:
        told = self.tell(
            "PostToolUse", session, tool_name=tool, tool_input=input, tool_use_id=f"u{self.uses}", tool_response=response
        )
        assert told is None

    def uses_tool(self, tool: str, response: Any, session: str = "one", **input: Any) -> str:
        word = self.before(tool, session, **input)
        self.after(tool, response, session, **input)
        return word


@pytest.fixture
def host(home: Home) -> Host:
    return Host(home)


@pytest.fixture
def make_host() -> Callable[[Home], Host]:
    return Host
