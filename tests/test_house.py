"""Rules of the house that hold for every file."""

import ast
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "earnest"
LONGEST = 500
LONGEST_TEST = 800  # a file of tests is a list, not a room
DRAWERS = {"util", "utils", "helper", "helpers", "common", "misc", "stuff", "shared", "tools", "lib"}
FORBIDDEN = {
    "a registry's host, which belongs to the configuration of who installs": (
        r"registry\.npmjs" + r"\.org|pythonhosted" + r"\.org|//pypi" + r"\.org"
    ),
    "a path of one machine": r"/work" + r"/(?:main|shared)\b|/tmp" + r"/w/|/root" + r"/\.|\.pyenv" + r"/",
}
TEXTS = {".py", ".md", ".toml", ".json", ".jsonl", ".sql", ".txt", ".html", ".eml", ".yml", ".yaml", ".css", ".js", ""}


def tracked() -> list[Path]:
    """All files under version control that exist, or, in an unpacked archive, all files of the source folders."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if done.returncode == 0 and done.stdout:
        paths = [ROOT / name for name in done.stdout.decode().split("\0") if name]
        return [path for path in paths if path.is_file()]
    folders = ("src", "tests", "docs", "examples", "scripts", "bench")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in found if "__pycache__" not in path.parts]


FILES = tracked()
MODULES = [path for path in FILES if path.suffix == ".py"]
INSIDE = [path for path in MODULES if path.is_relative_to(SOURCE)]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_files_to_look_at():
    assert len(INSIDE) > 20 and len(MODULES) > len(INSIDE)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_file_is_no_longer_than_a_room_and_a_half(path):
    lines = len(path.read_text().splitlines())
    limit = LONGEST if path.is_relative_to(SOURCE) else LONGEST_TEST
    assert lines <= limit, "split it along one reason to change"


def test_no_module_is_a_drawer_for_what_has_no_place():
    # cli/tools.py is no drawer but the command `earnest tools`.
    inside = [path for path in INSIDE if name(path) != "src/earnest/cli/tools.py"]
    named = {path: {part.removesuffix(".py") for part in path.relative_to(ROOT / "src").parts} for path in inside}
    assert [name(path) for path, parts in named.items() if parts & DRAWERS] == []


def test_every_public_module_says_what_it_is():
    def silent(path: Path) -> bool:
        tree = ast.parse(path.read_text())
        return bool(tree.body) and ast.get_docstring(tree) is None

    public = [path for path in INSIDE if not path.stem.startswith("_") or path.stem in ("__init__", "__main__")]
    assert [name(path) for path in public if silent(path)] == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_text_holds(what):
    pattern = re.compile(FORBIDDEN[what])
    found = []
    for path in FILES:
        if path.suffix in TEXTS:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{name(path)}:{number}: {line.strip()[:80]}")
    assert found == [], what


def test_no_test_folder_is_a_package():
    assert [name(path) for path in MODULES if path.name == "__init__.py" and "tests" in path.parts] == []


def test_decisions_are_numbered_one_after_another():
    numbers = [path.name[:4] for path in FILES if path.parent == ROOT / "docs" / "decisions"]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_the_wheel_holds_every_file_of_the_package_and_the_command(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    # Without compiling: that takes a while and writes beside the sources; tests/net/test_compiled.py holds that it was done.
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"EARNEST_COMPILED": "0"})
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(ROOT / "src")) for path in FILES if path.is_relative_to(SOURCE)}
    assert wanted - packed == set()
    assert any(entry.endswith(".data/scripts/earnest") for entry in packed)
    assert {Path(entry).suffix for entry in wanted} >= {".py", ".eml", ".html"}
