"""The oracle's own rules, without a server: what scout and soak nominate."""

from earnest.assay.model import Answer, Call, Effect, Outcome, Step
from earnest.assay.oracle.soak import nominated


def made(tool: str, outcome: Outcome, *effects: str) -> Call:
    found = tuple(Effect("refused", "state", path, "", f"tried to write {path}", True) for path in effects)
    return Call(Step(tool, {}), Answer(outcome, None, "", 0.0), found)


def test_a_call_that_ended_the_server_is_nominated_for_what_it_did_and_by_itself() -> None:
    (first,) = nominated([made("count", "lost", "/a")])
    assert (first.tool, [step.tool for step in first.path]) == ("count", ["count"])
    calls = [made("add", "done", "/a"), made("count", "lost"), made("count", "lost", "/a"), made("list", "error", "/b")]
    assert [(one.tool, [step.tool for step in one.path]) for one in nominated(calls)] == [
        ("add", ["add"]),
        ("count", ["add", "count"]),
        ("list", ["add", "list"]),
    ]
