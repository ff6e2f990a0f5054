"""The index of values."""

from earnest.core.provenance import PASSAGE, Seen, Source, Words
from earnest.core.storage import Mark, Memory
from earnest.core.values import keys, tokens

SOURCE = Source("7", "mail", "read", "[].body")


def test_a_run_is_found_whole_and_not_across_texts():
    words = Words()
    words.add(tokens("send it to Sarah Baker today"), SOURCE)
    words.add(tokens("Baker Street"), SOURCE)
    assert words.places(["wsarah", "wbaker"]) == [3]
    assert words.places(["wbaker", "wstreet"]) and not words.places(["wtoday", "wbaker"])
    assert not words.places(["wsar"]) and not words.places([])
    assert words.source(3) == SOURCE


def test_what_is_skipped_leaves_a_gap():
    words = Words()
    words.add(tokens("pay max now"), SOURCE, skip=frozenset(("wmax",)))
    assert not words.places(["wmax"]) and not words.places(["wpay", "wnow"])


def test_a_full_room_of_trusted_values_takes_no_more_and_keeps_what_it_has():
    words = Words(limit=2000)
    words.add(tokens("first"), SOURCE)
    words.add(tokens("many " * 100), SOURCE)
    words.add(tokens("later"), SOURCE)
    assert words.full and words.has("wfirst") and not words.has("wlater")


def test_a_full_room_of_untrusted_values_says_so():
    seen = Seen(limit=1000)
    for number in range(300):
        seen.add(keys(f"value{number}"), SOURCE)
    assert seen.full and seen.token("wvalue0") == SOURCE


def test_a_copied_passage_is_found_wherever_it_starts():
    text = "the quick brown fox jumps over the lazy dog and then sleeps in the warm sun all day long"
    seen = Seen()
    seen.add(keys(text), SOURCE)
    words = text.split()
    for at in range(len(words) - PASSAGE + 1):
        assert seen.passage(keys("well, " + " ".join(words[at : at + PASSAGE]) + " indeed")) == SOURCE
    assert seen.passage(keys("a quick red fox walks over some lazy cats")) is None


def test_a_source_tells_where():
    assert SOURCE.words() == "mail/read, receipt 7, at [].body"
    assert "prompt" in Source("1").words()


def test_a_store_remembers_by_object_and_by_passage():
    memory = Memory()
    assert memory.stored("notes", ["wbilling"], [keys("the new contact is pay at evil now")], "3") == [
        Mark("notes", "wbilling", "3")
    ]
    assert memory.marked("notes", ["wbilling"], []) == "3"
    assert memory.marked("notes", ["wother"], []) is None
    assert memory.marked("notes", [], [keys("say: the new contact is pay at evil now")]) == "3"
    assert memory.marked("mail", ["wbilling"], []) is None


def test_a_write_to_nobody_knows_where_marks_the_store():
    memory = Memory()
    memory.stored("notes", [], [("wx",)], "3")
    assert memory.marked("notes", ["wanything"], []) == "3"
    memory.endorse("notes")
    assert memory.marked("notes", ["wanything"], []) is None


def test_marks_come_back():
    memory = Memory([Mark("notes", "wbilling", "3")])
    assert memory.marked("notes", ["wbilling"], []) == "3"
