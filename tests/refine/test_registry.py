"""Several rules on one tool speak as one, the riskier side first."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from earnest.core.profile import Labels
from earnest.refine.address import AddressRule
from earnest.refine.enumeration import Case, EnumerationRule, parse
from earnest.refine.http import HttpRule
from earnest.refine.refinement import Refinement, combined
from earnest.refine.registry import RefineRule, refine, rule
from earnest.refine.shell import ShellRule
from earnest.refine.sql import SqlRule


def said_by(rules: Sequence[RefineRule], arguments: Mapping[str, Any]) -> Refinement | None:
    """What several rules say together, as the engine joins it."""
    return combined([found for one in rules if (found := refine(one, arguments)) is not None])


def test_each_kind_of_rule_is_run() -> None:
    arguments = {"action": "list", "method": "GET", "url": "http://localhost/", "query": "SELECT 1"}
    said = [
        refine(rule, arguments)
        for rule in (
            parse("args.action == 'list' -> read_only"),
            HttpRule("method"),
            AddressRule("url"),
            SqlRule("query", "sqlite"),
        )
    ]
    assert [one.labels.read_only if one else None for one in said] == [True, True, None, True]


def test_rules_that_disagree_take_the_riskier_side() -> None:
    reads = parse("args.action == 'list' -> read_only, !open_world", "labels:1")
    writes = parse("args.force == true -> destructive", "labels:2")
    arguments = {"action": "list", "force": True}
    for rules in ((reads, writes), (writes, reads)):
        found = said_by(rules, arguments)
        assert found is not None
        assert (found.labels.read_only, found.labels.destructive, found.labels.open_world) == (False, True, False)
        assert set(found.labels.source.split(", ")) == {"labels:1", "labels:2"}
        assert "action is 'list'" in found.why and "force is True" in found.why
    assert said_by((reads, writes), {}) is None
    alone = said_by((reads,), arguments)
    assert alone is not None and alone.labels == Labels(read_only=True, open_world=False, source="labels:1")


def test_the_sql_parser_is_not_loaded_before_the_first_query() -> None:
    code = "import sys, earnest.refine.registry; sys.exit('sqlglot' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=60).returncode == 0


def test_rules_are_made_from_the_parts_of_a_configuration() -> None:
    listing = Labels(read_only=True, source="labels:7")
    assert rule("enum", "action", values=["list"], labels=listing) == EnumerationRule("action", (Case("list", listing),))
    assert rule("http", "method", source="labels:7") == HttpRule("method", source="labels:7")
    assert rule("address", "url", source="labels:7") == AddressRule("url", "labels:7")
    assert rule("sql", "q", dialect="mysql", functions=["f"], source="s") == SqlRule("q", "mysql", ("f",), "s")
    assert rule("shell", "command", source="s") == ShellRule("command", "s")
    with pytest.raises(ValueError, match="perl"):
        rule("perl", "command")
