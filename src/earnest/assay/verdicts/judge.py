"""From what was seen to a word for each hint.

The safe side of a hint (reads only, destroys nothing, may be repeated, stays at home) is *contradicted* by evidence that came
again, *soft* by what is no state, *supported* by calls that could have shown otherwise, and *inconclusive* where this machine
cannot see. The risky side cannot be contradicted: it is supported by what was seen, or *over-declared*. A hint that is absent
counts as its default, which is the risky side. A tool that no call reached is *not exercised*, whatever it claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from earnest.assay.model import Call, Evidence, HintVerdict, ToolReport
from earnest.assay.oracle.examine import CONTRADICTS, Tally, soft_effects
from earnest.core.hints import HINTS, RISKY
from earnest.sandbox.box import Sight as TierSight

_MOST_SOFT = 8
_SAFE_SEEN = {
    "read_only": "none changed anything",
    "destructive": "nothing that was there is gone",
    "idempotent": "repeating them changed nothing more",
    "open_world": "none reached beyond this machine",
}


def judged(tally: Tally, sight: TierSight, *, strict: bool = False) -> ToolReport:
    """The report of one tool."""
    hints = {hint: _judged(hint, tally, sight, strict) for hint in HINTS}
    tool = tally.tool
    if tool.claims.read_only is True:
        for hint in ("destructive", "idempotent"):
            if hints[hint].verdict not in ("CONTRADICTED", "INCONCLUSIVE"):
                hints[hint] = _moot(hint, tool.claims.get(hint), hints["read_only"])
    example = next((call.step.arguments for call in tally.calls if call.answer.outcome == "done"), {})
    return ToolReport(
        tool.name,
        len(tally.calls),
        tally.answered,
        tally.effective,
        hints,
        suggested(tally, sight),
        tool.definition,
        example,
    )


def _judged(hint: str, tally: Tally, sight: TierSight, strict: bool) -> HintVerdict:
    claimed = tally.tool.claims.get(hint)
    safe = claimed is not None and claimed is not RISKY[hint]
    return _of_safe(hint, tally, sight, strict, claimed) if safe else _of_risky(hint, tally, sight, claimed)


def _of_safe(hint: str, tally: Tally, sight: TierSight, strict: bool, claimed: bool | None) -> HintVerdict:
    evidence = tally.evidence.get(hint)
    if evidence:
        distinct = _distinct(evidence)
        return HintVerdict(claimed, "CONTRADICTED", distinct[0].what, tuple(distinct))
    if not tally.calls or not (tally.answered or tally.effective):
        return HintVerdict(claimed, "NOT-EXERCISED", _unreached(tally))
    once = tally.once.get(hint)
    if once:
        return HintVerdict(claimed, "INCONCLUSIVE", f"seen in one clean session and not again: {once[0]}")
    blind = _blind(hint, sight)
    if blind:
        return HintVerdict(claimed, "INCONCLUSIVE", blind)
    if hint == "open_world" and (unseen := _unseen(tally)):
        return HintVerdict(claimed, "INCONCLUSIVE", f"it {unseen}: where that was to go is not seen")
    soft = _soft(hint, tally)
    if soft:
        return HintVerdict(claimed, "CONTRADICTED" if strict else "SOFT", soft[0].what, tuple(soft))
    if tally.cut:
        return HintVerdict(claimed, "INCONCLUSIVE", "time was over before all of its clean sessions had been run")
    counted = f"{tally.answered} of {len(tally.calls)} calls answered"
    if hint in ("destructive", "idempotent"):
        if not tally.effective:
            sent = any(effect.nature == "sent" for call in tally.calls for effect in call.effects)
            if sent:
                return HintVerdict(claimed, "INCONCLUSIVE", "what it changes lies behind the network, where it cannot be seen")
            return HintVerdict(claimed, "NOT-EXERCISED", f"{counted}, and none had an effect to judge by")
        if stopped := _stopped(tally):
            return HintVerdict(claimed, "INCONCLUSIVE", f"it {stopped}: what that would have done is not seen")
        if hint == "destructive" and any(_unreadable(call) for call in tally.calls):
            return HintVerdict(claimed, "INCONCLUSIVE", "it rewrites content that cannot be read as records")
        if hint == "idempotent" and not tally.repeats:
            return HintVerdict(claimed, "NOT-EXERCISED", "no call of it could be repeated in a clean session")
    return HintVerdict(claimed, "SUPPORTED", f"{counted}, {tally.effective} with effect; {_SAFE_SEEN[hint]}")


def _of_risky(hint: str, tally: Tally, sight: TierSight, claimed: bool | None) -> HintVerdict:
    said = "" if claimed is not None else "; it claims nothing, which means the same"
    if not tally.calls or not (tally.answered or tally.effective):
        return HintVerdict(claimed, "NOT-EXERCISED", _unreached(tally))
    seen = _seen(hint, tally)
    if seen:
        return HintVerdict(claimed, "SUPPORTED", f"{seen}{said}")
    blind = _blind(hint, sight)
    if blind:
        return HintVerdict(claimed, "INCONCLUSIVE", blind)
    if hint in ("destructive", "idempotent") and not tally.effective:
        return HintVerdict(claimed, "NOT-EXERCISED", "no call of it had an effect to judge by")
    if hint in ("destructive", "idempotent") and (stopped := _stopped(tally)):
        return HintVerdict(claimed, "INCONCLUSIVE", f"it {stopped}: what that would have done is not seen")
    counted = f"{tally.answered} of {len(tally.calls)} calls answered, {tally.effective} with effect"
    return HintVerdict(claimed, "OVER-DECLARED", f"{counted}; {_SAFE_SEEN[hint]}{said}")


def _moot(hint: str, claimed: bool | None, read_only: HintVerdict) -> HintVerdict:
    if claimed is None or claimed is RISKY[hint]:
        return HintVerdict(claimed, "NOT-EXERCISED", "it means nothing for a tool that claims to read only")
    if read_only.verdict in ("SUPPORTED", "SOFT"):
        return HintVerdict(claimed, "SUPPORTED", f"follows from read-only: {read_only.reason}")
    return HintVerdict(claimed, read_only.verdict if read_only.verdict != "CONTRADICTED" else "NOT-EXERCISED", read_only.reason)


def _seen(hint: str, tally: Tally) -> str:
    """The first thing that shows the risky side; from clean sessions where there were any."""
    bears = CONTRADICTS[hint]
    for sight in tally.sights:
        if bears(sight):
            return sight.effect.what
    for call in tally.calls:
        for effect in call.effects:
            hard = {"read_only": effect.hard or effect.nature == "sent", "destructive": effect.hard and effect.lossy is True}
            if hard.get(hint, effect.external if hint == "open_world" else False):
                return effect.what
    return ""


def _soft(hint: str, tally: Tally) -> list[Evidence]:
    if hint == "open_world":
        return []
    if hint != "read_only":
        return []
    found = soft_effects(tally)
    sent = [effect for call in tally.calls for effect in call.effects if effect.nature == "sent"]
    order = {"started": 0, "sent": 1, "restored": 2}
    told = sorted((*found, *sent), key=lambda effect: order.get(effect.nature, 9))
    distinct = {(e.nature, e.place if e.place in ("cache", "temp") else e.subject): e for e in reversed(told)}
    told = [effect for effect in told if effect in distinct.values()][:_MOST_SOFT]
    return [Evidence(e.what, e.subject, e.nature, e.place, "call", (), 1, 1) for e in told]


def _unseen(tally: Tally) -> str:
    """What of the network a tool reached for that this tier does not show, if it did."""
    for effect in (*(e for call in tally.calls for e in call.effects), *(sight.effect for sight in tally.sights)):
        if effect.nature == "refused" and effect.place == "network":
            return effect.what
    return ""


def _stopped(tally: Tally) -> str:
    """A change that the sandbox stopped a tool from, if it did: whether that would have lost something, or done more each time,
    nobody has seen."""
    for effect in (*(sight.effect for sight in tally.sights), *(e for call in tally.calls for e in call.effects)):
        if effect.hard and effect.nature == "refused":
            return effect.what
    return ""


def _unreadable(call: Call) -> bool:
    """Whether nobody can tell if a call lost something. An answer in which only numbers changed says nothing beside a file."""
    files = [effect for effect in call.hard if effect.nature != "answers"]
    return any(effect.lossy is None for effect in files or call.hard)


def _blind(hint: str, sight: TierSight) -> str:
    """Why this tier cannot tell, if it cannot."""
    if hint == "open_world" and not sight.network:
        return "this tier does not see the network"
    if hint != "open_world" and sight.files == "none":
        return "this tier does not see files"
    if hint == "read_only" and sight.files == "granted" and not sight.holds_writes:
        return "this tier sees only the folders that were granted, and a write elsewhere may pass it by"
    return ""


def _unreached(tally: Tally) -> str:
    if not tally.calls:
        return tally.failed or "no call of it was made"
    last = tally.calls[-1].answer
    words = " ".join(last.text.split())[:160]
    return f"none of {len(tally.calls)} calls got anywhere ({last.outcome}: {words or 'no words'})"


def _distinct(found: Sequence[Evidence]) -> list[Evidence]:
    kept: dict[tuple[str, str, str], Evidence] = {}
    for one in found:
        kept.setdefault((one.nature, one.where, one.when), one)
    return sorted(kept.values(), key=lambda one: (one.what.startswith("folder "), one.when != "call", len(one.steps)))


def suggested(tally: Tally, sight: TierSight) -> dict[str, bool]:
    """The annotations that what was seen speaks for; nothing of a hint that nothing was seen of."""
    if not (tally.answered or tally.effective):
        return {}
    found: dict[str, bool] = {}
    if _seen("read_only", tally):
        found["readOnlyHint"] = False
    elif not _blind("read_only", sight):
        found["readOnlyHint"] = True
    if sight.network:
        found["openWorldHint"] = bool(_seen("open_world", tally))
    if tally.effective and found.get("readOnlyHint") is False:
        stopped = bool(_stopped(tally))
        if (lost := bool(_seen("destructive", tally))) or not stopped:
            found["destructiveHint"] = lost
        if tally.cleaned and ((more := bool(_seen("idempotent", tally))) or not stopped):
            found["idempotentHint"] = not more
    return found
