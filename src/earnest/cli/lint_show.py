"""How `earnest lint` shows findings and verdicts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from earnest.cli.style import Terminal
from earnest.lint.model import Finding, Server
from earnest.lint.outputs import github, json, markdown, sarif, text
from earnest.lint.stores.profile import Verdict

FORMATS: Final = ("text", "json", "sarif", "github", "markdown")
_WRITERS: Final = {"json": json.render, "sarif": sarif.render, "github": github.render, "markdown": markdown.render}


def show(out: Terminal, shape: str, findings: Sequence[Finding], servers: Sequence[Server], every: bool) -> None:
    """Writes findings to standard output in one of `FORMATS`."""
    if shape == "text":
        text.render(findings, len(servers), sum(len(server.tools) for server in servers), out.line, every)
        return
    sys.stdout.write(_WRITERS[shape](findings))


def verdicts(out: Terminal, passed: Sequence[tuple[str, str, Verdict]]) -> None:
    """Pass or fail of each tool under each profile."""
    for (profile, server), group in groupby(passed, key=lambda row: row[:2]):
        ones = [verdict for _, _, verdict in group]
        good = sum(one.passed for one in ones)
        out.line(f"{profile}: {github.inert(server)}, {good} of {len(ones)} tools pass", "strong")
        for one in ones:
            out.line(f"  {'pass' if one.passed else 'FAIL'}  {github.inert(one.tool)}", "good" if one.passed else "bad")
        out.line()
