"""The parser from the table reads conditions as the one that is worked out from the grammar."""

import pytest
from lark.exceptions import UnexpectedInput

from earnest.config.policy import grammar, grammar_table

TEXTS = [
    "true",
    "a.b == 1 && !c || d in [1, 2.5e3, 'x', b'y']",
    "tool.destructive && server.trust != 'trusted' ? x : y",
    "args.all(one, one.startsWith('/') || size(one) > 3u)",
    "{'a': [1, -2], 'b': {}}.a[0] < -0x1F",
    'has(args.x) && args.x.matches(r"\\d+\\.$") // so',
    "M{a: 1, b: true}.c(null, .d.e)",
    "((((a))))",
    "a ==",
    "a = b",
    "'open",
    "a && && b",
    "",
    "not a",
    "1 +",
]


@pytest.fixture(scope="module")
def parsers():
    found = grammar_table.load(grammar.grammar_text(), grammar._CALLBACKS)
    if found is None:
        pytest.skip("the table is of another version of lark or cel-python than is installed: run scripts/grammar-table")
    return found, grammar.worked_out()


def said(parser, text):
    """The tree with all places, or what was wrong and where."""
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        return type(error), error.pos_in_stream
    tokens = [(token.type, str(token), token.start_pos, token.end_pos) for token in tree.scan_values(lambda _: True)]
    return tree, [(one.data, one.meta.empty or (one.meta.start_pos, one.meta.end_pos)) for one in tree.iter_subtrees()], tokens


@pytest.mark.parametrize("text", TEXTS)
def test_both_parsers_say_the_same(parsers, text):
    loaded, made = (said(parser, text) for parser in parsers)
    assert loaded == made


def test_another_grammar_or_a_damaged_table_is_not_used(tmp_path, monkeypatch):
    assert grammar_table.load(grammar.grammar_text() + "\n", {}) is None
    raw = grammar_table.TABLE.read_bytes()
    for damaged in (b"", raw[:10], raw[:16], raw[:-20], b"x" * len(raw)):
        monkeypatch.setattr(grammar_table, "TABLE", tmp_path / "table")
        (tmp_path / "table").write_bytes(damaged)
        assert grammar_table.load(grammar.grammar_text(), {}) is None
    (tmp_path / "table").unlink()
    assert grammar_table.load(grammar.grammar_text(), {}) is None
