"""The lexicon as it ships."""

import pytest

from earnest.config.lexicon import LANGUAGES, load, shipped
from earnest.core.intent import Reader

LEXICON = shipped()


def test_every_concept_has_words_in_english_and_in_names_of_tools():
    english = load(("en",))
    assert [name for name, verb in english.verbs.items() if not verb.words or not verb.tool] == []
    assert [name for name, thing in english.objects.items() if not thing.words or not thing.tool] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_verbs_that_do_harm(language):
    spoken = load((language,))
    for name in ("send", "delete", "update", "create", "pay", "share", "run", "install", "invite"):
        assert spoken.verbs[name].words, name
    assert spoken.negations and spoken.generic


@pytest.mark.parametrize(
    "word",
    [
        "page",
        "environment",
        "done",
        "vendor",
        "sender",
        "machine",
        "firm",
        "quite",
        "compress",
        "subject",
        "march",
        "defense",
        "transform",
        "penguin",
    ],
)
def test_stems_of_one_language_do_not_catch_ordinary_words_of_another(word):
    found = {concept for concept, _ in Reader(LEXICON)._verbs.find(word, [(word, 0)])}
    assert not found & {"pay", "buy", "delete", "send", "approve", "share", "invite", "run", "create"}
