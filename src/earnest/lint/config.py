"""`earnest-lint.toml`: what a project asks of its own tools.

It lies in the root of a server's source, is read only from where the command runs or from `--lint-config`, and holds nothing
of the gateway: server authors have no `earnest.toml`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import Confidence, Persona, Severity
from earnest.lint.registry import find
from earnest.lint.run import Ignore

NAME: Final = "earnest-lint.toml"


class LintConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. `fail_on`: the least severity with which the command fails. `profiles`: stores to check for."""

    severity: Severity = "note"
    confidence: Confidence = "low"
    persona: Persona = "regular"
    fail_on: Severity = "warning"
    profiles: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    baseline: str = ""


def load(path: Path | None) -> LintConfig:
    """The configuration at `path`, or of the current folder where it has one. Raises E1022 with what is wrong."""
    chosen = path or Path(NAME)
    if path is None and not chosen.is_file():
        return LintConfig()
    try:
        config = msgspec.convert(tomllib.loads(chosen.read_text("utf-8")), LintConfig)
    except OSError as error:
        raise EarnestError("E1022", f"{chosen}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise EarnestError("E1022", f"{chosen}: {error}", "docs/lint.md shows the file.") from None
    for audit in (*config.disable, *(one.audit for one in config.ignore if one.audit != "*")):
        find(audit)
    return config
