"""Published servers with claims: nothing is held against them falsely. All seven: `python bench/assay.py --real`."""

from collections.abc import Callable
from typing import Any

import pytest

from assay.conftest import Assay, verdicts
from conftest import RealServer

pytestmark = [pytest.mark.real, pytest.mark.slow]


def effective(report: dict[str, Any]) -> dict[str, int]:
    return {tool["name"]: tool["effective_calls"] for tool in report["tools"]}


def test_memory_is_contradicted_in_nothing_and_every_writer_shows_effect(
    real_server: Callable[[str], RealServer], assay: Assay
) -> None:
    server = real_server("memory")
    settings = [word for name, value in server.env.items() for word in ("--env", f"{name}={value}")]
    report = assay("--jobs", "4", *settings, "--", *server.command)
    said = verdicts(report)
    assert all(said[name]["read_only"] == "SUPPORTED" for name in ("read_graph", "search_nodes", "open_nodes"))
    found = effective(report)
    assert all(found[name] for name in found if name.startswith(("create", "add", "delete"))), found
    assert said["create_entities"]["idempotent"] == "OVER-DECLARED"


def test_git_is_contradicted_in_nothing_and_its_status_is_soft(real_server: Callable[[str], RealServer], assay: Assay) -> None:
    few = ("git_status", "git_log", "git_commit", "git_checkout")
    only = [word for name in few for word in ("--tool", name)]
    report = assay("--jobs", "4", *only, "--", *real_server("git").command)
    said = verdicts(report)
    assert said["git_status"]["read_only"] == "SOFT" and said["git_log"]["read_only"] == "SUPPORTED"
    assert said["git_commit"]["destructive"] == said["git_checkout"]["destructive"] == "SUPPORTED"
    assert all(effective(report)[name] for name in few[2:])
