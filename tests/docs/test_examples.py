"""Every file below examples/ does what it says: policies hold their own tests, packs load, servers are those of the package."""

import ast
from pathlib import Path

import pytest

from earnest.config.packs import load_packs
from earnest.config.policy import testing
from earnest.config.policy.check import check
from earnest.config.policy.load import load
from earnest.core.profile import NAMES

EXAMPLES = Path(__file__).parents[2] / "examples"
FLOOR = EXAMPLES / "policies" / "organisation-floor.toml"
POLICIES = sorted(path for path in (EXAMPLES / "policies").glob("*.toml") if path != FLOOR)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_policy_holds_its_own_tests_and_has_nothing_dead_in_it(path: Path) -> None:
    document = load(path, floor=FLOOR if path.stem == "under-the-floor" else None)
    results = testing.run(document)
    assert results and all(result.passed for result in results), [result.message for result in results]
    assert check(document.policy).findings == ()
    assert path.read_text().startswith("# "), "a file begins with what it is for"


def test_the_floor_has_rules_and_each_is_seen_to_count() -> None:
    floor = load(None, floor=FLOOR).policy.floor
    assert len(floor) == 3
    below = testing.run(load(EXAMPLES / "policies" / "under-the-floor.toml", floor=FLOOR))
    used = {rule for result in below for rule in result.rules}
    assert {f"floor/{rule.name}" for rule in floor if rule.name and "shell" not in rule.name} <= used


def test_packs_load_and_say_something_of_each_tool() -> None:
    packs = load_packs(EXAMPLES / "packs")
    assert packs
    for pack in packs:
        for name, tool in pack.tools.items():
            assert tool.refine or any(getattr(tool.labels, label) is not None for label in NAMES), name


def test_every_folder_of_examples_is_held_by_a_test() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {
        "census", "earnest.toml", "guard", "servers.toml", "policies", "packs", "servers",
    }  # fmt: skip
    for path in (EXAMPLES / "servers").glob("*.py"):
        assert "earnest.demo" in ast.unparse(ast.parse(path.read_text())), path
