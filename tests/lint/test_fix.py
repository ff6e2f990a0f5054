"""Proposed annotations: what may be proposed on what basis, and patches that leave everything else as it was."""

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.lint import fix
from earnest.lint.model import WIRE, Place, Server, tool_of
from earnest.lint.propose import observed, propose, withheld
from earnest.lint.run import lint
from earnest.lint.source_python import tools_in

rewrite = pytest.importorskip("earnest.lint.fix_python", reason="needs libcst").rewrite


def server(*definitions):
    return Server("s", tuple(tool_of(one | {"inputSchema": {"type": "object"}}) for one in definitions))


def wanted(definition, seen=None, **options):
    return {
        (p.hint): (p.value, p.basis, p.lowers) for p in propose(server(definition), {definition["name"]: seen or {}}, **options)
    }


def test_a_contradicted_claim_is_raised_on_words_alone():
    found = wanted({"name": "delete_row", "description": "Delete a row", "annotations": {"readOnlyHint": True}})
    assert found["read_only"] == (False, "lexicon", False)
    assert found["destructive"] == (True, "lexicon", False)


def test_words_alone_never_lower_risk():
    reads = {"name": "list_rows", "description": "List rows", "annotations": {}}
    assert set(wanted(reads)) == {"open_world"}, "what the words deny is not spelled out either"
    assert [(one.tool, one.hint) for one in withheld(server(reads), {})] == [("list_rows", "read_only")]
    assert wanted(reads, lower=True)["read_only"] == (True, "lexicon", True)
    assert "destructive" not in wanted(reads, lower=True)


def test_a_proposal_that_is_taken_leaves_no_contradiction():
    tools = [
        {"name": "list_rows", "description": "List all rows."},
        {"name": "create_row", "description": "Create a new row in a table."},
        {"name": "delete_row", "description": "Delete a row", "annotations": {"readOnlyHint": True}},
    ]
    taken = [dict(one, annotations=dict(one.get("annotations", {}))) for one in tools]
    for proposal in propose(server(*tools), {}):
        next(one for one in taken if one["name"] == proposal.tool)["annotations"][WIRE[proposal.hint]] = proposal.value
    wrong = {"read-only-but-writes", "destructive-denied", "destructive-overstated", "reads-but-not-read-only"}
    found = [one for one in lint([server(*taken)]) if one.audit in wrong]
    assert {one.tool for one in found} <= {"list_rows"}
    assert not any("but claims" in one.message for one in found), "what list_rows lacks is said, and nothing false is"


def test_what_was_observed_lowers_risk():
    assert wanted({"name": "list_rows", "description": "List rows"}, {"read_only": True})["read_only"] == (
        True,
        "evidence",
        True,
    )


def test_a_parameter_that_deletes_raises():
    tool = {"name": "rows", "description": "Rows of a table", "annotations": {"readOnlyHint": True}}
    schema = {"type": "object", "properties": {"action": {"enum": ["list", "delete"]}}}
    [one] = [p for p in propose(Server("s", (tool_of(tool | {"inputSchema": schema}),)), {}) if p.hint == "read_only"]
    assert (one.value, one.basis) == (False, "schema")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["List rows", "Delete a row", "Create a new file", "Send mail to a person", "Do it", "Search the web"]),
    st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]), st.booleans()),
)
def test_without_evidence_or_leave_no_proposal_lowers_risk(description, annotations):
    found = propose(server({"name": "x", "description": description, "annotations": annotations}), {})
    assert not [p for p in found if p.lowers]


SOURCE = '''"""A server."""

from mcp.server.fastmcp import FastMCP   # two spaces stay

mcp = FastMCP("x")


@mcp.tool()
def delete_row(key: str) -> str:
    """Delete a row."""
    return key  # and this


@mcp.tool(
    name="list_rows",
    annotations={"title": "Rows"},
)
async def rows(): "List rows"


@mcp.tool(annotations=computed())
def left_alone(): "Send mail to a person"
'''


def test_a_patch_changes_annotations_and_nothing_else(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SOURCE)
    tools = tuple(tools_in(SOURCE, str(path)))
    changed, left = fix.changes(Server("s", tools), propose(Server("s", tools), {}))
    [change] = changed
    added = [line[1:] for line in change.patch().splitlines() if line.startswith("+") and not line.startswith("+++")]
    removed = [line[1:] for line in change.patch().splitlines() if line.startswith("-") and not line.startswith("---")]
    assert removed == ["@mcp.tool()", '    annotations={"title": "Rows"},'][: len(removed)]
    assert any("readOnlyHint=False" in line and line.startswith("@mcp.tool(annotations=ToolAnnotations(") for line in added)
    assert "from mcp.types import ToolAnnotations" in added
    assert "# two spaces stay" in change.after and "# and this" in change.after
    assert {p.tool for p in left} <= {"left_alone"}
    again = {t.name: t.raw for t in tools_in(change.after, str(path))}
    assert again["delete_row"].destructive is True and again["list_rows"].read_only is None and again["list_rows"].open_world
    assert [p for p in propose(Server("s", tuple(tools_in(change.after, str(path)))), {}) if p.tool != "left_alone"] == []


@pytest.mark.parametrize("odd", [lambda text: text.replace("\n", "\r\n"), lambda text: text + "# a\x0cb\u2028c\n"])
def test_the_ends_of_lines_stay_and_git_applies(tmp_path, odd):
    path = tmp_path / "server.py"
    path.write_bytes(odd(SOURCE).encode())
    given = Server("s", tuple(tools_in(odd(SOURCE), str(path))))
    [change] = fix.changes(given, propose(given, {}))[0]
    assert change.before.encode() == path.read_bytes() and change.after.count("\r") in (0, change.after.count("\n"))
    patch = fix.Change("server.py", change.before, change.after).patch().encode()
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=tmp_path, input=patch, check=True)
    assert path.read_bytes() == change.after.encode()


@pytest.mark.parametrize("text", ["x = " + "{1: " * 150 + "1" + "}" * 150, "# \udce9"])
def test_a_file_that_cannot_be_rewritten_is_left_to_json(tmp_path, text):
    path = tmp_path / "server.py"
    path.write_bytes(f"{SOURCE}\n{text}\n".encode("utf-8", "surrogateescape"))
    given = Server("s", tuple(tools_in(SOURCE, str(path))))
    proposals = propose(given, {})
    assert fix.changes(given, proposals) == ([], proposals) and proposals


def test_a_patch_is_one_that_git_applies(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SOURCE)
    relative = Server("s", tuple(tools_in(SOURCE, str(path))))
    [change] = fix.changes(relative, propose(relative, {}))[0]
    patch = fix.Change("server.py", change.before, change.after).patch()
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=tmp_path, input=patch, text=True, check=True)
    assert path.read_text() == change.after


IMPORT = "from mcp.types import ToolAnnotations\n\n"
BOTH = "ToolAnnotations(readOnlyHint=False, destructiveHint=True)"


@pytest.mark.parametrize(
    "before, after",
    [
        (
            "t = Tool(name='x', description='d', annotations=ToolAnnotations(read_only_hint=True))\n",
            "t = Tool(name='x', description='d', annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))\n",
        ),
        (
            "s.add_tool(x)\n",
            f"{IMPORT}s.add_tool(x, annotations={BOTH})\n",
        ),
        (
            "@s.tool\ndef x(): ...\n",
            f"{IMPORT}@s.tool(annotations={BOTH})\ndef x(): ...\n",
        ),
        ("@s.tool('y')\ndef x(): ...\n", "@s.tool('y')\ndef x(): ...\n"),
        ("@s.tool(annotations=A)\ndef x(): ...\n", "@s.tool(annotations=A)\ndef x(): ...\n"),
    ],
)
def test_each_form_of_registration_is_rewritten_in_its_own_style(before, after):
    from earnest.lint.propose import Proposal

    ones = [Proposal("x", "read_only", None, False, "lexicon", ""), Proposal("x", "destructive", None, True, "lexicon", "")]
    assert rewrite(before, ones)[0] == after


def test_a_tool_is_found_by_its_line_where_its_name_is_no_literal(tmp_path):
    path = tmp_path / "server.py"
    path.write_text('class Names:\n    X = "drop_row"\n\n\n@s.tool(\n    name=Names.X,\n)\ndef f(): "Delete a row"\n')
    read = Server("s", tuple(tools_in(path.read_text(), str(path))))
    [change], left = fix.changes(read, propose(read, {}))
    assert left == [] and "    name=Names.X,\n    annotations=ToolAnnotations(readOnlyHint=False" in change.after


def test_what_no_patch_holds_is_json_with_its_basis():
    found = propose(Server("s", (tool_of({"name": "drop", "description": "Delete a row"}, Place("s.ts", 3)),)), {})
    changed, left = fix.changes(Server("s", ()), found)
    [row] = fix.as_json("s", left)
    assert changed == [] and row["annotations"]["destructiveHint"] is True
    assert row["basis"]["destructiveHint"]["basis"] == "lexicon" and json.dumps(row)


def test_a_file_of_evidence_is_checked(tmp_path):
    path = tmp_path / "e.json"
    path.write_text('{"x": {"readOnlyHint": true}}')
    with pytest.raises(EarnestError) as caught:
        observed(path)
    assert caught.value.code == "E1025"
    path.write_text('{"x": {"read_only": true}}')
    assert observed(path) == {"x": {"read_only": True}}
