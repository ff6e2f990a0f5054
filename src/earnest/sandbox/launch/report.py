"""What the processes of a box write down for who looks at it: one JSON object a line, each in one write at the end of a file.

`journal.py` reads it. Bounded, so that what runs in the box cannot fill the disk by doing much.
"""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Final

LINES: Final = 20_000
BYTES: Final = 32 << 20
BODY: Final = 64 << 10
"""Bytes of a body that are kept."""
_TEXT: Final = 4096


class Report:
    """The file of events, open for appending; -1: nobody wants to know."""

    def __init__(self, descriptor: int, begun: float) -> None:
        self._descriptor = descriptor
        self._begun = begun
        self._left = LINES
        self._room = BYTES

    def say(
        self,
        doing: str,
        subject: str,
        *,
        port: int = 0,
        method: str = "",
        target: str = "",
        body: bytes = b"",
        detail: str = "",
    ) -> None:
        """An event (`box.Event`)."""
        if self._descriptor < 0 or self._left <= 0:
            return
        self._left -= 1
        line: dict[str, object] = {"at": round(time.monotonic() - self._begun, 6), "doing": doing, "subject": subject[:_TEXT]}
        line |= {"port": port} if port else {}
        line |= {name: text[:_TEXT] for name, text in (("method", method), ("target", target), ("detail", detail)) if text}
        if body:
            line["body"] = base64.b64encode(body[:BODY]).decode()
        written = json.dumps(line, ensure_ascii=True).encode() + b"\n"
        self._room -= len(written)
        if self._room < 0:
            self._left = 0
            return
        try:
            os.write(self._descriptor, written)
        except OSError:  # the disk is full, or the box's folder is gone: who reads it is, too
            self._left = 0
