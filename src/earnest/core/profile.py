"""From claim to profile: what a tool is taken to do, and on what basis.

Theory. A profile has seven values: the four hints and three flow facets. Each value has a basis. A value is
settled by the first row that applies (the riskier side first), rows in this order:

    1 operator override        raises always; lowers while the pin and identity it was written for hold
    2 containment in force     never raises; lowers always
    3 observed violation       raises always; survives new pins until assayed again
    4 pack                     raises always; lowers for a verified or trusted server, identity and pin
                               pattern matching
    5 claim                    raises always; lowers for a trusted server while the pin holds
    6 observed support         never raises; lowers a hint the server claims, for a verified or trusted
                               server, same pin, same artefact
    7 default of the spec      raises always

Facets are true unless something says no. Who may say no, again the first that speaks, the riskier side first:

    reads_private    operator, pack, trusted server's label, trusted server's explicit read-only and
                     open-world claim when the upstream has no credentials (it reads what anyone may read)
    sees_untrusted   operator, pack, trusted server's label, a pinned output schema too narrow to carry text
    can_exfiltrate   operator, containment without network, pack, trusted server's explicit closed-world claim

A claim that a higher row contradicted supports no facet. A definition that was loosened since a person saw it
suspends every lowering that rests on a word (trust, support, pack, override); containment is no word, it
stays.

Where `read_only` is true, `destructive` and `idempotent` are moot: they show their harmless values on the
basis of `read_only`. What they were is kept beside (`latent`), because a call may turn out to write after
all. Everything here is finite, so the tests enumerate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from earnest.core.hints import HINTS, RISKY, WIRE_NAMES, RawHints

FACETS: Final = ("reads_private", "sees_untrusted", "can_exfiltrate")
NAMES: Final = HINTS + FACETS
"""The seven names of a profile, hints first. `tool.NAME` in the policy language."""

RISKY_VALUES: Final = {**RISKY, **dict.fromkeys(FACETS, True)}
"""For each of `NAMES` its riskier value."""


class Basis(StrEnum):
    """How a resolved value is known."""

    DEFAULT = "default"
    CLAIMED = "claimed"
    PACK = "pack"
    OBSERVED = "observed"
    ENFORCED = "enforced"
    OPERATOR = "operator"


class Trust(StrEnum):
    """How far the operator trusts a server. Never set by the server."""

    UNTRUSTED = "untrusted"
    VERIFIED = "verified"
    TRUSTED = "trusted"


class Value(msgspec.Struct, frozen=True):
    """One resolved value. `source` names who supplied it (pack and line, operator label), or is empty."""

    value: bool
    basis: Basis
    source: str = ""


class Profile(msgspec.Struct, frozen=True):
    """What a tool is taken to do.

    `latent`: `destructive` and `idempotent` as they would be were it not read-only; `None` if it is not.
    """

    read_only: Value
    destructive: Value
    idempotent: Value
    open_world: Value
    reads_private: Value
    sees_untrusted: Value
    can_exfiltrate: Value
    latent: tuple[Value, Value] | None = None

    def get(self, name: str) -> Value:
        """The value for one of `NAMES`."""
        value: Value = getattr(self, name)
        return value


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partial statement by an operator, a pack, a server's label or a refiner. `None` says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    reads_private: bool | None = None
    sees_untrusted: bool | None = None
    can_exfiltrate: bool | None = None
    source: str = ""

    def get(self, name: str) -> bool | None:
        """The statement for one of `NAMES`."""
        value: bool | None = getattr(self, name)
        return value


NOTHING: Final = Labels()


class Standing(msgspec.Struct, frozen=True):
    """All that is known of a tool when it is resolved. Conditions are already settled by the caller.

    `pin_holds`: the definition is the one a person was shown, or neutral to it. `operator_holds`: the
    override was written for this identity and pin. `contained`: what the sandbox makes impossible; without
    network it says `open_world` and `can_exfiltrate` false. `pack_holds`: the pack's identity and pin pattern
    match. `violated`: hints (and facets) an assay contradicted. `supported`: hints it supported;
    `support_holds`: same pin and same artefact. `server_labels`: facet statements the server itself put on
    the tool (trust-annotations and kin). `credentialed`: the upstream is configured with environment secrets,
    headers or OAuth.
    """

    trust: Trust = Trust.UNTRUSTED
    claims: RawHints = RawHints()
    pin_holds: bool = True
    operator: Labels = NOTHING
    operator_holds: bool = True
    contained: Labels = NOTHING
    pack: Labels = NOTHING
    pack_holds: bool = True
    violated: frozenset[str] = frozenset()
    supported: frozenset[str] = frozenset()
    support_holds: bool = True
    server_labels: Labels = NOTHING
    credentialed: bool = True
    safe_output: bool = False
    """The pinned output schema is made only of numbers, dates, enums and UUIDs."""
    sanitizer: str = ""
    """The operator's sanitizer that every result is cut down by, for a person; empty for none."""


_WIRE: Final = {name: wire for wire, name in WIRE_NAMES.items()}
_ROW: Final = {
    Basis.OPERATOR: 1,
    Basis.ENFORCED: 2,
    Basis.OBSERVED: 3,
    Basis.PACK: 4,
    Basis.CLAIMED: 5,
    Basis.DEFAULT: 7,
}
"""The row from which a basis raises. A lowering `observed` value came from row 6, see `_lowering_row`."""


def resolve(standing: Standing) -> Profile:
    """The profile of a tool by the two tables of the module's theory, each value with basis and source."""
    hints = {hint: _resolve_hint(standing, hint) for hint in HINTS}
    facets = {facet: _resolve_facet(standing, facet, hints) for facet in FACETS}
    return _mooted({**hints, **facets})


def entailed(labels: Labels) -> Labels:
    """The same statement with what it implies: who says that a tool destroys says that it is not read-only.

    Without this a lone `destructive = true` would be moot wherever a lower row says read-only: a raise lost.
    """
    if labels.destructive is True and labels.read_only is not False:
        return msgspec.structs.replace(labels, read_only=False)
    return labels


def raising(labels: Labels) -> Labels:
    """Only what raises of a statement."""
    return Labels(**{name: value for name in NAMES if (value := labels.get(name)) is RISKY_VALUES[name]}, source=labels.source)


def riskier(said: Sequence[Labels], source: str) -> Labels:
    """Several statements of one rank as one: where they disagree the riskier value counts."""
    values: dict[str, bool] = {}
    for name in NAMES:
        stated = [value for labels in said if (value := labels.get(name)) is not None]
        if stated:
            values[name] = stated[0] if len(set(stated)) == 1 else RISKY_VALUES[name]
    return Labels(**values, source=source)


def refine(profile: Profile, labels: Labels, basis: Basis, may_lower: bool) -> Profile:
    """The profile of one call, after a refiner looked at its arguments.

    A raise always counts, except over containment in force, which only the operator overrules: what is
    impossible stays impossible whatever the arguments say. A lowering counts if `may_lower` and no higher row
    than `basis` raised the value. Values that already are what the statement says keep their basis.
    """
    labels = entailed(labels)
    values = _bare(profile)
    for name, current in values.items():
        stated = labels.get(name)
        if stated is None or stated == current.value:
            continue
        if stated == RISKY_VALUES[name]:
            counts = current.basis is not Basis.ENFORCED or basis is Basis.OPERATOR
        else:
            counts = may_lower and _ROW[basis] <= _ROW[current.basis]
        if counts:
            values[name] = Value(stated, basis, labels.source)
    return _mooted(values)


def composite(parts: Sequence[Profile | None]) -> Profile:
    """The floor of a tool made of `parts`; an unknown part (`None`) counts as worst, and so do no parts.

    A value is safe only if it is in every part, and then on the weakest basis among them. Repeating a
    sequence is not known to be harmless even if repeating each step is, so `idempotent` is never derived from
    several parts.
    """
    known = [WORST if part is None else part for part in parts]
    if not known:
        return WORST
    if len(known) == 1:
        return known[0]
    reads = all(part.read_only.value for part in known)
    # A part that only reads destroys nothing in the whole; what it would do otherwise matters if all read.
    views = [_bare(part) if reads else {name: part.get(name) for name in NAMES} for part in known]
    values = {name: _joined(name, [view[name] for view in views]) for name in NAMES}
    values["idempotent"] = Value(False, Basis.DEFAULT)
    return _mooted(values)


def _resolve_hint(s: Standing, hint: str) -> Value:
    risky = RISKY[hint]
    safe = not risky
    claim = s.claims.get(hint)
    vouched = _vouched(s)
    operator, pack = s.operator.get(hint), s.pack.get(hint)
    if operator is risky or (operator is safe and _override_holds(s)):
        return Value(operator, Basis.OPERATOR, s.operator.source)
    if s.contained.get(hint) is safe:
        return Value(safe, Basis.ENFORCED, s.contained.source)
    if hint in s.violated:
        return Value(risky, Basis.OBSERVED, "assay")
    if pack is risky or (pack is safe and vouched and s.pack_holds):
        return Value(pack, Basis.PACK, s.pack.source)
    if claim is risky or (claim is safe and _believed(s)):
        return Value(claim, Basis.CLAIMED, _WIRE[hint])
    if claim is safe and hint in s.supported and vouched and s.support_holds:
        return Value(safe, Basis.OBSERVED, "assay")
    return Value(risky, Basis.DEFAULT)


def _resolve_facet(s: Standing, facet: str, hints: dict[str, Value]) -> Value:
    operator, pack, label = s.operator.get(facet), s.pack.get(facet), s.server_labels.get(facet)
    leaves = facet == "can_exfiltrate"
    if operator is True or (operator is False and _override_holds(s)):
        return Value(operator, Basis.OPERATOR, s.operator.source)
    if facet == "sees_untrusted" and s.sanitizer and s.pin_holds:
        return Value(False, Basis.ENFORCED, s.sanitizer)
    if leaves and s.contained.can_exfiltrate is False:
        return Value(False, Basis.ENFORCED, s.contained.source)
    if facet in s.violated or (leaves and "open_world" in s.violated):
        return Value(True, Basis.OBSERVED, "assay")
    if pack is True or (pack is False and _vouched(s) and s.pack_holds):
        return Value(pack, Basis.PACK, s.pack.source)
    if label is True or (label is False and not leaves and _believed(s)):
        return Value(label, Basis.CLAIMED, s.server_labels.source)
    return _facet_of_claims(s, facet, hints)


def _facet_of_claims(s: Standing, facet: str, hints: dict[str, Value]) -> Value:
    """What the hints themselves, or the output schema, say of a facet that nobody spoke of."""
    if facet == "reads_private":
        public = _stands(s, hints, "read_only", True) and _stands(s, hints, "open_world", True)
        if public and not s.credentialed:
            return Value(False, Basis.CLAIMED, "readOnlyHint, openWorldHint")
    elif facet == "can_exfiltrate":
        if _stands(s, hints, "open_world", False):
            return Value(False, Basis.CLAIMED, "openWorldHint")
    elif s.safe_output and s.pin_holds:
        # Enforced, because every result is held to the schema; the server's word alone would not be enough.
        return Value(False, Basis.ENFORCED, "outputSchema")
    return Value(True, Basis.DEFAULT)


def _stands(s: Standing, hints: dict[str, Value], hint: str, claimed: bool) -> bool:
    """Whether a trusted server claims this and no higher row contradicted it (containment does not)."""
    if s.claims.get(hint) is not claimed or not _believed(s) or hint in s.violated:
        return False
    return hints[hint].value is claimed or hints[hint].basis is Basis.ENFORCED


def _override_holds(s: Standing) -> bool:
    return s.operator_holds and s.pin_holds


def _vouched(s: Standing) -> bool:
    return s.pin_holds and s.trust is not Trust.UNTRUSTED


def _believed(s: Standing) -> bool:
    return s.pin_holds and s.trust is Trust.TRUSTED


def _mooted(values: dict[str, Value]) -> Profile:
    read_only = values["read_only"]
    if not read_only.value:
        return _profile(values, None)
    latent = (values["destructive"], values["idempotent"])
    harmless = {
        "destructive": Value(False, read_only.basis, read_only.source),
        "idempotent": Value(True, read_only.basis, read_only.source),
    }
    return _profile({**values, **harmless}, latent)


def _profile(values: dict[str, Value], latent: tuple[Value, Value] | None) -> Profile:
    return Profile(
        values["read_only"],
        values["destructive"],
        values["idempotent"],
        values["open_world"],
        values["reads_private"],
        values["sees_untrusted"],
        values["can_exfiltrate"],
        latent,
    )


def _bare(profile: Profile) -> dict[str, Value]:
    """The values as they were before the moot rule."""
    values = {name: profile.get(name) for name in NAMES}
    if profile.latent is not None:
        values["destructive"], values["idempotent"] = profile.latent
    return values


def _joined(name: str, values: Sequence[Value]) -> Value:
    risky = [value for value in values if value.value == RISKY_VALUES[name]]
    if risky:
        return min(risky, key=lambda value: _ROW[value.basis])
    return max(values, key=_lowering_row)


def _lowering_row(value: Value) -> int:
    return 6 if value.basis is Basis.OBSERVED else _ROW[value.basis]


WORST: Final = _mooted({name: Value(RISKY_VALUES[name], Basis.DEFAULT) for name in NAMES})
"""What is taken of a tool of which nothing is known."""
