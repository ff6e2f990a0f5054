"""The arrows between the rooms of the house, as the table of docs/architecture.md draws them."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "earnest"
TOP = 1000
"""The line of modules that lie in no room (`__main__`, `__init__`): they may import from all rooms."""
STRICT = {"shim": {"_sha2"}, "demo": set(), "core": {"msgspec"}}
"""Rooms with the standard library only, and what else each may have (`_sha2` is that library's, from 3.12 on)."""


def lines_of_the_table(text: str) -> dict[str, int]:
    """Line number of each room, from the table in docs/architecture.md."""
    rows = re.findall(r"^\| (\d+) \| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    return {room: int(number) for number, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}


def imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Full names of all that a module of `package` imports, wherever in it the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            # `from earnest import core` names the room only in what it imports.
            yield from ([f"{module}.{alias.name}" for alias in node.names] if module == "earnest" else [module])


def wrong_arrows(room: str, names: list[str], lines: dict[str, int]) -> list[str]:
    """What a module of `room` must not import among `names`, each with the reason."""
    wrong = []
    for name in names:
        parts = name.split(".")
        if parts[0] != "earnest":
            if room in STRICT and parts[0] not in sys.stdlib_module_names | STRICT[room]:
                wrong.append(f"{name}: not in the standard library")
            continue
        target = parts[1] if len(parts) > 1 else ""
        if target in lines:
            if target != room and lines[target] >= lines.get(room, TOP):
                wrong.append(f"{name}: line {lines[target]} is not above line {lines[room]}")
        elif room in STRICT:  # the package itself: its version, its public names
            wrong.append(f"{name}: {room} stands alone")
    return wrong


LINES = lines_of_the_table((ROOT / "docs" / "architecture.md").read_text())
MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_lines_above_its_own(path):
    inside = path.relative_to(SOURCE).parts
    room = inside[0] if len(inside) > 1 else ""
    assert not room or room in LINES, f"docs/architecture.md has no line for {room}"
    names = list(imports(ast.parse(path.read_text()), ("earnest", *inside[:-1])))
    assert wrong_arrows(room, names, LINES) == []


def test_the_table_has_the_rooms_in_the_order_of_a_call():
    order = ["core", "protocol", "net", "store", "refine", "sandbox", "config", "upstream", "pdp", "identity", "gateway"]
    assert [LINES[room] for room in order] == sorted({LINES[room] for room in order})
    assert LINES["shim"] == LINES["demo"] == 0 and LINES["cli"] == max(LINES.values())


@pytest.mark.parametrize(
    "room, code, allowed",
    [
        ("core", "import json, msgspec", True),
        ("core", "import uvloop", False),
        ("core", "from earnest.core.hints import RawHints", True),
        ("core", "from earnest import __version__", False),
        ("core", "def f():\n    from earnest.protocol import methods", False),
        ("shim", "import os", True),
        ("shim", "import msgspec", False),
        ("shim", "from earnest.core import hints", False),
        ("shim", "from . import paths", True),
        ("demo", "from earnest.demo.kit import Tool", True),
        ("demo", "from earnest.shim.paths import home", False),
        ("gateway", "from earnest.hook import entry", False),
        ("gateway", "from earnest.pdp.engine import Engine", True),
        ("gateway", "from ..cli import main", False),
        ("gateway", "from earnest import cli", False),
        ("gateway", "from earnest import __version__", True),
        ("gateway", "import earnest", True),
        ("pdp", "import earnest.gateway.session", False),
        ("store", "import uvloop", True),
    ],
)
def test_an_arrow_is_judged_by_both_its_ends(room, code, allowed):
    names = list(imports(ast.parse(code), ("earnest", room)))
    assert (wrong_arrows(room, names, LINES) == []) is allowed
