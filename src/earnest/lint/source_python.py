"""Tools defined in Python: the official SDK (1.x, 2.x) and FastMCP, read with `ast`, nothing run.

Found are functions under a decorator `.tool` or `.tool(…)`, calls of `.add_tool(function, …)` and `Tool.from_function(…)`,
and `Tool(name=…, …)` of the low-level server. Values are taken where they are literals, or names bound once to a literal at
the top of the module. What cannot be read (a call, an f-string with holes) is absent, and a hint that cannot be read counts
as malformed rather than absent: nobody shall be told to add one that is there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from earnest.core.hints import WIRE_NAMES
from earnest.lint.model import UNREADABLE, Place, Tool, Unread, tool_of

_IGNORE: Final = re.compile(r"#\s*earnest:\s*ignore(?:\[([\w\s,-]*)\])?")
_SNAKE: Final = {f"{name}_hint": wire for wire, name in WIRE_NAMES.items()}
_TYPES: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "tuple": "array",
    "set": "array",
}
_INJECTED: Final = frozenset(("Context", "ctx", "context", "self", "cls"))


class _Unknown:
    """A value that is there and cannot be read."""


_UNKNOWN: Final = _Unknown()


def tools_in(text: str, path: str) -> list[Tool] | Unread:
    """The tools that a module defines, or why it cannot be parsed."""
    lines = text.splitlines()
    try:
        tree = ast.parse(text)
        finder = _Finder(tree, lines, path)
        finder.visit(tree)
    except SyntaxError as error:
        at = error.lineno or 1
        return Unread(Place(path, at), f"is no Python: {error.msg}", ignored_at(lines, at, at))
    except ValueError as error:  # a null byte
        return Unread(Place(path, 1), f"is no Python: {error}")
    except (RecursionError, MemoryError):
        return Unread(Place(path, 1), "nests too deeply to be read")
    return finder.tools


def ignored_at(lines: list[str], first: int, last: int) -> frozenset[str]:
    """Audits that comments on the lines `first` to `last` (from 1), or on the line before, switch off; '*' for all."""
    found: set[str] = set()
    for line in lines[max(0, first - 2) : last]:
        for match in _IGNORE.finditer(line):
            found.update(part.strip() for part in (match.group(1) or "*").split(",") if part.strip())
    return frozenset(found)


class _Finder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, lines: list[str], path: str) -> None:
        self.tools: list[Tool] = []
        self._lines, self._path = lines, path
        self._bound: dict[str, ast.expr] = {}
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        for statement in tree.body:
            node: ast.stmt = statement
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            for target in targets:
                if isinstance(target, ast.Name) and value is not None:
                    self._bound[target.id] = value
            if isinstance(statement, ast.ClassDef):  # an enumeration of names: `Tools.STATUS`
                for member in statement.body:
                    if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
                        self._bound[f"{statement.name}.{member.targets[0].id}"] = member.value
        for inner in ast.walk(tree):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.setdefault(inner.name, inner)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            target = call.func if call is not None else decorator
            if isinstance(target, ast.Attribute) and target.attr == "tool":
                self._add(node, call, decorator.lineno, node.body[0].lineno)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        )
        if name in ("add_tool", "from_function") and node.args and isinstance(node.args[0], ast.Name):
            function = self._functions.get(node.args[0].id)
            if function is not None:
                self._add(function, node, node.lineno, node.end_lineno or node.lineno, 1)
        elif name == "Tool" and any(k.arg == "name" for k in node.keywords):
            self._literal(node)
        self.generic_visit(node)

    def _add(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call | None, line: int, last: int, skip: int = 0
    ) -> None:
        given = {k.arg: k.value for k in call.keywords if k.arg} if call is not None else {}
        positional = call.args[skip:] if call is not None else []
        name = self._value(given["name"]) if "name" in given else self._value(positional[0]) if positional else None
        description = self._value(given["description"]) if "description" in given else ast.get_docstring(function)
        definition: dict[str, Any] = {
            "name": name if isinstance(name, str) else function.name,
            "description": description if isinstance(description, str) else ast.get_docstring(function) or "",
            "inputSchema": _schema(function),
        }
        self._finish(definition, given, line, last)

    def _literal(self, call: ast.Call) -> None:
        given = {k.arg: k.value for k in call.keywords if k.arg}
        name, description = self._value(given["name"]), self._value(given.get("description"))
        if not isinstance(name, str):
            return
        schema = self._value(given.get("inputSchema", given.get("input_schema")))
        definition: dict[str, Any] = {"name": name, "description": description if isinstance(description, str) else ""}
        definition["inputSchema"] = schema if isinstance(schema, dict) else {"type": "object"}
        self._finish(definition, given, call.lineno, call.end_lineno or call.lineno)

    def _finish(self, definition: dict[str, Any], given: Mapping[str, ast.expr], line: int, last: int) -> None:
        title = self._value(given.get("title"))
        if isinstance(title, str):
            definition["title"] = title
        annotations = self._annotations(given["annotations"]) if "annotations" in given else None
        if annotations is not None:
            definition["annotations"] = annotations
        self.tools.append(tool_of(definition, Place(self._path, line), ignored_at(self._lines, line, last)))

    def _annotations(self, node: ast.expr) -> Any:
        node = self._resolved(node)
        pairs: list[tuple[str | None, ast.expr]]
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("ToolAnnotations", "dict"):
            pairs = [(k.arg, k.value) for k in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = [
                (str(self._value(key)) if key is not None else None, value)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
        elif isinstance(node, ast.Constant) and node.value is None:
            return None
        else:
            return dict.fromkeys(WIRE_NAMES, UNREADABLE)
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key is None:  # `**SHARED`
                shared = self._annotations(value)
                found.update(shared if isinstance(shared, dict) else {})
                continue
            read = self._value(value)
            found[_SNAKE.get(key, key)] = UNREADABLE if read is _UNKNOWN else read
        return found

    def _resolved(self, node: ast.expr) -> ast.expr:
        for _ in range(4):
            if isinstance(node, ast.Name) and node.id in self._bound:
                node = self._bound[node.id]
            elif isinstance(node, ast.Attribute):
                node = self._bound.get(ast.unparse(node).removesuffix(".value"), node)
        return node

    def _value(self, node: ast.expr | None) -> Any:
        """A literal; None for nothing; `_UNKNOWN` for what is no literal."""
        if node is None:
            return None
        node = self._resolved(node)
        if isinstance(node, ast.JoinedStr):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._value(node.left), self._value(node.right)
            return left + right if isinstance(left, str) and isinstance(right, str) else _UNKNOWN
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("dedent", "cleandoc", "strip")
        ):
            inner = self._value(node.args[0] if node.args else node.func.value)
            return inspect.cleandoc(inner) if isinstance(inner, str) else _UNKNOWN
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return _UNKNOWN


def _schema(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
        note = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        if argument.arg in _INJECTED or "Context" in note:
            continue
        properties[argument.arg] = _property(argument.annotation)
    return {"type": "object", "properties": properties}


def _property(node: ast.expr | None) -> dict[str, Any]:
    if isinstance(node, ast.Subscript):
        outer = ast.unparse(node.value).rpartition(".")[2]
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if outer == "Literal":
            return {
                "type": "string",
                "enum": [e.value for e in inner if isinstance(e, ast.Constant) and isinstance(e.value, str)],
            }
        if outer in ("Annotated", "Optional") and inner:
            return _property(inner[0])
        return {"type": _TYPES[outer.lower()]} if outer.lower() in _TYPES else {}
    if isinstance(node, ast.BinOp):
        return _property(node.left)
    name = ast.unparse(node) if node is not None else ""
    return {"type": _TYPES[name]} if name in _TYPES else {}
