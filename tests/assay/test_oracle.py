"""The oracle's own rules, without a server: what scout and soak nominate, and what says nothing."""

from earnest.assay.model import Answer, Call, Effect, Outcome, Report, ServerFinding, Step, ToolReport, ToolUnder
from earnest.assay.oracle.clean import Sight
from earnest.assay.oracle.examine import CONTRADICTS, Tally
from earnest.assay.oracle.soak import nominated
from earnest.assay.run import nothing_came
from earnest.assay.verdicts.judge import judged
from earnest.core.hints import RawHints
from earnest.sandbox.box import Sight as TierSight


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


def judged_after(claims: RawHints, *effects: Effect) -> ToolReport:
    """The report of a tool whose two calls, the second a repeat, were answered and had each of these effects."""
    step = Step("keep", {})
    answer = Answer("done", None, "kept", 0.0)
    sights = [Sight(effect, "call", how, (step,), True) for how in ("first", "repeat") for effect in effects]
    tool = ToolUnder("keep", "", {}, claims, b"")
    tally = Tally(tool, [Call(step, answer, effects)] * 2, sights, cleaned=1, repeats=1)
    return judged(tally, TierSight("granted", True, True, True, True, True))


def test_of_a_change_that_was_stopped_nobody_says_what_it_would_have_done() -> None:
    stopped = Effect("refused", "state", "/a", "", "tried to write /a, which the sandbox stopped", True)
    for claims in (RawHints(False, False, True, None), RawHints(None, None, None, None)):
        report = judged_after(claims, stopped)
        assert {report.hints[hint].verdict for hint in ("destructive", "idempotent")} == {"INCONCLUSIVE"}
        assert report.suggested == {"readOnlyHint": False, "openWorldHint": False}
    assert not CONTRADICTS["idempotent"](Sight(stopped, "call", "repeat", (), True))
    lost = Effect("deleted", "state", "/b", "", "/b deleted", True, True)
    assert judged_after(RawHints(None, None, None, None), stopped, lost).suggested["destructiveHint"] is True
