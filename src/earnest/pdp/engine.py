"""The engine: one call in, one judgement out; what was seen, kept.

The order of one call is the caller's to keep, and each step here may refuse it (law 6):

    judge      profile of this call, labels before it, endorsement, policy, flow, pins, floor → verdict
    admit      the labels that the call itself will set are kept; from here on it counts as in flight
    (the decision record is written, the call goes out, the answer comes)
    observed   what the answer restricts further is kept before the answer is delivered

Nothing here does I/O but through the stores handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from earnest.core import arguments as reading
from earnest.core import canonical
from earnest.core.compile import Compiled
from earnest.core.decide import Decision, Endorsement, Subject, Table
from earnest.core.dispatch import DispatchSpec, dispatch
from earnest.core.errors import EarnestError
from earnest.core.flow import PRIVATE, UNTRUSTED, Cause, Key
from earnest.core.integrity import UNDOABLE
from earnest.core.policy import Mode
from earnest.core.profile import NOTHING, WORST, Basis, Profile, Trust, Value, refine
from earnest.core.verdict import Reason, Verdict
from earnest.core.vocabulary import ENDORSED, Asks, ToolFacts
from earnest.net.tracks import compiled
from earnest.pdp.catalog import Tool
from earnest.pdp.conversations import Conversations
from earnest.pdp.facts import Judgement, Question
from earnest.pdp.floor import Floor
from earnest.pdp.flows import Flows
from earnest.pdp.handoff import Handoff
from earnest.pdp.schema import conforms
from earnest.protocol.outcomes import Outcome
from earnest.refine.refinement import Refinement, combined

_TABLES_A_TOOL: Final = 256
_ENDORSED: Final = "a person's word for this source in this conversation (%s)"
_UNDOABLE: Final = (
    "strangers' text may steer it; it is run over a copy first, and goes on unasked if all that it changes can be undone"
)
_BAD_ARGUMENTS: Final = "wire/arguments"
Grounds = list[tuple[str, object, object, object]]
_PLAIN_MEMBERS: Final = frozenset(("content", "structuredContent", "isError", "resultType"))


class Endorsements(Protocol):
    """A person's standing answers."""

    def any(self, key: Key) -> bool:
        """Whether there is one at this key or above it at all."""

    def grounds(self, key: Key) -> Grounds | None:
        """What it stands on that there is none (`net.tracks`); None where there is one."""

    def covering(self, key: Key, server_identity: str, tool: str, pin: str, values_sha256: str) -> Endorsement | None:
        """The one that covers a call with these steering values, if any."""

    def source(self, key: Key, server_identity: str, tool: str, pin: str, values_sha256: str) -> Endorsement | None:
        """The one that covers what a call with these steering values reads, if any."""


class Engine:
    """What gateway, hook and guard put their calls to."""

    def __init__(
        self,
        policy: Compiled,
        conversations: Conversations,
        floor: Floor,
        endorsements: Endorsements,
        *,
        clock: Callable[[], float],
        flows: Flows | None = None,
    ) -> None:
        self.policy = policy
        self.flows = flows if flows is not None else Flows(conversations)
        self.handoff = Handoff(clock)
        self.overlays: dict[str, Compiled] = {}
        self.conversations = conversations
        self.floor = floor
        self._endorsements = endorsements
        self._clock = clock

    def judge(self, question: Question) -> Judgement:
        """Decide one call. Never raises for what the call itself holds: a call that cannot be judged is denied."""
        policy = self.policy if not question.overlay else self.overlays.get(question.overlay)
        if policy is None:
            # What tightens this client's calls is not known any more: nothing may run as if it did not.
            reason = Reason("policy/overlay", "the configuration of this client's folder is not loaded", Verdict.DENY)
            decision = Decision(Verdict.DENY, (reason,), (), Verdict.DENY)
            labels = self.conversations.labels(question.key)
            return self._judgement(question, self.policy, labels, "", WORST, decision)
        self.conversations.touch(question.key)
        labels = self.conversations.labels(question.key)
        try:
            digest = arguments_digest(question.arguments or b"{}")
        except EarnestError as error:
            reason = Reason(_BAD_ARGUMENTS, error.message, Verdict.DENY)
            return self._judgement(question, policy, labels, "", WORST, Decision(Verdict.DENY, (reason,), (), Verdict.DENY))
        tool, profile, judged_as, why = self._profiled(question)
        vouched = self._source(question, profile)
        if vouched is not None:
            profile = msgspec.structs.replace(profile, sees_untrusted=Value(False, Basis.OPERATOR, _ENDORSED % vouched.receipt))
        hidden = question.hidden
        if not hidden and judged_as and question.hides is not None:
            # A dispatcher in a view reaches no more than the view shows.
            hidden = question.hides(tool)
        if hidden:
            reason = Reason("view/hidden", hidden, Verdict.DENY)
            decision = Decision(Verdict.DENY, (reason,), (), Verdict.DENY)
            return self._judgement(question, policy, labels, digest, profile, decision)
        table = self._table(question, policy, tool, profile)
        endorsement = None
        said = self.flows.judge(question, tool, profile, judged_as, labels) if self.flows.speaks else None
        voice = said.verdict if said is not None else None
        bits = labels | (ENDORSED if said is not None and said.endorsed else 0)
        ready = table.ready(bits) if voice is None else None
        load = partial(reading.load, question.arguments)
        decision = ready if ready is not None else table.at(bits, load, integrity=voice)
        if decision.observed is not Verdict.ALLOW:
            endorsement = self._endorsed(question)
            decision = table.at(
                bits | (ENDORSED if endorsement is not None else 0),
                load,
                endorsement,
                voice,
                causes=self.conversations.causes(question.key),
                conversation="/".join(question.key),
            )
        stop = self.floor.check(
            question.arguments,
            cwd=question.cwd,
            changes=not profile.read_only.value,
            takes_text=tool.takes_text if not judged_as else frozenset(),
        )
        if stop is not None:
            decision = Decision(Verdict.DENY, (stop, *decision.reasons), (), Verdict.DENY)
        judgement = self._judgement(question, policy, labels, digest, profile, decision)
        judgement.judged_as = judged_as
        judgement.lane = tool.words.lane
        judgement.source_endorsed = vouched.receipt if vouched is not None else ""
        judgement.endorsement = endorsement.receipt if endorsement is not None else ""
        judgement.host_may_ask = question.ask_host and _only_policy_asks(decision)
        enforced = policy.policy.mode is Mode.ENFORCE
        if enforced and said is not None and said.exempt == UNDOABLE and decision.verdict is Verdict.ALLOW:
            judgement.undoable = True
            judgement.reasons = (*judgement.reasons, Reason("flow/undoable", _UNDOABLE, Verdict.ALLOW))
        if why:
            judgement.reasons = (*judgement.reasons, Reason("refine", why, Verdict.ALLOW))
        return judgement

    def grounds(self, judgement: Judgement) -> tuple[Grounds, Grounds, int] | None:
        """What an allow stands on, for calls that differ in their arguments alone, in `net.tracks`' words: what has to hold
        when such a call is judged; of that, what has to hold again when its answer comes; and the labels that it sets. None
        where the arguments, or whatever else may differ, had a say. The floor has to be asked about each call by itself."""
        question, flows = judgement.question, self.flows
        tool, server, profile = question.tool, question.server, judgement.profile
        bits = _sources(profile)
        labels = self.conversations.grounds(question.key, bits)
        if self.conversations.labels(question.key) != judgement.labels_before:
            return None
        table = tool.tables.get((self.policy, question.client, question.client_asks, question.method, None))
        if labels is None or table is None or question.overlay or question.hidden or flows.speaks or flows.listens:
            return None
        if tool.words.refiners or tool.words.dispatch is not None or profile is not tool.profile or judgement.endorsement:
            return None
        unendorsed = self._endorsements.grounds(question.key)
        decision = table.ready(judgement.labels_before)
        if unendorsed is None or decision is None or judgement.verdict is not Verdict.ALLOW:
            return None
        if judgement.reasons is not decision.reasons:
            return None
        if question.own is not None:
            return None  # its server says something of each call
        if tool.words.sanitizer is not None:
            return None  # each result is cut down
        if tool.standing.safe_output and profile.sees_untrusted.basis is Basis.ENFORCED:
            return None  # each result has to be held against its schema
        # What the operator says of the tool by then (a sanitizer) counts for the answer as well.
        values: Grounds = [
            ("is", self, "flows", flows),
            ("is", flows, "listens", False),
            ("equals", server, "generation", server.generation),
        ]
        calls: Grounds = [
            *labels,
            *values,
            *unendorsed,
            ("is", self, "policy", self.policy),
            ("is", self, "floor", self.floor),
            ("is", flows, "speaks", False),
            ("is", server, "tools", server.tools),
            ("item", server.tools, tool.name, tool),
        ]
        return calls, [*self.conversations.own_grounds(question.key), *values], bits

    def recur(self, key: Key, bits: int, times: int) -> None:
        """So many more calls were allowed at a key on the same grounds."""
        if key in self.conversations:
            self.conversations.touch(key)
            self.conversations.count(key, bits, times)

    def admit(self, judgement: Judgement) -> None:
        """Keep the labels that this call's own sources set, before it goes out. Raises E14xx if they cannot be kept."""
        question, profile = judgement.question, judgement.profile
        bits = _sources(profile) | question.listed
        judgement.labels_after = judgement.labels_before | bits
        if bits:
            self._raise(judgement, question, bits)

    def observed(self, judgement: Judgement, outcome: Outcome | None, raw: bytes = b"") -> None:
        """Keep what an answer restricts further, before it is delivered. `None`: it could not be read, which is worst. `raw`:
        the result or error, whose values are taken in where the user's words are known."""
        bits = 0
        if outcome is None or outcome.malformed:
            bits = PRIVATE | UNTRUSTED
        else:
            if outcome.restrict.private:
                bits |= PRIVATE
            if outcome.restrict.untrusted:
                bits |= UNTRUSTED
            if _breaks_safe_output(judgement, outcome):
                bits |= UNTRUSTED
        if self.flows.listens and self.flows.observed(judgement, raw, untrusted=bool(bits & UNTRUSTED)):
            bits |= UNTRUSTED
        judgement.labels_after |= bits
        judgement.result_labels = bits | _sources(judgement.profile) | judgement.question.listed
        # What the call's own sources set was kept before it went out; where the conversation ended meanwhile, what arrives now
        # belongs to the one that goes on. Labels that only other keys carry are not this key's.
        missing = judgement.result_labels & ~self.conversations.own(judgement.question.key)
        if missing:
            self._raise(judgement, judgement.question, missing)

    def _raise(self, judgement: Judgement, question: Question, bits: int) -> None:
        if self.conversations.count(question.key, bits):
            return
        for bit, facet in ((PRIVATE, "reads_private"), (UNTRUSTED, "sees_untrusted")):
            if bits & bit:
                value = judgement.profile.get(facet)
                cause = Cause(judgement.id, question.server.name, question.subject, value.basis.value, value.source)
                self.conversations.raise_(question.key, bit, cause)

    def resolved(self, question: Question) -> tuple[Tool, Profile]:
        """The tool a call would be judged as, and the profile that it would be judged by."""
        tool, profile, _, _ = self._profiled(question)
        return tool, profile

    def _profiled(self, question: Question) -> tuple[Tool, Profile, str, str]:
        tool, profile, judged_as, why = self._target(question)
        own = question.own
        if own is None or own is NOTHING:
            return tool, profile, judged_as, why
        # The last word of the server's own rows: what anybody else said of the call stays.
        standing = question.tool.standing
        holds = not judged_as and standing.pin_holds and standing.trust is Trust.TRUSTED
        refined = refine(profile, own, Basis.CLAIMED, may_lower=holds)
        if refined != profile:
            why = "; ".join(part for part in (why, own.source) if part)
        return tool, refined, judged_as, why

    def _target(self, question: Question) -> tuple[Tool, Profile, str, str]:
        """The tool the call is judged as, its profile for these arguments, and why that differs."""
        tool = question.tool
        spec = tool.words.dispatch
        if not tool.words.refiners and spec is None:
            return tool, tool.profile, "", ""
        try:
            arguments = reading.load(question.arguments)
        except EarnestError:
            return tool, WORST, "worst", "the arguments cannot be read"
        if not isinstance(arguments, dict):
            return tool, WORST, "worst", "the arguments are no object"
        judged_as = ""
        if isinstance(spec, DispatchSpec) and not (tool.standing.pin_holds and tool.standing.operator_holds):
            # Judging by the target lowers, and that was said of another definition; the pin gate speaks of the dispatcher.
            return tool, WORST, "worst", f"what {tool.name!r} runs was said of another definition of it"
        if isinstance(spec, DispatchSpec):
            others = {
                name: entry.words.dispatch
                for name, entry in question.server.tools.items()
                if isinstance(entry.words.dispatch, DispatchSpec)
            }
            name, arguments, target = dispatch(spec, arguments, question.server.tools.get, others)
            if target is None:
                return tool, WORST, "worst", f"what {tool.name!r} would run ({name!r}) cannot be resolved"
            tool, judged_as = target, name
        profile = tool.profile
        why: list[str] = [f"judged as {judged_as}"] if judged_as else []
        holds = tool.standing.pin_holds
        vouched = holds and tool.standing.pack_holds and question.server.trust is not Trust.UNTRUSTED
        said = [found for refiner in tool.words.refiners if (found := refiner(arguments)) is not None]
        # The pack's word first, the operator's over it; of one speaker's several statements the riskier counts.
        for basis, may_lower in ((Basis.PACK, vouched), (Basis.OPERATOR, holds and tool.standing.operator_holds)):
            of_one = [Refinement(one.labels, one.why) for one in said if one.from_operator is (basis is Basis.OPERATOR)]
            whole = combined(of_one)
            if whole is None:
                continue
            before = profile
            profile = refine(profile, whole.labels, basis, may_lower=may_lower)
            if profile != before:
                why.append(whole.why)
        return tool, profile, judged_as, "; ".join(why)

    def _table(self, question: Question, policy: Compiled, tool: Tool, profile: Profile) -> Table:
        key = (policy, question.client, question.client_asks, question.method, profile if profile is not tool.profile else None)
        table = tool.tables.get(key)
        if table is None:
            if len(tool.tables) >= _TABLES_A_TOOL:
                tool.tables.clear()
            server = question.server
            facts = ToolFacts(
                server=server.name,
                name=tool.name,
                profile=profile,
                trust=server.trust,
                title=tool.title,
                method=question.method,
                client=question.client,
                client_asks=Asks.PERSON if question.client_asks else Asks.NOBODY,
            )
            table = Table(policy.row(facts), Subject(facts, tool.claims, tool.state), policy.policy.mode)
            tool.tables[key] = table
        return table

    def _endorsed(self, question: Question) -> Endorsement | None:
        return self._standing(question, self._endorsements.covering)

    def _source(self, question: Question, profile: Profile) -> Endorsement | None:
        if not profile.sees_untrusted.value or not question.tool.standing.pin_holds:
            return None
        return self._standing(question, self._endorsements.source)

    def _standing(
        self, question: Question, find: Callable[[Key, str, str, str, str], Endorsement | None]
    ) -> Endorsement | None:
        if not self._endorsements.any(question.key):
            return None
        try:
            values = steering_digest(question.arguments, question.tool.takes_text)
        except EarnestError:
            return None
        return find(question.key, question.server.identity, question.tool.name, question.tool.pin, values)

    def _judgement(
        self, question: Question, policy: Compiled, labels: int, digest: str, profile: Profile, decision: Decision
    ) -> Judgement:
        return Judgement(
            question=question,
            time=self._clock(),
            verdict=decision.verdict,
            reasons=decision.reasons,
            remedies=decision.remedies,
            profile=profile,
            arguments_sha256=digest,
            labels_before=labels,
            policy_sha256=policy.sha256,
            labels_after=labels,
        )


def arguments_digest(arguments: bytes) -> str:
    """As `canonical.digest`. Raises as it does."""
    form = compiled.canonical_form(arguments) if compiled is not None else None
    return canonical.digest(arguments) if form is None else sha256(form).hexdigest()


def _sources(profile: Profile) -> int:
    """The labels that a call of this profile sets by itself."""
    return (PRIVATE if profile.reads_private.value else 0) | (UNTRUSTED if profile.sees_untrusted.value else 0)


def steering_digest(arguments: bytes, takes_text: frozenset[str]) -> str:
    """What a standing answer is bound to: all arguments but those whose role is content, each with its value.

    An argument without a known role counts as destination, selector and amount. Raises E13xx.
    """
    members = canonical.members(arguments or b"{}")
    return canonical.digest(canonical.build({name: raw for name, raw in members.items() if name not in takes_text}))


def _only_policy_asks(decision: Decision) -> bool:
    """Whether what asks is the preset or the user's rules alone: only those asks may be left to a host."""
    if decision.verdict is not Verdict.ASK:
        return False
    asking = [reason.rule for reason in decision.reasons if reason.verdict is Verdict.ASK]
    return bool(asking) and all(rule.startswith(("preset/", "rule/", "policy/unmatched")) for rule in asking)


def _breaks_safe_output(judgement: Judgement, outcome: Outcome) -> bool:
    """A tool whose schema pins harmless types set no label of its own; whatever is outside that schema does, errors too."""
    tool = judgement.question.tool
    if tool.words.sanitizer is not None and not judgement.profile.sees_untrusted.value:
        return not judgement.sanitized
    if not tool.standing.safe_output or judgement.profile.sees_untrusted.value:
        return False
    return judgement.profile.sees_untrusted.basis is Basis.ENFORCED and not _is_plain(outcome, tool.output_schema)


def _is_plain(outcome: Outcome, schema: bytes) -> bool:
    """Whether a result holds structured content of its schema, the same again as text, and nothing else."""
    if outcome.is_error or not outcome.structured or not _PLAIN_MEMBERS.issuperset(outcome.members):
        return False
    try:
        if not conforms(reading.load(outcome.structured), reading.load(schema)):
            return False
        blocks = msgspec.json.decode(outcome.members.get("content", b"[]"), type=list[dict[str, object]])
        same = canonical.canonical(outcome.structured)
        for block in blocks:
            text = block.get("text")
            if set(block) != {"type", "text"} or not isinstance(text, str) or canonical.canonical(text.encode()) != same:
                return False
    except (msgspec.MsgspecError, EarnestError, UnicodeEncodeError):
        return False
    return True
