"""The hosts whose hooks earnest answers, by the name that stands behind `earnest hook`."""

from __future__ import annotations

from typing import Final

from earnest.hook import claude_code, codex, cursor, gemini_cli
from earnest.hook.wire import Wire

HOSTS: Final[dict[str, Wire]] = {one.name: one for one in (claude_code.WIRE, codex.WIRE, gemini_cli.WIRE, cursor.WIRE)}
