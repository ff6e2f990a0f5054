"""What of a command stays, and what the fixture takes the place of."""

import sys
from pathlib import Path

import pytest

from earnest.assay.fixture import Fixture, build
from earnest.assay.programs import prepared, refuse_runner, wanted_settings
from earnest.core.errors import EarnestError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("data/.git", "plain", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("x.db", "settings.json", "home/.ssh/id", "tool.py"):
        (tmp_path / name).write_text("import os\n")
    return tmp_path


def started(place: Path, *words: str, keep: bool = False, **given: str) -> list[str]:
    fixture = Fixture("/nowhere", "/in/ada")
    argv = [sys.executable, str(place / "tool.py"), *words]
    found = prepared(
        argv, {"PATH": "/usr/bin", "SECRET": "s"}, str(place), fixture, home=str(place / "home"), given=given, keep=keep
    )
    assert "SECRET" not in found.env and found.env["HOME"] == "/in/ada"
    return [*found.argv[2:], *(found.env[name] for name in given)]


def test_folders_and_databases_are_the_fixtures(place: Path) -> None:
    assert started(place, str(place / "plain")) == ["/in/ada/workspace"]
    assert started(place, "--repository", str(place / "data")) == ["--repository", "/in/ada/repo"]
    assert started(place, f"--db-path={place}/x.db") == ["--db-path=/in/ada/workspace/app.db"]
    assert started(place, "new.sqlite") == ["/in/ada/workspace/app.db"]
    assert started(place, str(place / "home/.ssh/id")) == ["/in/ada/workspace"]
    assert started(place, MEMORY=str(place / "memory.jsonl")) == ["/in/ada/workspace/memory.jsonl"]


def test_settings_words_and_addresses_stay(place: Path) -> None:
    for word in (str(place / "settings.json"), "--verbose", "stdio", "https://example.com/x", "postgresql://u@h/db"):
        assert started(place, word) == [word]
    assert started(place, str(place / "plain"), keep=True) == [str(place / "plain")]


def test_settings_that_a_server_asks_for_are_read_from_its_words() -> None:
    assert wanted_settings("Error: set FOO_API_KEY and BAR_URL", {}) == {
        "FOO_API_KEY": "dummy-0123456789abcdef",
        "BAR_URL": "https://example.com",
    }
    assert wanted_settings("ERR_MODULE_NOT_FOUND in NODE_OPTIONS", {}) == {}
    assert wanted_settings("FOO_KEY is bad", {"FOO_KEY": "x"}) == {}


def test_containers_are_refused() -> None:
    with pytest.raises(EarnestError) as error:
        refuse_runner(["/usr/bin/docker", "run", "x"])
    assert error.value.code == "E1953"


def test_the_fixture_knows_what_is_there(tmp_path: Path) -> None:
    fixture = build(str(tmp_path / "home"), "/in/ada")
    for value in ("/in/ada/workspace/notes.txt", "notes.txt", "/in/ada/repo", "alpha.txt"):
        assert fixture.has(value), value
    for value in ("/in/ada/workspace/made.txt", "sample", "", "/etc/passwd"):
        assert not fixture.has(value), value
