"""The laws of resolution, over the whole finite space of what may be known of a tool.

The oracle below is the design's table read as data: rows with who may raise and who may lower. It shares no
code with the engine. Hints are independent of each other apart from the moot rule, so each is enumerated
alone.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import msgspec
import pytest

from earnest.core.hints import HINTS, RawHints
from earnest.core.profile import (
    FACETS,
    NAMES,
    WORST,
    Basis,
    Labels,
    Profile,
    Standing,
    Trust,
    Value,
    composite,
    entailed,
    raising,
    refine,
    resolve,
    riskier,
)

DANGEROUS = {
    "read_only": False,
    "destructive": True,
    "idempotent": False,
    "open_world": True,
    "reads_private": True,
    "sees_untrusted": True,
    "can_exfiltrate": True,
}
THREE = (None, True, False)
TWO = (True, False)


def standings_of(name: str) -> Iterator[Standing]:
    """All that may be known of one hint."""
    for trust, claim, pin, operator, holds, contained, pack, pack_holds, violated, supported, same in product(
        Trust, THREE, TWO, THREE, TWO, THREE, THREE, TWO, TWO, TWO, TWO
    ):
        yield Standing(
            trust=trust,
            claims=RawHints(**{name: claim}),
            pin_holds=pin,
            operator=Labels(**{name: operator}, source="operator"),
            operator_holds=holds,
            contained=Labels(**{name: contained}, source="sandbox"),
            pack=Labels(**{name: pack}, source="pack x:1"),
            pack_holds=pack_holds,
            violated=frozenset({name} if violated else ()),
            supported=frozenset({name} if supported else ()),
            support_holds=same,
        )


Row = tuple[Basis, Callable[[Standing, str], bool | None], Callable[[Standing], bool], Callable[[Standing], bool]]


def always(_: Standing) -> bool:
    return True


def never(_: Standing) -> bool:
    return False


# basis, what the row says of a name, when it may raise, when it may lower
TABLE: tuple[Row, ...] = (
    (Basis.OPERATOR, lambda s, n: s.operator.get(n), always, lambda s: s.operator_holds and s.pin_holds),
    (Basis.ENFORCED, lambda s, n: s.contained.get(n), never, always),
    (Basis.OBSERVED, lambda s, n: DANGEROUS[n] if n in s.violated else None, always, never),
    (
        Basis.PACK,
        lambda s, n: s.pack.get(n),
        always,
        lambda s: s.trust in ("verified", "trusted") and s.pack_holds and s.pin_holds,
    ),
    (Basis.CLAIMED, lambda s, n: s.claims.get(n), always, lambda s: s.trust == "trusted" and s.pin_holds),
    (
        Basis.OBSERVED,
        lambda s, n: s.claims.get(n) if n in s.supported else None,
        never,
        lambda s: s.trust in ("verified", "trusted") and s.support_holds and s.pin_holds,
    ),
)


def oracle(s: Standing, name: str) -> tuple[bool, Basis]:
    for basis, says, raises, lowers in TABLE:
        said = says(s, name)
        if said is not None and (raises if said == DANGEROUS[name] else lowers)(s):
            return said, basis
    return DANGEROUS[name], Basis.DEFAULT


@cache
def resolved(name: str) -> tuple[tuple[Standing, Value], ...]:
    return tuple((s, resolve(s).get(name)) for s in standings_of(name))


@pytest.mark.parametrize("hint", HINTS)
def test_every_standing_resolves_as_the_table_says(hint: str) -> None:
    for standing, value in resolved(hint):
        assert (value.value, value.basis) == oracle(standing, hint), standing


@pytest.mark.parametrize("hint", HINTS)
def test_lowering_always_has_a_basis_that_permits_it(hint: str) -> None:
    for s, value in resolved(hint):
        if value.value is DANGEROUS[hint]:
            continue
        assert value.basis is not Basis.DEFAULT
        if value.basis is Basis.CLAIMED:
            assert s.trust is Trust.TRUSTED and s.pin_holds
        elif value.basis is Basis.OPERATOR:
            assert s.operator_holds and s.pin_holds
        elif value.basis is not Basis.ENFORCED:
            assert s.trust is not Trust.UNTRUSTED and s.pin_holds


@pytest.mark.parametrize("hint", HINTS)
def test_raising_needs_no_basis(hint: str) -> None:
    """Whatever the trust and the pins, an added word of danger is followed unless a higher row lowers."""
    risky = DANGEROUS[hint]
    for s, value in resolved(hint):
        if s.claims.get(hint) is risky and value.value is not risky:
            assert value.basis in (Basis.OPERATOR, Basis.ENFORCED, Basis.PACK)
        if s.pack.get(hint) is risky and value.value is not risky:
            assert value.basis in (Basis.OPERATOR, Basis.ENFORCED)
        if hint in s.violated and value.value is not risky:
            assert value.basis in (Basis.OPERATOR, Basis.ENFORCED)
        if s.operator.get(hint) is risky:
            assert value.value is risky


@pytest.mark.parametrize("hint", HINTS)
def test_a_loosened_definition_is_lowered_by_containment_alone(hint: str) -> None:
    for s, value in resolved(hint):
        if not s.pin_holds and value.value is not DANGEROUS[hint]:
            assert value.basis is Basis.ENFORCED


@pytest.mark.parametrize("hint", HINTS)
def test_more_trust_and_holding_pins_never_raise(hint: str) -> None:
    risky = DANGEROUS[hint]
    by_key: dict[tuple[object, tuple[int, ...]], bool] = {}
    for s, value in resolved(hint):
        rest = (s.claims, s.operator, s.contained, s.pack, s.violated, s.supported)
        grants = (list(Trust).index(s.trust), s.pin_holds, s.operator_holds, s.pack_holds, s.support_holds)
        by_key[rest, grants] = value.value is risky
    for (rest, grants), is_risky in by_key.items():
        for index, most in enumerate((2, 1, 1, 1, 1)):
            if not is_risky and grants[index] < most:
                assert not by_key[rest, (*grants[:index], grants[index] + 1, *grants[index + 1 :])]


def test_nothing_known_is_worst() -> None:
    assert resolve(Standing()) == WORST
    assert {name: WORST.get(name).value for name in NAMES} == DANGEROUS
    assert {WORST.get(name).basis for name in NAMES} == {Basis.DEFAULT}


def test_a_pack_that_does_not_know_the_name_leaves_the_worst() -> None:
    legacy = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(), pack=Labels()))
    assert {name: legacy.get(name).value for name in NAMES} == DANGEROUS


# --- cases
# ---------------------------------------------------------------------------------------------------


def test_a_read_only_claim_of_an_untrusted_server_counts_for_nothing() -> None:
    profile = resolve(Standing(claims=RawHints(read_only=True)))
    assert profile.read_only == Value(False, Basis.DEFAULT)


def test_a_read_only_claim_of_a_trusted_server_counts() -> None:
    claims = RawHints(read_only=True, open_world=False)
    profile = resolve(Standing(trust=Trust.TRUSTED, claims=claims))
    assert profile.read_only == Value(True, Basis.CLAIMED, "readOnlyHint")
    assert (profile.destructive.value, profile.destructive.basis) == (False, Basis.CLAIMED)
    assert (profile.idempotent.value, profile.idempotent.basis) == (True, Basis.CLAIMED)


def test_an_admission_is_believed_from_anyone() -> None:
    profile = resolve(Standing(claims=RawHints(read_only=False, destructive=True)))
    assert profile.destructive == Value(True, Basis.CLAIMED, "destructiveHint")


def test_a_closed_world_is_no_trustworthy_one() -> None:
    mailbox = Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=True, open_world=False))
    profile = resolve(mailbox)
    assert profile.sees_untrusted == Value(True, Basis.DEFAULT)
    assert profile.reads_private.value is True
    assert profile.can_exfiltrate == Value(False, Basis.CLAIMED, "openWorldHint")


# --- moot
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destructive", THREE)
@pytest.mark.parametrize("idempotent", THREE)
def test_under_read_only_the_other_two_have_its_basis(destructive: bool | None, idempotent: bool | None) -> None:
    sources = (
        (Standing(operator=Labels(read_only=True, source="op")), Value(True, Basis.OPERATOR, "op")),
        (Standing(contained=Labels(read_only=True, source="box")), Value(True, Basis.ENFORCED, "box")),
        (
            Standing(trust=Trust.VERIFIED, pack=Labels(read_only=True, source="p")),
            Value(True, Basis.PACK, "p"),
        ),
    )

    for standing, read_only in sources:
        claims = RawHints(destructive=destructive, idempotent=idempotent)
        profile = resolve(msgspec.structs.replace(standing, claims=claims))
        assert profile.read_only == read_only
        assert profile.destructive == Value(False, read_only.basis, read_only.source)
        assert profile.idempotent == Value(True, read_only.basis, read_only.source)


def test_who_says_that_it_destroys_says_that_it_writes() -> None:
    assert entailed(Labels(destructive=True)) == Labels(destructive=True, read_only=False)
    assert entailed(Labels(destructive=True, read_only=True)).read_only is False
    for labels in (Labels(destructive=False), Labels(), Labels(read_only=True), Labels(idempotent=False)):
        assert entailed(labels) == labels


# --- facets
# --------------------------------------------------------------------------------------------------


def facet_standings(facet: str) -> Iterator[Standing]:
    for trust, pin, operator, holds, pack, pack_holds, label, (
        contained,
        violated,
    ), credentialed, safe in product(
        Trust, TWO, THREE, TWO, THREE, TWO, THREE, ((None, False), (False, False), (None, True)), TWO, TWO
    ):
        for read_only, open_world in (
            (None, None),
            (True, True),
            (True, False),
            (False, True),
            (None, False),
        ):
            yield Standing(
                trust=trust,
                claims=RawHints(read_only=read_only, open_world=open_world),
                pin_holds=pin,
                operator=Labels(**{facet: operator}),
                operator_holds=holds,
                contained=Labels(**{facet: contained}),
                pack=Labels(**{facet: pack}),
                pack_holds=pack_holds,
                server_labels=Labels(**{facet: label}),
                violated=frozenset({facet} if violated else ()),
                credentialed=credentialed,
                safe_output=safe,
            )


def facet_oracle(s: Standing, facet: str) -> tuple[bool, Basis]:
    trusted = s.trust == "trusted" and s.pin_holds
    own_claim = {
        "reads_private": s.claims.read_only is s.claims.open_world is True and not s.credentialed and trusted,
        "sees_untrusted": False,
        "can_exfiltrate": s.claims.open_world is False and trusted,
    }[facet]
    says: list[tuple[bool | None, bool, Basis]] = [
        (s.operator.get(facet), s.operator_holds and s.pin_holds, Basis.OPERATOR),
        (s.contained.get(facet), facet == "can_exfiltrate", Basis.ENFORCED),
        (True if facet in s.violated else None, False, Basis.OBSERVED),
        (s.pack.get(facet), s.trust != "untrusted" and s.pack_holds and s.pin_holds, Basis.PACK),
        (s.server_labels.get(facet), trusted and facet != "can_exfiltrate", Basis.CLAIMED),
        (False if own_claim else None, True, Basis.CLAIMED),
        (False if s.safe_output and facet == "sees_untrusted" else None, s.pin_holds, Basis.ENFORCED),
    ]
    for said, may_lower, basis in says:
        if said or (said is False and may_lower):
            return said, basis
    return True, Basis.DEFAULT


@pytest.mark.parametrize("facet", FACETS)
def test_every_facet_resolves_as_its_table_says(facet: str) -> None:
    for standing in facet_standings(facet):
        value = resolve(standing).get(facet)
        assert (value.value, value.basis) == facet_oracle(standing, facet), standing


def test_reads_are_public_only_by_explicit_claims_and_without_credentials() -> None:
    for trust, read_only, open_world, credentialed in product(Trust, THREE, THREE, TWO):
        claims = RawHints(read_only=read_only, open_world=open_world)
        private = resolve(Standing(trust=trust, claims=claims, credentialed=credentialed)).reads_private.value
        public = trust is Trust.TRUSTED and read_only is True and open_world is True and not credentialed
        assert private is not public


def test_a_claim_that_a_higher_row_contradicts_supports_no_facet() -> None:
    web = Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=True, open_world=True), credentialed=False)
    home = Standing(trust=Trust.TRUSTED, claims=RawHints(open_world=False))

    def but(s: Standing, **fields: object) -> Profile:
        return resolve(msgspec.structs.replace(s, **fields))

    assert but(web).reads_private.value is False
    assert but(web, pack=Labels(read_only=False)).reads_private.value is True
    assert but(web, violated=frozenset({"read_only"})).reads_private.value is True
    assert but(web, operator=Labels(open_world=False)).reads_private.value is True
    assert but(home).can_exfiltrate.value is False
    assert but(home, pack=Labels(open_world=True)).can_exfiltrate.value is True
    assert but(home, violated=frozenset({"open_world"})).can_exfiltrate.value is True
    sandboxed = Labels(read_only=True)
    assert but(web, contained=sandboxed, violated=frozenset({"read_only"})).reads_private.value is True
    # Containment contradicts nobody: the tool is still the one that was claimed.
    assert but(web, contained=Labels(open_world=False, can_exfiltrate=False)).reads_private.value is False


# --- refine
# --------------------------------------------------------------------------------------------------


def some_profiles() -> list[Profile]:
    return [
        WORST,
        resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(True, True, False, False))),
        resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(True, False, True, False))),
        resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(False, False, True, True))),
        resolve(Standing(operator=Labels(False, True, False, True, True, True, True))),
        resolve(Standing(operator=Labels(True, False, True, False, False, False, False))),
        resolve(Standing(pack=Labels(False, True, False, True, True, True, True))),
        resolve(Standing(violated=frozenset(HINTS))),
        resolve(Standing(contained=Labels(True, False, True, False, can_exfiltrate=False))),
    ]


def some_labels() -> list[Labels]:
    hints = [Labels(r, d, i, o) for r, d, i, o in product(THREE, THREE, THREE, THREE)]
    facets = [Labels(reads_private=p, sees_untrusted=u, can_exfiltrate=x) for p, u, x in product(THREE, THREE, THREE)]
    return hints + facets


def risk(profile: Profile, name: str) -> bool:
    return profile.get(name).value == DANGEROUS[name]


BASES = (Basis.OPERATOR, Basis.PACK, Basis.CLAIMED)


def test_a_refiner_that_may_not_lower_never_lowers() -> None:
    for profile, labels, basis in product(some_profiles(), some_labels(), BASES):
        after = refine(profile, labels, basis, may_lower=False)
        for name in NAMES:
            assert risk(after, name) >= risk(profile, name), (profile, labels, name)


def test_any_refiner_raises_except_what_is_made_impossible() -> None:
    for profile, labels, basis in product(some_profiles(), some_labels(), BASES):
        after = refine(profile, labels, basis, may_lower=True)
        for name in NAMES:
            moot = name in ("destructive", "idempotent") and after.read_only.value
            enforced = profile.get(name).basis is Basis.ENFORCED and basis is not Basis.OPERATOR
            if labels.get(name) is DANGEROUS[name] and not moot and not enforced:
                assert risk(after, name)


def test_what_is_made_impossible_stays_so_unless_the_operator_says_otherwise() -> None:
    boxed = resolve(Standing(contained=Labels(open_world=False, can_exfiltrate=False)))
    leaves = Labels(open_world=True, can_exfiltrate=True)
    assert refine(boxed, leaves, Basis.PACK, may_lower=True) == boxed
    assert refine(boxed, leaves, Basis.OPERATOR, may_lower=True).can_exfiltrate.value is True


def test_a_refined_profile_obeys_the_moot_rule_and_keeps_untouched_values() -> None:
    for profile, labels, basis in product(some_profiles(), some_labels(), BASES):
        after = refine(profile, labels, basis, may_lower=True)
        if after.read_only.value:
            assert after.destructive.value is False and after.idempotent.value is True
            assert after.destructive.basis is after.idempotent.basis is after.read_only.basis
        for name in ("open_world", *FACETS):
            if labels.get(name) is None:
                assert after.get(name) == profile.get(name)


def test_a_refiner_lowers_no_word_of_a_higher_row() -> None:
    read = Labels(read_only=True)
    forbidden = resolve(Standing(operator=Labels(read_only=False)))
    seen = resolve(Standing(violated=frozenset({"read_only"})))
    for profile in (forbidden, seen):
        assert refine(profile, read, Basis.PACK, may_lower=True).read_only.value is False
        assert refine(profile, read, Basis.OPERATOR, may_lower=True).read_only.value is True
    packed = resolve(Standing(pack=Labels(read_only=False)))
    assert refine(packed, read, Basis.PACK, may_lower=True).read_only.value is True
    assert refine(packed, read, Basis.CLAIMED, may_lower=True).read_only.value is False


def test_a_mixed_action_tool_is_a_read_when_it_only_lists() -> None:
    backup = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=False, destructive=True)))
    listing = refine(backup, Labels(read_only=True, source="labels:3"), Basis.OPERATOR, may_lower=True)
    assert listing.read_only == Value(True, Basis.OPERATOR, "labels:3")
    assert listing.destructive == Value(False, Basis.OPERATOR, "labels:3")
    assert backup.destructive.value is True


def test_a_read_that_turns_out_to_write_has_the_hints_it_had_before_the_moot_rule() -> None:
    unsaid = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=True)))
    writing = refine(unsaid, Labels(read_only=False), Basis.PACK, may_lower=False)
    assert writing.destructive == Value(True, Basis.DEFAULT)
    assert writing.idempotent == Value(False, Basis.DEFAULT)
    stated = resolve(Standing(operator=Labels(read_only=True, destructive=False, source="op")))
    assert refine(stated, Labels(read_only=False), Basis.PACK, may_lower=False).destructive == Value(
        False, Basis.OPERATOR, "op"
    )
    assert refine(stated, Labels(destructive=True), Basis.PACK, may_lower=False).destructive.value is True


def test_a_refinement_undone_is_as_before() -> None:
    for profile in some_profiles():
        if not profile.read_only.value:
            there = refine(profile, Labels(read_only=True), Basis.OPERATOR, may_lower=True)
            back = refine(there, Labels(read_only=False), Basis.OPERATOR, may_lower=False)
            assert [back.get(n).value for n in NAMES] == [profile.get(n).value for n in NAMES]


# --- composites
# ----------------------------------------------------------------------------------------------


def test_an_unknown_part_taints_the_whole() -> None:
    read = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=True)))
    for unknown in (None, WORST):
        whole = composite([read, unknown])
        assert whole.read_only.value is False and whole.destructive.value is True
    assert composite([]) == WORST


def test_a_composite_is_never_safer_than_a_part() -> None:
    profiles = some_profiles()
    for parts in [*product(profiles, profiles), *((a, b, WORST) for a, b in product(profiles, profiles))]:
        whole = composite(parts)
        for name in NAMES:
            worst = any(risk(part, name) for part in parts)
            if name == "idempotent" and not whole.read_only.value:
                worst = True
            assert risk(whole, name) is worst, (parts, name)
        assert {whole.get(name).value for name in ("idempotent",)} == {whole.read_only.value}


def test_a_composite_of_one_is_that_one() -> None:
    for profile in some_profiles():
        assert composite([profile]) == profile


def test_a_safe_value_of_a_composite_stands_on_its_weakest_part() -> None:
    claimed = resolve(Standing(trust=Trust.TRUSTED, claims=RawHints(read_only=True)))
    by_operator = resolve(Standing(operator=Labels(read_only=True)))
    supported = resolve(Standing(trust=Trust.VERIFIED, claims=RawHints(read_only=True), supported=frozenset({"read_only"})))
    assert composite([claimed, by_operator]).read_only.basis is Basis.CLAIMED
    assert composite([by_operator, claimed]).read_only.basis is Basis.CLAIMED
    assert composite([claimed, supported, by_operator]).read_only.basis is Basis.OBSERVED
    assert composite([by_operator, resolve(Standing(violated=frozenset({"read_only"})))]).read_only == Value(
        False, Basis.OBSERVED, "assay"
    )


def test_where_statements_of_one_rank_disagree_the_riskier_value_counts() -> None:
    reads = Labels(read_only=True, idempotent=True, open_world=False, source="a")
    writes = Labels(read_only=False, open_world=False, sees_untrusted=True, source="b")
    expected = Labels(read_only=False, idempotent=True, open_world=False, sees_untrusted=True, source="both")
    assert riskier((reads, writes), "both") == riskier((writes, reads), "both") == expected
    assert raising(expected) == Labels(read_only=False, sees_untrusted=True, source="both")
