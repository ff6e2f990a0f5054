"""Identifiers sort by time and never collide."""

from earnest.pdp.ids import Ids


def test_ids_sort_by_time_are_unique_and_of_one_length() -> None:
    now = [1_800_000_000.0]
    ids = Ids(lambda: now[0], lambda n: b"\x5a" * n)
    made = []
    for step in range(300):
        made.append(ids.new("a"))
        if step % 3 == 0:
            now[0] += 0.001
        if step % 50 == 0:
            now[0] -= 5  # a clock that is set back makes no id twice
    assert len(set(made)) == 300 and made == sorted(made)
    assert {len(one) for one in made} == {2 + 19}
