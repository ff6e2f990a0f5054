"""Labels only grow, keys form a tree, and forgetting a key cleans nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earnest.core.flow import MAX_CAUSES, PRIVATE, UNTRUSTED, Cause, FlowState, Key, names

USER: Key = ("user:1",)
HOST: Key = ("user:1", "process:1.1")
OTHER: Key = ("user:1", "process:2.2")
HANDLE: Key = ("user:1", "process:1.1", "session:-", "handle:a")
CAUSE = Cause("r1", "notes", "read")


def test_a_label_is_seen_at_its_key_above_and_below_but_not_by_siblings() -> None:
    state = FlowState()
    for key in (HOST, OTHER, HANDLE):
        state.open(key, minted=True)
    state.raise_(HOST, PRIVATE, CAUSE)
    assert state.effective(HOST) == PRIVATE
    assert state.effective(HANDLE) == PRIVATE
    assert state.effective(USER) == PRIVATE
    assert state.effective(OTHER) == 0


def test_a_made_up_handle_starts_with_all_its_parent_saw() -> None:
    state = FlowState()
    state.open(HANDLE, minted=True)
    state.raise_(HANDLE, PRIVATE | UNTRUSTED, CAUSE)
    fresh = (*HANDLE[:-1], "handle:b")
    assert state.effective(fresh) == PRIVATE | UNTRUSTED
    assert state.causes(fresh)[PRIVATE].first == (CAUSE,)


def test_an_omitted_handle_is_judged_by_all_handles_below() -> None:
    state = FlowState()
    state.open(HANDLE, minted=True)
    state.raise_(HANDLE, UNTRUSTED, CAUSE)
    assert state.effective(HOST) == UNTRUSTED


def test_a_minted_sibling_starts_clean() -> None:
    state = FlowState()
    state.open(HANDLE, minted=True)
    state.raise_(HANDLE, PRIVATE, CAUSE)
    fresh = (*HANDLE[:-1], "handle:b")
    state.open(fresh, minted=True)
    assert state.effective(fresh) == 0


def test_ending_a_conversation_frees_what_is_above_only_of_its_labels() -> None:
    state = FlowState()
    state.open(HOST, minted=True)
    state.open(OTHER, minted=True)
    state.raise_(HOST, PRIVATE, CAUSE)
    state.raise_(OTHER, UNTRUSTED, CAUSE)
    assert state.end(HOST) == (HOST,)
    assert state.effective(USER) == UNTRUSTED
    assert HOST not in state


def test_causes_are_bounded_and_counted() -> None:
    state = FlowState()
    state.open(HOST, minted=True)
    for n in range(MAX_CAUSES + 5):
        state.raise_(HOST, PRIVATE, Cause(f"r{n}", "s", "t"))
    causes = state.causes(HOST)[PRIVATE]
    assert [c.receipt for c in causes.first] == [f"r{n}" for n in range(MAX_CAUSES)]
    assert causes.more == 5


def test_raise_reports_only_what_is_new() -> None:
    state = FlowState()
    state.open(HOST, minted=True)
    assert state.raise_(HOST, PRIVATE, CAUSE) == PRIVATE
    assert state.raise_(HOST, PRIVATE | UNTRUSTED, CAUSE) == UNTRUSTED
    assert state.raise_(HOST, PRIVATE, CAUSE) == 0


def test_words_for_bits() -> None:
    assert names(0) == ()
    assert names(PRIVATE | UNTRUSTED) == ("private", "untrusted")


@pytest.mark.parametrize("key", [(), ("a", "b", "c", "d", "e")])
def test_a_key_out_of_bounds_is_refused(key: Key) -> None:
    with pytest.raises(ValueError, match="parts"):
        FlowState().open(key, minted=True)


_parts = st.sampled_from(["1", "2"])
_keys = st.lists(_parts, min_size=1, max_size=4).map(tuple)
_events = st.lists(st.tuples(_keys, st.integers(0, 3), st.booleans()), max_size=25)


@given(_events, _keys)
def test_labels_never_shrink_without_an_end(events: list[tuple[Key, int, bool]], probe: Key) -> None:
    state = FlowState()
    state.open(probe, minted=True)
    before = state.effective(probe)
    for key, bits, minted in events:
        state.open(key, minted=minted)
        state.raise_(key, bits, CAUSE)
        now = state.effective(probe)
        assert now & before == before
        before = now


@given(_events, _keys)
def test_the_order_of_raises_on_known_keys_does_not_matter(events: list[tuple[Key, int, bool]], probe: Key) -> None:
    def run(order: list[tuple[Key, int, bool]]) -> int:
        state = FlowState()
        for key, _, _ in events:
            state.open(key, minted=True)
        state.open(probe, minted=True)
        for key, bits, _ in order:
            state.raise_(key, bits, CAUSE)
        return state.effective(probe)

    assert run(events) == run(list(reversed(events)))


@given(_events, _keys)
def test_a_restored_state_decides_as_the_one_that_was_saved(events: list[tuple[Key, int, bool]], probe: Key) -> None:
    state = FlowState()
    for key, bits, minted in events:
        state.open(key, minted=minted)
        state.raise_(key, bits, CAUSE)
    again = FlowState()
    for key in state.keys():  # noqa: SIM118 - it is no mapping
        again.restore(key, state.own(key), state.own_causes(key), minted=True)
    for key in state.keys():  # noqa: SIM118 - it is no mapping
        assert again.effective(key) == state.effective(key)


@given(_events, _keys)
def test_effective_is_own_above_and_below(events: list[tuple[Key, int, bool]], probe: Key) -> None:
    state = FlowState()
    for key, bits, _ in events:
        state.open(key, minted=True)
        state.raise_(key, bits, CAUSE)
    state.open(probe, minted=True)
    expected = 0
    for key in state.keys():  # noqa: SIM118 - it is no mapping
        shorter = min(len(key), len(probe))
        if key[:shorter] == probe[:shorter]:
            expected |= state.own(key)
    assert state.effective(probe) == expected


def test_causes_are_only_counted_where_they_are_not_named_any_more() -> None:
    state, twin = FlowState(), FlowState()
    for at in range(MAX_CAUSES + 5):
        cause = Cause(f"w.{at}", "s", "t")
        if not state.count(HOST, PRIVATE):
            assert at < MAX_CAUSES
            state.raise_(HOST, PRIVATE, cause)
        twin.raise_(HOST, PRIVATE, cause)
    assert state.own_causes(HOST) == twin.own_causes(HOST)
    assert not state.count(HOST, PRIVATE | UNTRUSTED)
    assert state.own_causes(HOST) == twin.own_causes(HOST) and state.own(HOST) == PRIVATE
    state.end(HOST)
    assert not state.count(HOST, PRIVATE)
