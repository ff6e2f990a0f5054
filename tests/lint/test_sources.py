"""Definitions of tools found in source without running it: the official SDKs and FastMCP, in both languages."""

import pytest

from earnest.lint.model import Unread
from earnest.lint.run import Selection, lint
from earnest.lint.source_python import tools_in as python
from earnest.lint.sources import MAX_BYTES, read_source

PY = '''
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Tool, ToolAnnotations
import os

raise SystemExit("running me is a mistake")
mcp = FastMCP("x")
READ = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
SNAKE = ToolAnnotations(read_only_hint=False, destructive_hint=True)
LONG = "Deletes " + "a row"

@mcp.tool(annotations=READ)
def get_row(key: str, ctx: Context, deep: bool = False) -> str:
    """Get a row."""

@mcp.tool("drop_row", description=LONG, annotations={"readOnlyHint": True})
async def other(mode: Literal["soft", "hard"]) -> None: ...

@mcp.tool
def bare(n: int | None): "Count rows"

@mcp.tool(annotations=make_them())
def computed(): "Count rows"

class Names(str, Enum):
    NAMED = "named_by_an_enumeration"

@mcp.tool(name=Names.NAMED.value)
def f(): "Count rows"

@mcp.tool(annotations=ToolAnnotations(readOnlyHint=is_it(), openWorldHint=False))
def half(): "Count rows"

@mcp.tool(annotations=SNAKE)
def snake(): "Remove a row"

def later(x: list[str]): "Lists things"
mcp.add_tool(later, name="list_later", annotations=ToolAnnotations(**{"title": "T"}, readOnlyHint=True))

# earnest: ignore[read-only-but-writes] a trial
@mcp.tool(annotations=READ)
def send_mail(): "Send mail to a person"

SCHEMA = {"type": "object", "properties": {"q": {}}}
tools = [Tool(name="low", description=f"Find {os.name}", inputSchema=SCHEMA, annotations=READ)]
'''

TS = """
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
const READ = { readOnlyHint: true, openWorldHint: false } as const;
const Schema = z.object({ path: z.string(), head: z.number() });
server.tool("one", "Get one thing", { id: z.string() }, { readOnlyHint: true }, async () => ({}));
server.tool("two", async () => ({}));
server.registerTool("three", {
  title: "Three",
  description: "Delete " + `a thing`,
  inputSchema: Schema.shape,
  annotations: { ...READ, destructiveHint: make() },
}, cb);
const Mail = z.object({ to: z.string() });
server.addTool({ name: "four", description: ["Send", "mail"].join(" "), parameters: Mail, annotations: READ, execute });
// earnest: ignore
export const FIVE: Tool = { name: "five", description: 'It\\'s a list', inputSchema: {
  type: "object", properties: { q: { type: "string" } } } };
server.registerTool(computed(), { description: "no name" }, cb);
"""


def facts(tools):
    return {t.name: (t.description, sorted(t.properties), dict(t.annotations)) for t in tools}


def test_python_tools_are_read_as_the_sdk_would_list_them():
    found = facts(python(PY, "s.py"))
    read = {"readOnlyHint": True, "openWorldHint": False}
    assert found["get_row"] == ("Get a row.", ["deep", "key"], read)
    assert found["drop_row"] == ("Deletes a row", ["mode"], {"readOnlyHint": True})
    assert found["bare"] == ("Count rows", ["n"], {})
    assert found["snake"][2] == {"readOnlyHint": False, "destructiveHint": True}
    assert found["list_later"] == ("Lists things", ["x"], {"title": "T", "readOnlyHint": True})
    assert found["low"] == ("Find …", ["q"], read)
    assert found["named_by_an_enumeration"] == ("Count rows", [], {})
    assert len(found) == 10


def test_hints_that_cannot_be_read_are_there_all_the_same():
    tool = next(t for t in python(PY, "s.py") if t.name == "computed")
    assert len(tool.raw.malformed) == 4 and tool.raw.read_only is None
    half = next(t for t in python(PY, "s.py") if t.name == "half")
    assert half.raw.malformed == ("readOnlyHint",) and half.raw.open_world is False


def test_a_finding_has_the_line_of_its_tool_and_a_comment_silences_it():
    from earnest.lint.model import Server

    found = lint([Server("s", tuple(python(PY, "s.py")))], Selection(only=frozenset(["read-only-but-writes"])))
    assert [(f.tool, f.place.path, PY.splitlines()[f.place.line - 1][:9]) for f in found] == [("drop_row", "s.py", "@mcp.tool")]


@pytest.mark.parametrize("text", ["def (", "\0", "(" * 300, "x = " + "-" * 100_000 + "1", "x = " + "a+" * 5000 + "1"])
def test_source_that_does_not_parse_says_why(text):
    found = python(text, "s.py")
    assert isinstance(found, Unread) and found.why and found.place.line == 1


@pytest.mark.parametrize("text", ["", "x = 1"])
def test_source_of_other_things_defines_nothing(text):
    assert python(text, "s.py") == []


def test_typescript_tools_are_read_as_the_sdk_would_list_them():
    pytest.importorskip("tree_sitter_typescript")
    from earnest.lint.source_typescript import tools_in

    tools = tools_in(TS, "s.ts")
    found = facts(tools)
    assert found["one"] == ("Get one thing", ["id"], {"readOnlyHint": True})
    assert found["two"] == ("", [], {})
    assert found["three"][:2] == ("Delete a thing", ["head", "path"])
    assert found["three"][2]["readOnlyHint"] is True
    assert found["four"] == ("Send mail", ["to"], {"readOnlyHint": True, "openWorldHint": False})
    assert found["five"] == ("It's a list", ["q"], {})
    assert len(found) == 5
    three = next(t for t in tools if t.name == "three")
    assert three.raw.malformed == ("destructiveHint",) and three.title == "Three"
    assert next(t for t in tools if t.name == "five").ignored == {"*"}


def test_a_folder_is_read_without_dependencies_and_tests(tmp_path):
    for folder in (".", "node_modules/x", "tests", ".venv/lib"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "server.py").write_text("@mcp.tool()\ndef f(): 'Get it'\n")
    found = read_source(tmp_path)
    assert found is not None and len(found.tools) == 1 and found.name == tmp_path.name


def test_a_folder_without_tools_is_none(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    assert read_source(tmp_path) is None


def test_a_definition_that_nests_without_end_costs_only_itself():
    typescript = pytest.importorskip("earnest.lint.source_typescript").tools_in
    deep = "{a:" * 2000 + "1" + "}" * 2000  # twice as deep as Python goes; what the parser needs grows with the square
    text = f's.registerTool("deep", {{inputSchema: {deep}}}, f);\ns.registerTool("plain", {{description: "Read"}}, f);'
    assert [tool.name for tool in typescript(text, "s.ts")] == ["plain"]


def test_a_file_that_cannot_be_read_is_told_with_its_line(tmp_path):
    (tmp_path / "good.py").write_text("@mcp.tool()\ndef f(): 'Get it'\n")
    (tmp_path / "merged.py").write_text("@mcp.tool()\ndef g(): 'Get it'\n<<<<<<< ours\n")
    (tmp_path / "deep.py").write_text(f"tool = {'(' * 5000}{')' * 5000}\n")
    (tmp_path / "null.py").write_text("tool = 1\x00\n")
    (tmp_path / "old.py").write_text("# tool\n# earnest: ignore[unread-source]\nprint 'x'\n")
    (tmp_path / "other.py").write_text("print 'nothing of ours'\n")
    (tmp_path / "long.ts").write_text("//" + "x" * MAX_BYTES)
    found = read_source(tmp_path)
    assert [tool.name for tool in found.tools] == ["f"]
    told = [f for f in lint([found]) if f.audit == "unread-source"]
    assert sorted((f.place.path.rpartition("/")[2], f.place.line) for f in told) == [
        ("deep.py", 1),
        ("long.ts", 0),
        ("merged.py", 3),
        ("null.py", 1),
    ]
    assert f"{tmp_path}/merged.py:3 is no Python: invalid syntax; " in next(f.message for f in told if f.place.line == 3)


def test_a_folder_of_nothing_else_is_told_too(tmp_path):
    (tmp_path / "a.py").write_text("tool = = 1")
    found = read_source(tmp_path)
    assert found is not None and not found.tools and [f.audit for f in lint([found])] == ["unread-source"]
