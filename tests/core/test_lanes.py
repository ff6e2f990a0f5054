"""Which lane a tool belongs to, and what a lane makes impossible: over the whole space, which is finite."""

import itertools

import pytest

from earnest.core.hints import HINTS, RISKY, RawHints
from earnest.core.lanes import LANES, Lane, enforced, lane_of
from earnest.core.profile import NAMES, NOTHING, RISKY_VALUES, Basis, Labels, Standing, Trust, resolve

STATES = (None, True, False)
CLAIMS = [RawHints(*four) for four in itertools.product(STATES, repeat=4)]
SAID = [Labels(read_only=a, destructive=b, open_world=c) for a, b, c in itertools.product(STATES, repeat=3)]
WALLS = [
    enforced(lane, closed=closed, holds_writes=writes, holds_network=network, source="x")
    for lane in (*LANES, Lane.PREVIEW)
    for closed, writes, network in itertools.product((True, False), repeat=3)
]


@pytest.mark.parametrize(
    "claims, said, lane",
    [
        (RawHints(), NOTHING, Lane.ACT),
        (RawHints(read_only=True), NOTHING, Lane.NET),
        (RawHints(read_only=True, open_world=True), NOTHING, Lane.NET),
        (RawHints(read_only=True, open_world=False), NOTHING, Lane.OBSERVE),
        (RawHints(read_only=False, open_world=False), NOTHING, Lane.ACT),
        (RawHints(open_world=False), Labels(read_only=True), Lane.OBSERVE),
        (RawHints(), Labels(read_only=True, open_world=False), Lane.OBSERVE),
        (RawHints(read_only=True), Labels(open_world=False), Lane.OBSERVE),
        (RawHints(read_only=True, open_world=False), Labels(read_only=False), Lane.ACT),
        (RawHints(read_only=True, open_world=False), Labels(destructive=True), Lane.ACT),
        (RawHints(read_only=True, open_world=False), Labels(open_world=True), Lane.NET),
    ],
)
def test_reading_at_home_is_observe_reading_is_net_and_all_else_is_act(claims, said, lane):
    assert lane_of(claims, said) is lane


def test_an_operator_is_heard_before_the_server_and_nobody_means_the_worst():
    for claims, said in itertools.product(CLAIMS, SAID):
        reads = said.read_only if said.read_only is not None else claims.read_only
        if said.destructive:
            reads = False
        opens = said.open_world if said.open_world is not None else claims.open_world
        wanted = Lane.ACT if not reads else Lane.OBSERVE if opens is False else Lane.NET
        assert lane_of(claims, said) is wanted


def test_walls_only_lower_and_only_what_they_hold():
    for walls in WALLS:
        assert all(walls.get(name) in (None, not RISKY_VALUES[name]) for name in NAMES)
        assert walls.destructive is walls.idempotent is walls.reads_private is walls.sees_untrusted is None
    for lane, closed in itertools.product(LANES, (True, False)):
        for writes, network in ((True, False), (False, True), (False, False)):
            assert enforced(lane, closed=closed, holds_writes=writes, holds_network=network, source="x") == NOTHING
    held = {"holds_writes": True, "holds_network": True, "source": "x"}
    assert enforced(Lane.OBSERVE, closed=False, **held).read_only is True
    for lane in (Lane.NET, Lane.ACT, Lane.PREVIEW):
        assert enforced(lane, closed=False, **held) == NOTHING
        closed = enforced(lane, closed=True, **held)
        assert (closed.read_only, closed.open_world, closed.can_exfiltrate) == (None, False, False)


@pytest.mark.parametrize("trust", Trust)
def test_in_its_lane_a_local_read_is_a_fact_whoever_says_so_but_for_the_operator(trust):
    walls = enforced(Lane.OBSERVE, closed=True, holds_writes=True, holds_network=True, source="observe lane")
    for claims in CLAIMS:
        standing = Standing(
            trust=trust, claims=claims, contained=walls, violated=frozenset(HINTS), pack=Labels(read_only=False)
        )
        profile = resolve(standing)
        assert (profile.read_only.value, profile.open_world.value, profile.can_exfiltrate.value) == (True, False, False)
        assert profile.read_only.basis is profile.open_world.basis is profile.can_exfiltrate.basis is Basis.ENFORCED
        for hint in ("read_only", "open_world"):
            raised = resolve(Standing(trust=trust, claims=claims, contained=walls, operator=Labels(**{hint: RISKY[hint]})))
            assert raised.get(hint).value is RISKY[hint] and raised.get(hint).basis is Basis.OPERATOR
