"""A secret in a definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

TOKEN: Final = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|sk-(?:proj-|ant-)?[A-Za-z0-9_-]{24,}|xox[abposr]-[\w-]{20,}|AKIA[A-Z0-9]{16}|AIza[\w-]{35}|glpat-[\w-]{20}"
    r"|eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]+|-----BEGIN [A-Z ]*PRIVATE KEY)"
)
_KEY: Final = re.compile(r"(?:api_?key|access_?key|auth_?token|access_?token|token|secret|password|passwd|credential)s?$", re.I)
_VALUE: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/_=.-]{16,}\Z")
_DUMMY: Final = re.compile(r"your|example|xxx|placeholder|dummy|changeme|<|\$\{|test|123456", re.I)


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        found = next(_secrets(tool.schema, "", 8), None)
        if found:
            yield Note(
                f"its schema holds what looks like a secret ({found})",
                tool,
                fix="take it out, revoke it, and read it from the environment",
            )


def _secrets(value: Any, name: str, left: int) -> Iterator[str]:
    if not left:
        return
    if isinstance(value, Mapping):
        for key in ("default", "const"):
            given = value.get(key)
            if not isinstance(given, str) or _DUMMY.search(given):
                continue
            if TOKEN.search(given) or (_KEY.search(name) and _VALUE.match(given) and not given.startswith("http")):
                yield f"{key} of {name or 'the schema'}, {given[:4]}…"
        for key, inner in value.items():
            if isinstance(inner, Mapping | list):
                yield from _secrets(inner, key if key not in ("items", "properties") else name, left - 1)
            elif (
                isinstance(inner, str)
                and key in ("description", "examples")
                and TOKEN.search(inner)
                and not _DUMMY.search(inner)
            ):
                yield f"description of {name or 'the schema'}"
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, name, left - 1)


AUDIT = Audit(
    id="secret-default",
    severity="error",
    confidence="high",
    what="A default, constant or description in a schema that has the form of a token, or a long random default of a "
    "parameter called key, token, secret or password.",
    why="A list of tools goes to every client and every model, and into their logs.",
    how="Revoke it, and take it from the environment.",
    example="A server that was started with its key as a default prints it into its own schema.",
    check=_check,
)
