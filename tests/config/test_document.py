"""The scanners: what they read equals what the standard parsers read, ranges are exact, edits are exact."""

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.config import jsonc, toml_ranges
from earnest.config.document import Edit, Node, apply, position
from earnest.core.errors import EarnestError
from properties import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def ranges_hold(node: Node, data: bytes) -> None:
    if node.kind != "object" or node.inline:
        assert json.loads(data[node.start : node.end]) == node.plain()
    for member in node.members:
        assert json.loads(data[member.start : member.end]) == member.key
        ranges_hold(member.node, data)
    for item in node.items:
        ranges_hold(item, data)


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4), st.booleans(), st.sampled_from([None, 2]))
def test_json_is_read_as_the_standard_library_reads_it(value: object, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    node = jsonc.scan("f", data)
    assert node.plain() == value
    ranges_hold(node, data)


def test_comments_commas_mark_and_line_ends_are_passed_over() -> None:
    data = '\ufeff// "x": 1\r\n{ /* {" */ "ä": [1, 2, // ]\r\n], "b": {"//": "/*"},\r\n}\r\n// end'.encode()
    node = jsonc.scan("f", data)
    assert node.plain() == {"ä": [1, 2], "b": {"//": "/*"}}
    found = node.get("b", "//")
    assert found is not None and data[found.start : found.end] == b'"/*"'


@pytest.mark.parametrize("data", [b"", b" \r\n", b"\xef\xbb\xbf", b"// only this"])
def test_an_empty_file_is_an_empty_object(data: bytes) -> None:
    assert jsonc.scan("f", data).plain() == {}


@pytest.mark.parametrize(
    ("data", "code", "where"),
    [
        (b'{"a": 1,\n "a": 2}', "E1011", "f:2:2"),
        (b'{"a": {"b": 1, "\\u0062": 2}}', "E1011", "f:1:16"),
        (b'{"a" 1}', "E1010", "f:1:6"),
        (b'{"a": 1', "E1010", "f:1:8"),
        (b'{"a": 1,,}', "E1010", "f:1:9"),
        (b"{,}", "E1010", "f:1:2"),
        (b'{"a": nul}', "E1010", "f:1:7"),
        (b'{"a": 01}', "E1010", "f:1:8"),
        (b'{"a": "x\n"}', "E1010", "f:1:7"),
        (b'{"a": "\\x"}', "E1010", "f:1:7"),
        (b"{} {}", "E1010", "f:1:4"),
        (b"{} /* x", "E1010", "f:1:4"),
        (b"{'a': 1}", "E1010", "f:1:2"),
        (b'{"a": "\xff"}', "E1010", "f:1:8"),
        ("{}".encode("utf-16"), "E1010", "UTF-16"),
        (b'{"a":' * 200, "E1010", "deeper"),
    ],
)
def test_what_is_no_json_is_an_error_with_its_place(data: bytes, code: str, where: str) -> None:
    with pytest.raises(EarnestError) as caught:
        jsonc.scan("f", data)
    assert caught.value.code == code and where in caught.value.message


TOML = """# head
a.b = 1 # x
a."c d" = 'x'
s = \"\"\"a "quoted" ""\\" x\"\"\"
l = '''it's ''ok'''''
d = 1979-05-27 07:32:00
f = [ 1.5, inf, # c
  0x1F, ]
[mcp_servers]
x = { command = "c", args = ['a', "b\\u00e4"], n.m = true }
[[r]]
a = 1
[r.q]
z = "1"
[[r]]
a = []
["q u"."ä"]
k = {}
"""


@pytest.mark.parametrize("change", [lambda t: t, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t])
def test_toml_is_read_as_the_standard_library_reads_it(change: object) -> None:
    assert callable(change)
    data = change(TOML).encode()
    node = toml_ranges.scan("f", data)
    expected = tomllib.loads(TOML)
    assert node.plain() == expected
    command = node.get("mcp_servers", "x", "command")
    assert command is not None and data[command.start : command.end] == b'"c"'
    member = node.members[0].node.member("c d")
    assert member is not None and data[member.start : member.end] == b'a."c d"'


toml_scalars = st.one_of(
    st.booleans().map(lambda b: str(b).lower()),
    st.integers(-(2**62), 2**62).map(str),
    st.text(max_size=6).map(lambda t: json.dumps(t).replace("\x7f", "\\u007f")),
    st.sampled_from(["'lit # [x]'", '"""a\n"b" ]"""', "'''\n'x' '''", "1.5e3", "2020-01-02", "07:32:00"]),
).filter(lambda text: "\\ud" not in text)
toml_values = st.recursive(
    toml_scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda v: "[" + ", # c\n".join(v) + "]")
        | st.lists(inner, max_size=3).map(lambda v: "{" + ", ".join(f"k{i} = {x}" for i, x in enumerate(v)) + "}")
    ),
    max_leaves=6,
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "[t{}]", "[[r]]", "[t.'x{}']"]), toml_values), max_size=6))
def test_any_toml_is_read_as_the_standard_library_reads_it(parts: list[tuple[str, str]]) -> None:
    lines = []
    for number, (header, value) in enumerate(parts):
        lines += [header.format(number), f"'key {number}' . b = {value}  # end"]
    text = "\n".join(lines)
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert toml_ranges.scan("f", text.encode()).plain() == expected


def test_toml_that_is_none_is_told_with_line_and_column() -> None:
    with pytest.raises(EarnestError) as caught:
        toml_ranges.scan("f", b"a = 1\nb = = 2\n", code="E1010")
    assert caught.value.code == "E1010" and "f:2:5" in caught.value.message


def test_edits_replace_exactly_their_ranges() -> None:
    assert apply(b"abcdef", [Edit(4, 4, b"-"), Edit(1, 3, b"XYZ")]) == b"aXYZd-ef"
    with pytest.raises(ValueError, match="overlapping"):
        apply(b"abcdef", [Edit(1, 4, b""), Edit(2, 3, b"")])


def test_positions_count_characters_from_one() -> None:
    data = "ä\r\nöö x".encode()
    assert position(data, data.index(b"x")) == (2, 4)
