"""What the values of one conversation may take in memory, and what happens past it."""

import random
import tracemalloc

import pytest

from earnest.config.lexicon import shipped
from earnest.core.intent import Reader
from earnest.core.ledger import Ledger
from earnest.core.provenance import LIMIT, MANY, Seen, Source
from earnest.core.values import tokens

READER = Reader(shipped())
SMALL = LIMIT // 8
SOURCE = Source("1", "s", "t")


def text(words, random):
    return " ".join("".join(random.choices("abcdefghijklmnop", k=random.randint(3, 9))) for _ in range(words))


def fill(ledger, kind, random, rounds):
    for number in range(rounds):
        record = {"id": number, "name": text(2, random), "body": text(120, random), "link": f"www.{number}.example/x"}
        if kind == "user":
            ledger.user(record["body"], str(number))
        else:
            ledger.result([record], str(number), "s", "t", trusted=kind == "trusted", private=True, arguments={"q": "x"})


@pytest.mark.parametrize("kind", ["user", "trusted", "untrusted"])
def test_no_kind_of_text_takes_more_than_the_bound(kind):
    ledger = Ledger(READER, SMALL)
    tracemalloc.start()
    try:
        fill(ledger, kind, random.Random(1), 60)
        assert tracemalloc.get_traced_memory()[0] < SMALL
    finally:
        tracemalloc.stop()


def test_all_rooms_together_stay_below_the_bound_and_what_was_trusted_first_stays_trusted():
    ledger = Ledger(READER, SMALL)
    ledger.result({"mail": "ann@corp.example"}, "1", "s", "contacts", trusted=True, private=False, arguments={})
    tracemalloc.start()
    try:
        for kind in ("trusted", "untrusted", "user"):
            fill(ledger, kind, random.Random(2), 40)
        assert tracemalloc.get_traced_memory()[0] < SMALL
    finally:
        tracemalloc.stop()
    assert ledger.values.trusted.full
    assert ledger.values.trusted.places(["eann@corp.example"])


def test_what_no_longer_has_a_place_of_its_own_is_still_found():
    seen, chance = Seen(40_000), random.Random(3)
    texts = [text(30, chance) for _ in range(60)]
    for one in texts:
        seen.add([token.key for token in tokens(one)], SOURCE)
    assert not seen.full
    for one in texts:
        keys = [token.key for token in tokens(one)]
        assert all(seen.token(key) for key in keys) and seen.passage(keys[5:11])
    assert seen.token(next(token.key for token in tokens(texts[-1]))) == MANY
    assert seen.begins("wabcd") is None
    others = [token.key for _ in range(40) for token in tokens(text(30, chance)) if len(token.key) > 6]
    assert sum(seen.token(key) is not None for key in others) <= 3


def test_a_filter_that_is_used_up_makes_the_room_full():
    seen, chance = Seen(8_000), random.Random(4)
    for _ in range(200):
        seen.add([token.key for token in tokens(text(30, chance))], SOURCE)
    assert seen.full
