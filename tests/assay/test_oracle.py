"""The oracle's own rules, without a server: what scout and soak nominate, and what of a report says nothing."""

from earnest.assay.model import Answer, Call, Effect, Outcome, Report, ServerFinding, Step, ToolReport
from earnest.assay.oracle.soak import nominated
from earnest.assay.run import nothing_came


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


def test_of_a_server_that_ends_at_every_call_nothing_is_known() -> None:
    fell = ServerFinding("ended", "ended while its tools were tried (before count)", "count")
    silent, answered, acted = (ToolReport("count", 3, *made, {}) for made in ((0, 0), (2, 0), (0, 1)))
    assert nothing_came(Report("s", "A", (silent,), (fell,)))
    assert not nothing_came(Report("s", "A", (silent,), ()))
    assert not nothing_came(Report("s", "A", (silent, answered), (fell,)))
    assert not nothing_came(Report("s", "A", (acted,), (fell,)))
