"""Source code: definitions of tools found without running them. Which reader is for which file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from earnest.core.errors import EarnestError
from earnest.lint.model import Place, Server, Tool, Unread

PYTHON: Final = frozenset((".py", ".pyi"))
SCRIPT: Final = frozenset((".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"))
_SKIPPED: Final = frozenset(
    (
        "node_modules",
        ".git",
        ".venv",
        "venv",
        "__pycache__",
        "dist",
        "build",
        "site-packages",
        ".tox",
        "tests",
        "test",
        "__tests__",
    )
)
_GENERATED: Final = (".d.ts", ".test.ts", ".spec.ts", ".min.js")
MAX_BYTES: Final = 4 << 20


def is_source(path: Path) -> bool:
    """Whether a file is one of ours by its ending."""
    return path.suffix in PYTHON or path.suffix in SCRIPT


def files(root: Path) -> Iterator[Path]:
    """Source files below a folder, in order, without dependencies, builds and tests; or the file itself."""
    if root.is_file():
        yield root
        return
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in _SKIPPED)
        for path in (Path(folder, name) for name in sorted(names)):
            if is_source(path) and path.is_file() and not path.name.endswith(_GENERATED):
                yield path


def read_source(root: Path) -> Server | None:
    """The tools that source below `root` defines, as one server named for the folder; None if it defines none and can be
    read."""
    tools: list[Tool] = []
    unread: list[Unread] = []
    for path in files(root):
        if path.stat().st_size > MAX_BYTES:
            unread.append(Unread(Place(str(path)), f"is longer than {MAX_BYTES >> 20} MiB"))
            continue
        text = path.read_text("utf-8", errors="replace")
        if "ool" not in text:  # nothing that defines a tool goes without the word
            continue
        if path.suffix in PYTHON:
            from earnest.lint.source_python import tools_in

            found = tools_in(text, str(path))
            if isinstance(found, Unread):
                unread.append(found)
            else:
                tools += found
        else:
            from earnest.lint.source_typescript import tools_in as scripts

            tools += scripts(text, str(path))
    if not tools and not unread:
        return None
    name = root.resolve().stem if root.is_file() else root.resolve().name
    return Server(name, tuple(tools), source=str(root), unread=tuple(unread))


def required(root: Path) -> Server:
    """Like `read_source`; raises E1020 where there is none."""
    found = read_source(root)
    if found is None:
        raise EarnestError(
            "E1020",
            f"{root} defines no tools that are found without running it",
            "Lint the running server instead: earnest lint -- COMMAND …",
        )
    return found
