"""The decision on one call: the worst of what policy, flow rules and pin gate say.

Theory. Four voices speak, each with reasons:

- the policy (`policy.PolicyVerdict`), its floor told apart;
- the confidentiality rule: never all three of private, untrusted and exfiltrate in one conversation without a
  person's yes. It looks at the labels set *before* this call, so a harmless read is never what is stopped;
- the integrity rule, worked out by whoever knows where values came from and handed in as a `FlowVerdict`;
- the pin gate: a tool whose definition no person has seen asks.

The worst wins. Only these lower anything: an endorsement, the user's own words (`ENDORSED`) or a rule with
`accept` take back what the flow rules say, and the observe mode takes back everything but the floor. Nothing
lowers the floor.

`decide` says this directly. `Table` holds one tool's decisions ready, so that an allow costs a look-up.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.compile import Row
from earnest.core.flow import LABEL_NAMES, Cause, Causes
from earnest.core.hints import RawHints
from earnest.core.policy import Loader, Mode, PolicyVerdict, grounds_of
from earnest.core.profile import Basis, Trust
from earnest.core.verdict import Reason, Remedy, Verdict
from earnest.core.vocabulary import COMBINATIONS, ENDORSED, PRIVATE, UNTRUSTED, ToolFacts


class PinState(StrEnum):
    """How a tool's definition stands to the one a person saw. A tightened one is in force at once."""

    HOLDS = "holds"
    TIGHTENED = "tightened"
    LOOSENED = "loosened"
    REFUSED = "refused"
    UNSEEN = "unseen"


class Endorsement(msgspec.Struct, frozen=True):
    """A person's standing yes that covers this call, found by whoever keeps them. `receipt` is where it is
    recorded."""

    receipt: str
    text: str = ""


class FlowVerdict(msgspec.Struct, frozen=True):
    """What a flow rule outside this file (integrity) says of the call."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    remedies: tuple[Remedy, ...] = ()


class Subject(msgspec.Struct, frozen=True):
    """What is called: facts, what the server claims of it, and how its pin stands."""

    facts: ToolFacts
    claims: RawHints = RawHints()
    pin: PinState = PinState.HOLDS


class Decision(msgspec.Struct, frozen=True):
    """The answer. `reasons` are worst first. `observed` is the verdict that would have been without the
    observe mode; equal to `verdict` when policy is enforced."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    remedies: tuple[Remedy, ...]
    observed: Verdict


Labelled = Mapping[int, Causes]
"""Per flow bit what set it, as `FlowState.causes` tells."""

CONFIDENTIALITY: Final = PRIVATE | UNTRUSTED
_SHOWN: Final = 3

_PIN_WORDS: Final = {
    PinState.LOOSENED: "its definition changed since a person saw it, and not only for the stricter",
    PinState.REFUSED: "its definition changed into one that cannot be compared with the one a person saw",
    PinState.UNSEEN: "no person has seen its definition yet",
}


def decide(
    said: PolicyVerdict,
    bits: int,
    subject: Subject,
    *,
    mode: Mode = Mode.ENFORCE,
    endorsement: Endorsement | None = None,
    integrity: FlowVerdict | None = None,
    causes: Labelled | None = None,
    conversation: str = "",
) -> Decision:
    """The decision on one call.

    `bits` are the labels set before the call (of its conversation and of calls in flight) and `ENDORSED`;
    `integrity` is None where that rule has nothing to say. `causes` and `conversation` only make reasons and
    remedies better.
    """
    reasons = list(said.reasons)
    remedies: list[Remedy] = []
    worst = said.verdict
    if said.verdict is not Verdict.ALLOW:
        remedies += _policy_remedies(said, subject)

    flow = _confidentiality(bits, subject, causes, conversation)
    if integrity is not None and integrity.verdict is not Verdict.ALLOW:
        flow.insert(0, integrity)
    if flow:
        waived = _waived(said, bits, endorsement, confidential=True)
        kept = _waived(said, bits, endorsement, confidential=False)
        for voice in flow:
            reason = kept if voice is integrity else waived
            if reason is not None:
                if reason not in reasons:
                    reasons.append(reason)
                continue
            worst = max(worst, voice.verdict)
            reasons += voice.reasons
            # To name the value is the least that helps, and it settles the other rules' asks too.
            remedies = [*voice.remedies, *remedies] if voice is integrity else [*remedies, *voice.remedies]

    if subject.pin in _PIN_WORDS:
        worst = max(worst, Verdict.ASK)
        reasons.append(Reason("pin/gate", f"{_called(subject)}: {_PIN_WORDS[subject.pin]}", Verdict.ASK))
        remedies += _pin_remedies(subject)

    if worst is not Verdict.ALLOW and causes and not any(r.rule == "flow/confidentiality" for r in reasons):
        labels = [name.removeprefix("flow.") for name in said.mattered if name in ("flow.private", "flow.untrusted")]
        if labels:
            reasons.append(Reason("flow/labels", _labels(causes), Verdict.ALLOW))
    reasons.sort(key=lambda reason: -reason.verdict)
    verdict = said.floor if mode is Mode.OBSERVE else worst
    return Decision(verdict, tuple(reasons), tuple(dict.fromkeys(remedies)), worst)


class Table:
    """One tool's decisions, for one client. What no call can change stands ready; the rest goes through
    `decide`."""

    __slots__ = ("_ready", "mode", "row", "subject")

    def __init__(self, row: Row, subject: Subject, mode: Mode = Mode.ENFORCE) -> None:
        self.row = row
        self.subject = subject
        self.mode = mode
        self._ready = tuple(self._settle(bits) for bits in range(COMBINATIONS))

    def _settle(self, bits: int) -> Decision | None:
        """The decision where arguments, causes and endorsements cannot change it: a plain allow."""
        said = self.row.known(bits)
        if said is None:
            return None
        decision = decide(said, bits, self.subject, mode=self.mode)
        return decision if decision.observed is Verdict.ALLOW else None

    def ready(self, bits: int) -> Decision | None:
        """The decision under these bits where nothing about a call can change it, None for most that are no allow."""
        return self._ready[bits]

    def at(
        self,
        bits: int,
        load: Loader,
        endorsement: Endorsement | None = None,
        integrity: FlowVerdict | None = None,
        causes: Labelled | None = None,
        conversation: str = "",
    ) -> Decision:
        """As `decide`. Of an allow that is ready the same object comes each time.

        To spare gathering `causes` on every call, first call without and again with them if the answer is no
        allow.
        """
        ready = self._ready[bits]
        if ready is not None and integrity is None:
            return ready
        return decide(
            self.row.at(bits, load),
            bits,
            self.subject,
            mode=self.mode,
            endorsement=endorsement,
            integrity=integrity,
            causes=causes,
            conversation=conversation,
        )


def _called(subject: Subject) -> str:
    return f"{subject.facts.server}/{subject.facts.name}"


def _waived(said: PolicyVerdict, bits: int, endorsement: Endorsement | None, *, confidential: bool) -> Reason | None:
    """Why a flow rule's verdict does not count, or None where it does."""
    if said.accept:
        return Reason("flow/accepted", "a rule accepts what the flow rules say of this call", Verdict.ALLOW)
    if endorsement is not None:
        text = f"a person endorsed this (receipt {endorsement.receipt})"
        return Reason("flow/endorsed", f"{text}: {endorsement.text}" if endorsement.text else text, Verdict.ALLOW)
    # The user's own words are a yes to the confidentiality rule; to the integrity rule they speak through
    # its own verdict.
    if confidential and bits & ENDORSED:
        return Reason("flow/endorsed", "all that steers this call comes from the user's own words", Verdict.ALLOW)
    return None


def _confidentiality(bits: int, subject: Subject, causes: Labelled | None, conversation: str) -> list[FlowVerdict]:
    profile = subject.facts.profile
    if bits & CONFIDENTIALITY != CONFIDENTIALITY or not profile.can_exfiltrate.value:
        return []
    text = (
        "this conversation has read private data and seen untrusted content, and this call can reach outside "
        f"({grounds_of(profile, ('can_exfiltrate',))})"
    )
    if causes:
        text += f"; {_labels(causes)}"
    remedies = [_label_remedy(subject, "can_exfiltrate", False, "cannot reach anyone outside"), *_source_remedies(causes or {})]
    target = shlex.quote(_called(subject))
    remedies.append(
        Remedy(
            "If it may go there all the same, say so for this conversation",
            f"earnest conversation endorse {shlex.quote(conversation) if conversation else 'CONVERSATION'} {target}",
        )
    )
    reason = Reason("flow/confidentiality", text, Verdict.ASK)
    return [FlowVerdict(Verdict.ASK, (reason,), tuple(r for r in remedies if r is not None))]


def _labels(causes: Labelled) -> str:
    parts: list[str] = []
    for bit, name in LABEL_NAMES.items():
        known = causes.get(bit)
        if known is None or not known.first:
            continue
        shown = [f"{cause.server}/{cause.subject} ({_told(cause)})" for cause in known.first[:_SHOWN]]
        more = len(known.first) - len(shown) + known.more
        parts.append(f"{name} by {', '.join(shown)}" + (f" and {more} more" if more else ""))
    return "; ".join(parts)


def _told(cause: Cause) -> str:
    """The receipt of what set a label, and who says that it does: a pack and its line, an operator's label."""
    return f"receipt {cause.receipt}" + (f", {cause.source}" if cause.source else "")


def _source_remedies(causes: Labelled) -> list[Remedy]:
    """How an operator would say that a label was set falsely: by naming what each source does not return."""
    found: list[Remedy] = []
    for bit, name in ((PRIVATE, "reads_private"), (UNTRUSTED, "sees_untrusted")):
        first = causes[bit].first if bit in causes else ()
        tools = [cause for cause in first[:_SHOWN] if cause.basis != "operator" and "://" not in cause.subject]
        for target in dict.fromkeys(f"{cause.server}/{cause.subject}" for cause in tools):
            _, what = _LABEL_WORDS[name]
            text = f"If {target} {what}, say so; it counts from the next conversation on"
            found.append(Remedy(text, f"earnest labels set {shlex.quote(target)} {name}=false"))
    return found


def _pin_remedies(subject: Subject) -> list[Remedy]:
    server, tool = shlex.quote(subject.facts.server), shlex.quote(subject.facts.name)
    return [
        Remedy(
            "See what changed" if subject.pin is not PinState.UNSEEN else "See what the tool says of itself",
            f"earnest pins diff {server} {tool}",
        ),
        Remedy("Then take it as it is now", f"earnest pins accept {server} {tool}"),
    ]


_LABEL_WORDS: Final = {
    "read_only": (True, "only reads"),
    "destructive": (False, "destroys and overwrites nothing"),
    "idempotent": (True, "changes nothing more when called twice"),
    "open_world": (False, "stays within a closed set of systems"),
    "reads_private": (False, "returns nothing private"),
    "sees_untrusted": (False, "returns nothing that strangers wrote"),
    "can_exfiltrate": (False, "cannot reach anyone outside"),
}


def _label_remedy(subject: Subject, name: str, value: bool, what: str) -> Remedy | None:
    """How an operator would say it, for a value that stands at its worst by default; None where that would
    not help."""
    if subject.facts.method != "tools/call" or subject.facts.profile.get(name).basis is not Basis.DEFAULT:
        return None
    setting = f"{name}={'true' if value else 'false'}"
    return Remedy(f"If the tool {what}, say so", f"earnest labels set {shlex.quote(_called(subject))} {setting}")


def _policy_remedies(said: PolicyVerdict, subject: Subject) -> list[Remedy]:
    if said.floor is said.verdict:
        return [Remedy("The floor decides this; only whoever sets the floor can change it")]
    if not said.mattered and said.verdict is Verdict.ASK:
        return [Remedy("Write a rule for this call, or choose a preset")]
    found: list[Remedy] = []
    facts = subject.facts
    for full in said.mattered:
        name = full.removeprefix("tool.")
        if name not in _LABEL_WORDS:
            continue
        value, what = _LABEL_WORDS[name]
        if facts.profile.get(name).value is value:
            continue
        claimed = RawHints.get(subject.claims, name) if name in RawHints.__struct_fields__ else None
        if claimed is value and facts.trust is not Trust.TRUSTED:
            found.append(
                Remedy(
                    f"The server claims that the tool {what}. If you believe what it says of its tools",
                    f"earnest trust {shlex.quote(facts.server)} --trusted",
                )
            )
        remedy = _label_remedy(subject, name, value, what)
        if remedy is not None:
            found.append(remedy)
    if said.verdict is Verdict.DENY and not found:
        found.append(Remedy("A rule decides this", f"earnest policy explain {shlex.quote(_called(subject))}"))
    return found
