"""The canonical form: RFC 8785 but for numbers; the fast road and the exact one agree; duplicates never
pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core import canonical as subject
from earnest.core.canonical import DEPTH, build, canonical, depth, digest, members
from earnest.core.errors import EarnestError
from properties import examples

NUMBERS = ["0", "-0", "-0.0", "-1", "1.10", "1E2", "1e+2", "0.5e-7", str(2**63 - 1), str(2**64), "-1e3"]
KEYS = ["a", "b", "A", "id", "Id", "é", "É", "ﬀ", "ff", "K", "k", "\U0001f600", "\ue000"]
KEYS += ["a\tb", 'q"', "\\", "", "ß", "ss"]
PAIRS = [("a", "a"), ("a", "A"), ("K", "k"), ("ﬀ", "FF"), ("ß", "SS"), ("é", "e\u0301"), ("ｉd", "ID")]


class Raw(str):
    """A token written into a text as it is."""


def write(value: Any, space: str = "", escape: bool = False) -> str:
    """JSON from lists, lists of pairs (tuples) and tokens, with the white space and escapes asked for."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=escape)
    if isinstance(value, tuple):
        pairs = (f"{write(k, space, escape)}{space}:{space}{write(v, space, escape)}" for k, v in value)
        return "{" + space + f",{space}".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + f"{space},".join(write(v, space, escape) for v in value) + space + "]"
    return json.dumps(value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS).map(Raw),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=6),
    st.sampled_from(['x":', "[{", "\u2028\x7f", "\x01"]),
)
keys = st.one_of(st.sampled_from(KEYS), st.text(st.characters(blacklist_categories=["Cs"]), max_size=3))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(keys, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)
texts = st.builds(write, values, st.sampled_from(["", "", " ", "\n\t"]), st.booleans()).map(str.encode)


def outcome(function: Any, raw: bytes) -> Any:
    try:
        return function(raw)
    except EarnestError as error:
        return error.code


@settings(max_examples=examples(200), deadline=None)
@given(texts)
def test_both_roads_lead_to_one_form(raw: bytes) -> None:
    exact = outcome(subject._exact, raw)
    fast = subject._fast(raw)
    assert fast is None or fast == exact
    assert outcome(canonical, raw) == exact


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=12) | st.text(alphabet='{}[]",:0-1.eE\\u dDcC8', max_size=14).map(str.encode))
def test_both_roads_refuse_the_same_texts(raw: bytes) -> None:
    exact = outcome(subject._exact, raw)
    fast = subject._fast(raw)
    assert fast is None or fast == exact
    assert outcome(members, raw) == outcome(subject._exact_members, raw)


@settings(max_examples=examples(200), deadline=None)
@given(texts)
def test_the_form_is_a_fixed_point_and_says_the_same(raw: bytes) -> None:
    form = outcome(canonical, raw)
    if isinstance(form, bytes):
        assert canonical(form) == form
        assert json.loads(form) == json.loads(raw)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(["list", "object"]), max_size=8),
    st.sampled_from(PAIRS),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_duplicates_are_refused_at_any_depth(
    path: list[str], pair: tuple[str, str], space: str, escape: bool
) -> None:
    value: Any = ((pair[0], Raw("1")), ("x", Raw("3")), (pair[1], Raw("2")))
    raw = write(value, space, escape).encode()
    with pytest.raises(EarnestError) as of_members:
        members(raw)
    assert of_members.value.code == "E1302"
    for step in path:
        value = [value] if step == "list" else (("o", value),)
    with pytest.raises(EarnestError) as caught:
        canonical(write(value, space, escape).encode())
    assert caught.value.code == "E1302"


@settings(max_examples=examples(200), deadline=None)
@given(texts)
def test_members_agree_with_the_exact_road_and_build_undoes_them(raw: bytes) -> None:
    found = outcome(members, raw)
    assert found == outcome(subject._exact_members, raw)
    if isinstance(found, dict):
        assert members(build(found)) == found
        assert outcome(canonical, build(found)) == outcome(canonical, raw)


def test_numbers_keep_their_text_in_form_and_digest() -> None:
    raw = b'{"id":9223372036854775807,"z":-0.0,"e":1E2}'
    form = b'{"e":1E2,"id":9223372036854775807,"z":-0.0}'
    assert canonical(raw) == form
    assert digest(raw) == digest(form)
    assert digest(raw) != digest(raw.replace(b"807", b"806"))
    odd = b"[-0,1.10,123456789012345678901234567890]"
    assert canonical(odd) == odd
    assert canonical(b"1" * 6000) == b"1" * 6000


def test_keys_are_sorted_by_utf16_code_units() -> None:
    raw = '{"\u20ac":1,"\\r":2,"\ufb33":3,"1":4,"\U0001f600":5,"\x80":6,"\u00f6":7}'.encode()
    want = '{"\\r":2,"1":4,"\x80":6,"\u00f6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'.encode()
    assert canonical(raw) == want  # the example of RFC 8785, 3.2.3


def test_strings_take_their_shortest_escapes() -> None:
    raw = rb'["\u000a\u0008\u001F\u007f\u00e9\/\ud83d\ude00\u0022"]'
    assert canonical(raw) == '["\\n\\b\\u001f\x7fé/😀\\""]'.encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"nul", b"NaN", b"[Infinity]", b"-", b"01", b"1.", b"{} {}", b"[1,]",
        b'{"a":1,}', b"{a:1}", b"'a'",
        b'"\t"', b'"\\x"', b"\xef\xbb\xbf{}", b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"',
        b'{"\\udc00":1}', b'"\\ude00\\ud83d"',
        b'{"a":"\\ud800"}', b'{"a":["\\udc00"]}', b'{"a":"\xff"}', b"// x\n1",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    for function in (canonical, digest, members):
        with pytest.raises(EarnestError) as caught:
            function(raw)
        assert caught.value.code == "E1301"


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"k":"]"},'])
def test_depth_has_a_limit_that_does_not_depend_on_the_stack(opening: bytes) -> None:
    closing = b"}" if opening.startswith(b"{") else b"]"

    def nest(levels: int) -> bytes:
        return opening * levels + b"[]" + closing * levels

    assert canonical(nest(DEPTH - 1)) and depth(nest(DEPTH - 1)) == DEPTH
    assert members(b'{"x":' + nest(DEPTH - 2) + b"}")
    for levels in (DEPTH, 50_000):
        with pytest.raises(EarnestError) as caught:
            canonical(nest(levels))
        assert caught.value.code == "E1303"
        with pytest.raises(EarnestError) as caught:
            members(b'{"x":' + nest(levels) + b"}")
        assert caught.value.code == "E1303"


def test_many_brackets_side_by_side_are_not_deep() -> None:
    raw = b"[" + b",".join([b'{"a":[]}'] * 500) + b"]"
    assert canonical(raw) == raw and depth(raw) == 3


def test_members_keep_bytes_order_and_text() -> None:
    raw = b' { "b" : [1, 2.50] ,"\xc3\xa9":"\\u00e9", "a":{"k":1,"k":2} }\n'
    assert members(raw) == {"b": b"[1, 2.50]", "é": b'"\\u00e9"', "a": b'{"k":1,"k":2}'}
    assert list(members(raw)) == ["b", "é", "a"]
    assert members(b"{}") == {} and build({}) == b"{}"
    assert build({'q"': b"1", "z": b"[ 1]"}) == b'{"q\\"":1,"z":[ 1]}'


def test_build_refuses_half_a_surrogate_pair() -> None:
    with pytest.raises(EarnestError) as caught:
        build({"\ud800": b"1"})
    assert caught.value.code == "E1301"
