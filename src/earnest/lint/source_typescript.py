"""Tools defined in TypeScript or JavaScript: the official SDK and FastMCP, read with tree-sitter, nothing run.

Found are `server.tool(name, …)`, `server.registerTool(name, {…}, …)`, `server.addTool({…})`, and object literals with `name`,
`description` and a schema (the low-level server's list). Names bound with `const` at the top of the file are followed. A hint
that is no literal counts as malformed, not as absent.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from earnest.core.errors import EarnestError
from earnest.core.hints import WIRE_NAMES
from earnest.lint.model import UNREADABLE, Place, Tool, tool_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_IGNORE: Final = re.compile(r"//\s*earnest:\s*ignore(?:\[([\w\s,-]*)\])?")
_WRAPPERS: Final = frozenset(("as_expression", "satisfies_expression", "parenthesized_expression", "non_null_expression"))
_REGISTERING: Final = frozenset(("tool", "registerTool", "addTool"))
_HINTS: Final = frozenset(WIRE_NAMES)


class _Unknown:
    """A value that is there and cannot be read."""


_UNKNOWN: Final = _Unknown()


@lru_cache(maxsize=2)
def _parser(tsx: bool) -> Parser:
    try:
        import tree_sitter
        import tree_sitter_typescript as grammar
    except ImportError:
        raise EarnestError("E1023", "reading TypeScript needs tree-sitter", "pip install 'earnest[lint]'") from None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language_tsx() if tsx else grammar.language_typescript()))


def tools_in(text: str, path: str) -> list[Tool]:
    """The tools that a module defines. Raises E1023 without tree-sitter."""
    root = _parser(path.endswith(("x", ".js", ".mjs", ".cjs"))).parse(text.encode()).root_node
    return _Finder(root, text.splitlines(), path).tools


class _Finder:
    def __init__(self, root: Node, lines: list[str], path: str) -> None:
        self.tools: list[Tool] = []
        self._lines, self._path = lines, path
        self._bound: dict[str, Node] = {}
        self._taken: set[int] = set()
        for statement in root.named_children:
            declared = statement.child_by_field_name("declaration") if statement.type == "export_statement" else statement
            if declared is None or declared.type != "lexical_declaration":
                continue
            for one in declared.named_children:
                name, value = one.child_by_field_name("name"), one.child_by_field_name("value")
                if name is not None and value is not None:
                    self._bound[_text(name)] = value
        self._walk(root)

    def _walk(self, root: Node) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            try:
                if node.type == "call_expression":
                    self._call(node)
                elif node.type == "object" and node.id not in self._taken:
                    self._literal(node)
            except RecursionError:  # a definition that nests too deeply is none
                self._taken.add(node.id)
            stack.extend(reversed(node.named_children))

    def _call(self, node: Node) -> None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "member_expression":
            return
        method = function.child_by_field_name("property")
        if method is None or _text(method) not in _REGISTERING:
            return
        given = [self._resolved(one) for one in arguments.named_children if one.type != "comment"]
        if not given:
            return
        if _text(method) == "addTool":
            if given[0].type == "object":
                self._taken.add(given[0].id)
                self._finish(self._members(given[0]), node)
            return
        name = self._value(given[0])
        if not isinstance(name, str):
            return
        if _text(method) == "registerTool":
            if len(given) > 1 and given[1].type == "object":
                self._taken.add(given[1].id)
                self._finish({"name": name, **self._members(given[1])}, node)
            return
        self._finish(self._overloads(name, given[1:]), node)

    def _overloads(self, name: str, rest: list[Node]) -> dict[str, Any]:
        """`tool(name, description?, schema?, annotations?, callback)`: told apart by what they hold."""
        found: dict[str, Any] = {"name": name}
        for node in rest:
            if node.type in ("string", "template_string", "binary_expression"):
                found["description"] = self._value(node)
            elif node.type == "object":
                self._taken.add(node.id)
                members = self._members(node)
                if members and set(members) <= _HINTS | {"title"}:
                    found["annotations"] = members
                elif "inputSchema" not in found:
                    found["inputSchema"] = {"type": "object", "properties": {key: {} for key in members}}
        return found

    def _literal(self, node: Node) -> None:
        members = self._members(node)
        if isinstance(members.get("name"), str) and "description" in members and {"inputSchema", "parameters"} & members.keys():
            self._taken.add(node.id)
            self._finish(members, node)

    def _finish(self, members: dict[str, Any], node: Node) -> None:
        name, description, schema = (
            members.get("name"),
            members.get("description"),
            members.get("inputSchema", members.get("parameters")),
        )
        if not isinstance(name, str):
            return
        definition: dict[str, Any] = {"name": name, "description": description if isinstance(description, str) else ""}
        if isinstance(members.get("title"), str):
            definition["title"] = members["title"]
        plain = isinstance(schema, dict) and ("properties" in schema or schema.get("type") == "object")
        keys = [key for key in schema if isinstance(key, str)] if isinstance(schema, dict) else []
        definition["inputSchema"] = schema if plain else {"type": "object", "properties": {key: {} for key in keys}}
        annotations = members.get("annotations")
        if isinstance(annotations, dict):
            definition["annotations"] = {
                key: UNREADABLE if value is _UNKNOWN and key in _HINTS else value for key, value in annotations.items()
            }
        elif annotations is _UNKNOWN:
            definition["annotations"] = dict.fromkeys(WIRE_NAMES, UNREADABLE)
        line = node.start_point[0] + 1
        self.tools.append(tool_of(_plain(definition), Place(self._path, line), self._ignored(line)))

    def _ignored(self, line: int) -> frozenset[str]:
        found: set[str] = set()
        for text in self._lines[max(0, line - 2) : line]:
            for match in _IGNORE.finditer(text):
                found.update(part.strip() for part in (match.group(1) or "*").split(",") if part.strip())
        return frozenset(found)

    def _resolved(self, node: Node) -> Node:
        for _ in range(8):
            if node.type in _WRAPPERS and node.named_children:
                node = node.named_children[0]
            elif node.type == "identifier" and _text(node) in self._bound:
                node = self._bound[_text(node)]
            else:
                break
        return node

    def _members(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for pair in node.named_children:
            if pair.type == "pair":
                key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
                if key is not None and value is not None:
                    found[_text(key).strip("'\"`")] = self._value(value)
            elif pair.type == "spread_element" and pair.named_children:
                spread = self._resolved(pair.named_children[0])
                found.update(self._members(spread) if spread.type == "object" else {})
            elif pair.type == "shorthand_property_identifier":
                bound = self._bound.get(_text(pair))
                found[_text(pair)] = self._value(bound) if bound is not None else _UNKNOWN
        return found

    def _value(self, node: Node) -> Any:
        node = self._resolved(node)
        text = _text(node)
        if node.type == "string":
            return _unquoted(text)
        if node.type == "template_string":
            return re.sub(r"\$\{[^}]*\}", "…", text[1:-1]).replace("\\`", "`")
        if node.type == "binary_expression":
            sides = [self._value(one) for one in node.named_children]
            return "".join(sides) if all(isinstance(one, str) for one in sides) else _UNKNOWN
        if node.type in ("true", "false"):
            return node.type == "true"
        if node.type in ("null", "undefined"):
            return None
        if node.type == "number":
            try:
                return json.loads(text)
            except ValueError:
                return _UNKNOWN
        if node.type == "object":
            return self._members(node)
        if node.type == "array":
            return [self._value(one) for one in node.named_children if one.type != "comment"]
        if node.type == "call_expression":
            return self._call_value(node)
        if node.type == "member_expression":  # `Schema.shape` of zod: the same keys
            owner, member = node.child_by_field_name("object"), node.child_by_field_name("property")
            if owner is not None and member is not None and _text(member) == "shape":
                return self._value(owner)
        return _UNKNOWN

    def _call_value(self, node: Node) -> Any:
        """`z.object({...})` has the keys of its argument; an `[...].join(…)` of strings is their text."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "member_expression":
            return _UNKNOWN
        method, owner = function.child_by_field_name("property"), function.child_by_field_name("object")
        if method is not None and owner is not None and arguments.named_children:
            first = self._resolved(arguments.named_children[0])
            if _text(method) in ("object", "strictObject", "looseObject") and first.type == "object":
                return self._members(first)
            parts = self._value(owner) if owner.type == "array" else None
            if _text(method) == "join" and isinstance(parts, list) and all(isinstance(one, str) for one in parts):
                return str(self._value(first)).join(parts)
        return _UNKNOWN


def _plain(value: Any) -> Any:
    """Without what could not be read."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not _UNKNOWN}
    return [_plain(inner) for inner in value if inner is not _UNKNOWN] if isinstance(value, list) else value


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""


def _unquoted(text: str) -> str:
    body = text[1:-1]
    if "\\" not in body:
        return body
    simple = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
    return re.sub(
        r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|x([0-9a-fA-F]{2})|(.|\n))",
        lambda m: chr(int(m.group(1) or m.group(2), 16)) if m.group(1) or m.group(2) else simple.get(m.group(3), m.group(3)),
        body,
    )
