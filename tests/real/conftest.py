"""Fixtures of the tests with published servers."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from real.rig import Rig


@pytest.fixture
def rig(home: Any, earnest_cmd: list[str], real_server: Callable[[str], Any], tmp_path: Path) -> Iterator[Rig]:
    """A home without servers yet; `rig.server(...)` configures, clients and the person come after."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    yield Rig(home, earnest_cmd, real_server, folder)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit, the same in each test."""
    folder = tmp_path / "repository"
    folder.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    }

    def git(*words: str) -> None:
        subprocess.run([shutil.which("git") or "git", *words], cwd=folder, env=env, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    (folder / "notes.txt").write_text("one\n")
    git("add", "notes.txt")
    git("commit", "-q", "-m", "first")
    return folder
