"""Hosts as their hooks speak: events in the shape that each host sends, answers as each host reads them.

Shapes are those of the hosts' published references and sources (docs/hook.md says which, and when they were looked up).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import Home
from hook.conftest import BOOT

Json = dict[str, Any]


APART = """
import json, subprocess, sys
for line in sys.stdin:
    command, given = json.loads(line)
    done = subprocess.run(command, input=given.encode(), capture_output=True, timeout=30)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]), flush=True)
"""
"""A host that is a process of its own, so that the test's process is nobody's host and may be a person's terminal."""


class Spoken:
    """One host process, the test's own unless `apart`. Each event is a hook of its own."""

    host = ""

    def __init__(self, home: Home, *, apart: bool = False) -> None:
        self.home = home
        self.cwd = str(home.path / "project")
        Path(self.cwd).mkdir(exist_ok=True)
        self.reason = ""
        self.err = ""
        self.process: subprocess.Popen[str] | None = None
        if apart:
            command = [sys.executable, "-c", APART]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=home.env, text=True)

    def end(self) -> None:
        """End a host that is apart."""
        if self.process is not None:
            self.process.communicate(timeout=30)

    def say(self, event: str, body: Json) -> tuple[int, bytes]:
        """Exit code and output."""
        command = [sys.executable, "-I", "-S", str(BOOT), "hook", self.host, event]
        whole = json.dumps({"hook_event_name": event, **body})
        if self.process is not None:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(json.dumps([command, whole]) + "\n")
            self.process.stdin.flush()
            code, out, self.err = json.loads(self.process.stdout.readline())
            return code, out.encode()
        done = subprocess.run(command, input=whole.encode(), env=self.home.env, capture_output=True, timeout=30)
        assert done.returncode in (0, 1, 2), done.stderr
        self.err = done.stderr.decode()
        return done.returncode, done.stdout

    def tell(self, event: str, body: Json) -> Json | None:
        """What the host reads of an event that went well."""
        code, out = self.say(event, body)
        assert code == 0, self.err
        return json.loads(out) if out else None


class Codex(Spoken):
    host = "codex"

    def base(self, session: str = "0199a213") -> Json:
        return {
            "session_id": session,
            "turn_id": "turn-1",
            "transcript_path": None,
            "cwd": self.cwd,
            "model": "m",
            "permission_mode": "default",
        }

    def start(self, source: str = "startup") -> None:
        assert self.tell("SessionStart", {**self.base(), "source": source}) is None

    def says(self, words: str) -> None:
        assert self.tell("UserPromptSubmit", {**self.base(), "prompt": words}) is None

    def before(self, tool: str, use: str = "call-1", **given: Any) -> str:
        """What Codex makes of the answer: it reads a denial; anything else but silence would be invalid, and run the tool."""
        said = self.tell("PreToolUse", {**self.base(), "tool_name": tool, "tool_input": given, "tool_use_id": use})
        if said is None:
            return "runs"
        assert set(said) == {"hookSpecificOutput"}, said
        inner = said["hookSpecificOutput"]
        assert set(inner) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}, said
        assert inner["permissionDecision"] == "deny" and inner["permissionDecisionReason"].strip()
        self.reason = inner["permissionDecisionReason"]
        return "denied"

    def after(self, tool: str, response: Any, use: str = "call-1", **given: Any) -> None:
        body = {**self.base(), "tool_name": tool, "tool_input": given, "tool_use_id": use, "tool_response": response}
        assert self.tell("PostToolUse", body) is None


class GeminiCli(Spoken):
    host = "gemini-cli"

    def base(self) -> Json:
        return {"session_id": "f81d4fae", "transcript_path": "/t", "cwd": self.cwd, "timestamp": "2026-11-30T10:00:00Z"}

    def start(self, source: str = "startup") -> None:
        assert self.tell("SessionStart", {**self.base(), "source": source}) is None

    def says(self, words: str) -> None:
        assert self.tell("BeforeAgent", {**self.base(), "prompt": words}) is None

    def before(self, tool: str, context: Json | None = None, **given: Any) -> str:
        more = {"mcp_context": context} if context else {}
        said = self.tell("BeforeTool", {**self.base(), "tool_name": tool, "tool_input": given, **more})
        if said is None:
            return ""
        self.reason = said.get("reason", "")
        return str(said["decision"])

    def after(self, tool: str, text: str, context: Json | None = None, **given: Any) -> None:
        more = {"mcp_context": context} if context else {}
        response = {"llmContent": text, "returnDisplay": text}
        body = {**self.base(), "tool_name": tool, "tool_input": given, "tool_response": response, **more}
        assert self.tell("AfterTool", body) is None


class Cursor(Spoken):
    host = "cursor"
    conversation = "668320d2"

    def base(self) -> Json:
        return {
            "conversation_id": self.conversation,
            "generation_id": "490b90b7",
            "model": "m",
            "cursor_version": "2.1.46",
            "workspace_roots": [self.cwd],
            "user_email": None,
            "transcript_path": None,
        }

    def start(self) -> None:
        assert self.tell("sessionStart", {**self.base(), "session_id": self.conversation}) == {}

    def says(self, words: str, *attachments: Json) -> None:
        body = {**self.base(), "prompt": words, "attachments": list(attachments)}
        assert self.tell("beforeSubmitPrompt", body) == {"continue": True}

    def asks(self, event: str, **members: Any) -> str:
        said = self.tell(event, {**self.base(), **members})
        assert said is not None, "an empty output counts as a failure"
        self.reason = said.get("user_message", "")
        return str(said.get("permission", ""))

    def shell(self, command: str) -> str:
        return self.asks("beforeShellExecution", command=command, cwd=self.cwd)

    def reads(self, path: str, content: str) -> str:
        return self.asks("beforeReadFile", file_path=path, content=content, attachments=[])

    def uses(self, tool: str, **given: Any) -> str:
        return self.asks("preToolUse", tool_name=tool, tool_input=given, tool_use_id="u1", cwd=self.cwd)

    def mcp(self, server: str, tool: str, arguments: Json, **where: str) -> str:
        body = {"mcp_server_name": server, "tool_name": tool, "tool_input": json.dumps(arguments), **where}
        return self.asks("beforeMCPExecution", **body)
