"""Reads what a scripted server wrote down (see README.md)."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Record:
    """The events of one scripted server, all its processes together, oldest first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self, kind: str | None = None) -> list[Json]:
        """All events, or those of one kind."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        events = [json.loads(line) for line in lines[:-1]]
        return [event for event in events if kind is None or event["event"] == kind]

    def calls(self, name: str | None = None) -> list[Json]:
        """The tool calls that arrived, of one tool or of all."""
        return [event for event in self.events("call") if name is None or event["name"] == name]

    def texts(self, method: str | None = None) -> list[str]:
        """The messages exactly as they arrived, of one method or all."""
        texts = [str(event["text"]) for event in self.events("message")]
        return [text for text in texts if method is None or _method(text) == method]

    def messages(self, method: str | None = None) -> list[Json]:
        """The same, parsed."""
        return [json.loads(text) for text in self.texts(method)]

    async def wait(self, kind: str, count: int = 1, timeout: float = 60.0, **having: Any) -> list[Json]:
        """At least `count` events of one kind with these details, as soon as they are there."""
        end = time.monotonic() + timeout
        while True:
            found = [e for e in self.events(kind) if all(e.get(key) == value for key, value in having.items())]
            if len(found) >= count:
                return found
            if time.monotonic() > end:
                seen = [event["event"] for event in self.events()]
                raise TimeoutError(f"no {count} x {kind} {having} within {timeout} s; events: {seen}")
            await asyncio.sleep(0.01)


def _method(text: str) -> Any:
    try:
        message = json.loads(text)
    except ValueError:
        return None
    return message.get("method") if isinstance(message, dict) else None
