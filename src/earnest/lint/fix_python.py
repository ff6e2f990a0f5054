"""Annotations written into Python source by LibCST: decorators `.tool(…)`, `.add_tool(f, …)` and `Tool(name=…)` of the
official SDK and FastMCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import MetadataWrapper, PositionProvider

from earnest.lint.model import WIRE
from earnest.lint.propose import Proposal

_CLASS: Final = "ToolAnnotations"


def rewrite(source: str, proposals: Sequence[Proposal], lines: Mapping[int, str] | None = None) -> tuple[str, frozenset[str]]:
    """The source with the proposals in it, and the tools that took theirs. What is no literal is left as it is.

    `lines`: which tool is registered on which line, for names that are no literal there.
    """
    wanted: dict[str, dict[str, bool]] = {}
    for one in proposals:
        wanted.setdefault(one.tool, {})[WIRE[one.hint]] = one.value
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    module = wrapper.module
    # SDK 2.x writes hints in snake case and takes both; the file's own spelling is kept.
    editor = _Editor(wanted, lines or {}, snake="read_only_hint" in source or "destructive_hint" in source)
    changed = wrapper.visit(editor)
    if editor.new_class and _CLASS not in _imported(module):
        context = CodemodContext()
        AddImportsVisitor.add_needed_import(context, "mcp.types", _CLASS)
        changed = AddImportsVisitor(context).transform_module(changed)
    return changed.code, frozenset(editor.done)


def _imported(module: cst.Module) -> frozenset[str]:
    names: set[str] = set()
    for statement in module.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
                names.update(alias.evaluated_alias or alias.evaluated_name for alias in small.names)
    return frozenset(names)


class _Editor(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, wanted: Mapping[str, Mapping[str, bool]], lines: Mapping[int, str], snake: bool) -> None:
        super().__init__()
        self._wanted, self._lines, self._snake = wanted, lines, snake
        self.done: set[str] = set()
        self.new_class = False

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        pairs = zip(original_node.decorators, updated_node.decorators, strict=True)
        decorators = [self._decorator(one, self._at(before), updated_node.name.value) for before, one in pairs]
        return updated_node.with_changes(decorators=decorators)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        name = _last(updated_node.func)
        if name == "Tool":
            tool = _string(updated_node, "name") or self._at(original_node)
            return self._annotated(updated_node, tool) if tool is not None else updated_node
        if name in ("add_tool", "from_function") and updated_node.args and isinstance(updated_node.args[0].value, cst.Name):
            tool = _string(updated_node, "name") or self._at(original_node) or updated_node.args[0].value.value
            return self._annotated(updated_node, tool)
        return updated_node

    def _at(self, node: cst.CSTNode) -> str | None:
        """The tool that is known to be registered on the line where a node begins."""
        return self._lines.get(self.get_metadata(PositionProvider, node).start.line)

    def _decorator(self, node: cst.Decorator, known: str | None, function: str) -> cst.Decorator:
        target = node.decorator
        if isinstance(target, cst.Attribute) and target.attr.value == "tool":
            call = cst.Call(target)
            changed = self._annotated(call, known or function)
            return node if changed is call else node.with_changes(decorator=changed)
        if isinstance(target, cst.Call) and isinstance(target.func, cst.Attribute) and target.func.attr.value == "tool":
            first = target.args[0] if target.args else None
            positional = (
                first.value
                if first is not None and first.keyword is None and isinstance(first.value, cst.SimpleString)
                else None
            )
            told = positional.evaluated_value if positional is not None else None
            name = _string(target, "name") or (told if isinstance(told, str) else None) or known or function
            return node.with_changes(decorator=self._annotated(target, name))
        return node

    def _annotated(self, call: cst.Call, tool: str) -> cst.Call:
        hints = self._wanted.get(tool)
        if not hints:
            return call
        for index, argument in enumerate(call.args):
            if argument.keyword is None or argument.keyword.value != "annotations":
                continue
            value = self._merged(argument.value, hints)
            if value is None:
                return call
            self.done.add(tool)
            return call.with_changes(args=[*call.args[:index], argument.with_changes(value=value), *call.args[index + 1 :]])
        self.done.add(tool)
        self.new_class = True
        value = cst.Call(cst.Name(_CLASS), [_argument(self._spelled(key), one) for key, one in hints.items()])
        return call.with_changes(args=_appended(call, _keyword("annotations", _commaed(value))))

    def _merged(self, node: cst.BaseExpression, hints: Mapping[str, bool]) -> cst.BaseExpression | None:
        if isinstance(node, cst.Call) and _last(node.func) == _CLASS:
            arguments = list(node.args)
            for key, value in hints.items():
                spelled = {key, _snake(key)}
                at = next((i for i, a in enumerate(arguments) if a.keyword is not None and a.keyword.value in spelled), None)
                if at is None:
                    arguments = _appended(node.with_changes(args=arguments), _argument(self._spelled(key), value))
                else:
                    arguments[at] = arguments[at].with_changes(value=_name(value))
            return _commaed(node.with_changes(args=arguments))
        if isinstance(node, cst.Dict):
            elements: list[cst.BaseDictElement] = list(node.elements)
            for key, value in hints.items():
                at = next((i for i, e in enumerate(elements) if _key(e) in (key, _snake(key))), None)
                if at is None:
                    if elements and isinstance(elements[-1].comma, cst.MaybeSentinel):
                        elements[-1] = elements[-1].with_changes(comma=_comma())
                    elements.append(cst.DictElement(cst.SimpleString(f'"{key}"'), _name(value)))
                else:
                    elements[at] = elements[at].with_changes(value=_name(value))
            return node.with_changes(elements=elements)
        return None

    def _spelled(self, key: str) -> str:
        return _snake(key) if self._snake else key


def _appended(call: cst.Call, new: cst.Arg) -> list[cst.Arg]:
    """An argument more: on a line of its own where the others are."""
    found = list(call.args)
    if not found:
        return [new]
    last = found[-1]
    if isinstance(last.comma, cst.Comma):  # a trailing comma: the list stands on lines
        before = found[-2].comma if len(found) > 1 else last.comma
        if len(found) > 1 and isinstance(before, cst.Comma):
            found[-1] = last.with_changes(comma=before)
            return [*found, new.with_changes(comma=last.comma)]
        found[-1] = last.with_changes(comma=cst.Comma(whitespace_after=call.whitespace_before_args))
        return [*found, new.with_changes(comma=last.comma)]
    between = found[-2].comma if len(found) > 1 and isinstance(found[-2].comma, cst.Comma) else _comma()
    found[-1] = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return [*found, new.with_changes(whitespace_after_arg=last.whitespace_after_arg)]


def _commaed(call: cst.Call) -> cst.Call:
    arguments = [
        a.with_changes(comma=_comma()) if i + 1 < len(call.args) and isinstance(a.comma, cst.MaybeSentinel) else a
        for i, a in enumerate(call.args)
    ]
    return call.with_changes(args=arguments)


def _comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _argument(key: str, value: bool) -> cst.Arg:
    return _keyword(key, _name(value))


def _keyword(key: str, value: cst.BaseExpression) -> cst.Arg:
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(key), equal=tight)


def _name(value: bool) -> cst.Name:
    return cst.Name("True" if value else "False")


def _key(element: cst.BaseDictElement) -> str | None:
    key = element.key if isinstance(element, cst.DictElement) else None
    value = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def _snake(key: str) -> str:
    return {wire: f"{hint}_hint" for hint, wire in WIRE.items()}[key]


def _last(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


def _string(call: cst.Call, keyword: str) -> str | None:
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == keyword and isinstance(argument.value, cst.SimpleString):
            value = argument.value.evaluated_value
            return value if isinstance(value, str) else None
    return None
