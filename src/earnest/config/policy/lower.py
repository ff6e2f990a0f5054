"""From the tree of the grammar to a typed condition: names, types and literals are checked on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from earnest.config.policy.findings import Wrong, mean
from earnest.config.policy.grammar import parse
from earnest.core.errors import EarnestError
from earnest.core.expr import (
    And,
    Binary,
    Call,
    Const,
    Every,
    Expr,
    Field,
    Has,
    If,
    Index,
    ListOf,
    Matches,
    Name,
    Negate,
    Not,
    Or,
    Present,
    Var,
)
from earnest.core.regex import Regex
from earnest.core.vocabulary import WORDS

DEEPEST: Final = 40
"""How deeply parentheses, lists and operators may nest."""

# Types are words: bool, string, int, double, null, list, dyn, and the name of an enumerated word, such as
# server.trust.
_NUMBERS: Final = frozenset(("int", "double"))
_ROOTS: Final = frozenset(name.partition(".")[0] for name in WORDS)
_METHODS: Final = ("startsWith", "endsWith", "contains", "matches", "size", "exists", "all")
_OPERATORS: Final = {
    "relation_lt": "<", "relation_le": "<=", "relation_gt": ">", "relation_ge": ">=", "relation_eq": "==",
    "relation_ne": "!=", "relation_in": "in", "addition_add": "+", "addition_sub": "-",
    "multiplication_mul": "*", "multiplication_div": "/", "multiplication_mod": "%",
}  # fmt: skip


class Typed:
    """A node, its type, and where it stands."""

    __slots__ = ("at", "node", "type")

    def __init__(self, node: Expr, type_: str, at: int) -> None:
        self.node, self.type, self.at = node, type_, at


def condition(text: str) -> Expr:
    """The typed condition of a CEL text. Raises `Wrong` with the offset of the first thing that is wrong."""
    made = _Lowering(text).expr(parse(text), 0)
    _want_bool(made)
    return made.node


def _want_bool(typed: Typed) -> None:
    if typed.type not in ("bool", "dyn"):
        raise Wrong("E1105", f"true or false is wanted here, not {_said(typed.type)}", typed.at, "compare it with `==`")


def _said(type_: str) -> str:
    return f"one of {', '.join(WORDS[type_].values)}" if type_ in WORDS else type_


class _Lowering:
    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: list[str] = ["args"]

    def expr(self, tree: Any, depth: int) -> Typed:
        if depth > DEEPEST:
            raise Wrong("E1103", "the condition is nested too deep", _at(tree), "split it into several rules")
        while len(tree.children) == 1 and tree.data not in _LEAVES and not _is_token(tree.children[0]):
            tree = tree.children[0]
        kind, parts = tree.data, tree.children
        if kind == "expr":
            test, then, otherwise = (self.expr(part, depth + 1) for part in parts)
            _want_bool(test)
            type_ = then.type if then.type == otherwise.type else "dyn"
            if type_ == "dyn" and "dyn" not in (then.type, otherwise.type):
                self.comparable(then, otherwise, "? :", otherwise.at)
            return Typed(If(test.node, then.node, otherwise.node), type_, test.at)
        if kind in ("conditionalor", "conditionaland"):
            sides = [self.expr(part, depth + 1) for part in _chain(tree, kind)]
            for side in sides:
                _want_bool(side)
            nodes = tuple(side.node for side in sides)
            return Typed(Or(nodes) if kind == "conditionalor" else And(nodes), "bool", sides[0].at)
        if kind in ("relation", "addition", "multiplication"):
            return self.binary(tree, depth)
        if kind == "unary":
            inner = self.expr(parts[1], depth + 1)
            if parts[0].data == "unary_not":
                _want_bool(inner)
                return Typed(Not(inner.node), "bool", _at(tree))
            if inner.type not in _NUMBERS | {"dyn"}:
                raise Wrong("E1105", f"`-` wants a number, not {_said(inner.type)}", inner.at)
            return Typed(Negate(inner.node), inner.type, _at(tree))
        return self.member(tree, depth)

    def binary(self, tree: Any, depth: int) -> Typed:
        # `a + b + c` leans left; it is walked in a loop so that a long sum is not a deep one.
        rights: list[tuple[str, Any]] = []
        kind = tree.data
        while tree.data == kind and len(tree.children) == 2:
            rights.append((_OPERATORS[tree.children[0].data], tree.children[1]))
            tree = tree.children[0].children[0]
        left = self.expr(tree, depth + 1)
        if len(rights) + depth > DEEPEST:
            raise Wrong("E1103", "too many operators in a row", left.at, "split it into several rules")
        for op, right_tree in reversed(rights):
            right = self.expr(right_tree, depth + 1)
            left = Typed(Binary(op, left.node, right.node), self.operate(op, left, right), left.at)
        return left

    def operate(self, op: str, left: Typed, right: Typed) -> str:
        """The type of a result; raises where it could never have one."""
        if op in ("==", "!="):
            self.comparable(left, right, op, left.at)
            return "bool"
        if op == "in":
            if right.type not in ("list", "dyn"):
                raise Wrong("E1105", f"`in` wants a list on its right, not {_said(right.type)}", right.at)
            if isinstance(right.node, ListOf):
                for item in right.node.of:
                    self.comparable(left, Typed(item, _constant_type(item), right.at), op, right.at)
            return "bool"
        types = {left.type, right.type} - {"dyn"}
        if op in ("<", "<=", ">", ">="):
            if not (types <= _NUMBERS or types == {"string"}):
                raise Wrong(
                    "E1105", f"`{op}` orders two numbers or two strings, not {_pair(left, right)}", left.at,
                    "compare with `==`" if types & WORDS.keys() else "",
                )  # fmt: skip
            return "bool"
        if op == "+" and types in ({"string"}, {"list"}):
            return "dyn" if "dyn" in (left.type, right.type) else types.pop()
        if not types <= _NUMBERS:
            raise Wrong("E1105", f"`{op}` wants numbers, not {_pair(left, right)}", left.at)
        if "dyn" in (left.type, right.type):
            return "dyn"
        return "double" if "double" in types else "int"

    def comparable(self, left: Typed, right: Typed, op: str, at: int) -> None:
        """Raise where two types can never be equal, or a literal is no value of an enumeration."""
        for one, other in ((left, right), (right, left)):
            if one.type not in WORDS:
                continue
            if isinstance(other.node, Const) and isinstance(other.node.value, str):
                word = WORDS[one.type]
                if other.node.value not in word.values:
                    raise Wrong(
                        "E1105", f"`{word.name}` is never '{other.node.value}'", other.at,
                        mean(other.node.value, word.values, f"it is one of {', '.join(word.values)}"),
                    )  # fmt: skip
                return
            if other.type == "string":
                return
            if other.type in WORDS and set(WORDS[other.type].values) & set(WORDS[one.type].values):
                return
        types = {left.type, right.type}
        if len(types) == 1 or "dyn" in types or types <= _NUMBERS:
            return
        raise Wrong("E1105", f"`{op}` of {_pair(left, right)} is always the same", at, _quote_hint(left, right))

    def member(self, tree: Any, depth: int) -> Typed:
        kind, parts, at = tree.data, tree.children, _at(tree)
        if kind == "literal":
            return _literal(parts[0])
        if kind == "ident":
            return self.name([str(parts[0])], at, at)
        if kind == "paren_expr":
            return self.expr(parts[0], depth + 1)
        if kind == "list_lit":
            items = [self.expr(item, depth + 1) for item in (parts[0].children if parts else ())]
            return Typed(ListOf(tuple(item.node for item in items)), "list", at)
        if kind == "member_dot":
            return self.select(tree, depth)
        if kind == "member_index":
            of, key = self.expr(parts[0], depth + 1), self.expr(parts[1], depth + 1)
            if of.type not in ("list", "dyn") or key.type not in ("int", "string", "dyn"):
                raise Wrong("E1105", f"cannot index {_said(of.type)} by {_said(key.type)}", at)
            return Typed(Index(of.node, key.node), "dyn", at)
        if kind == "ident_arg":
            return self.function(str(parts[0]), parts[1].children if len(parts) > 1 else [], at, depth)
        if kind == "member_dot_arg":
            return self.method(tree, depth)
        raise Wrong("E1103", f"{_UNUSED.get(kind, 'this')} cannot be used in a condition", at)

    def select(self, tree: Any, depth: int) -> Typed:
        names: list[str] = []
        at = _at(tree)
        while tree.data == "member_dot":
            names.insert(0, str(tree.children[1]))
            tree = _bare(tree.children[0])
        if tree.data == "ident":
            return self.name([str(tree.children[0]), *names], at, at)
        of = self.expr(tree, depth + 1)
        if of.type != "dyn":
            raise Wrong("E1105", f"no field `{names[0]}` on {_said(of.type)}", at)
        return Typed(_fields(of.node, names), "dyn", at)

    def name(self, names: list[str], at: int, here: int) -> Typed:
        if names[0] in self.variables:
            if len(names) > DEEPEST:
                raise Wrong("E1103", "too many fields in a row", at)
            return Typed(_fields(Var(names[0]), names[1:]), "dyn", at)
        full = ".".join(names)
        word = WORDS.get(full)
        if word is None:
            for cut in range(len(names) - 1, 0, -1):
                shorter = WORDS.get(".".join(names[:cut]))
                if shorter is not None:
                    raise Wrong("E1104", f"`{shorter.name}` has no field `{names[cut]}`", at)
            some = [name for name in WORDS if name.startswith(names[0] + ".")] or [*WORDS, "args"]
            listed = ", ".join(some) if names[0] in _ROOTS else ", ".join((*sorted(_ROOTS), "args"))
            listed = f"known are {listed}"
            raise Wrong("E1104", f"unknown name `{full}`", at, mean(full, some, listed))
        return Typed(Name(full), word.name if word.kind == "enum" else word.kind, here)

    def function(self, name: str, args: Sequence[Any], at: int, depth: int) -> Typed:
        if name == "has":
            target = _bare(args[0]) if len(args) == 1 else None
            if target is None or target.data != "member_dot":
                raise Wrong("E1105", "`has` wants one field, such as `has(args.x)`", at)
            made = self.select(target, depth)
            if isinstance(made.node, Field):
                return Typed(Has(made.node.of, made.node.name), "bool", at)
            if isinstance(made.node, Name) and WORDS[made.node.name].optional:
                return Typed(Present(made.node.name), "bool", at)
            what = self.text[made.at :].partition(")")[0]
            raise Wrong("E1107", f"`{what}` is always there", at, "leave out `has`")
        if name == "size":
            given = [self.expr(arg, depth + 1) for arg in args]
            return self.size(given, at)
        if name in _METHODS:
            raise Wrong("E1104", f"unknown function `{name}`", at, f"write it behind its subject: `x.{name}(…)`")
        raise Wrong("E1104", f"unknown function `{name}`", at, mean(name, ("has", "size"), "known are has and size"))

    def size(self, given: list[Typed], at: int) -> Typed:
        if len(given) != 1:
            raise Wrong("E1105", "`size` wants one value", at)
        if given[0].type not in ("string", "list", "dyn"):
            raise Wrong("E1105", f"`size` wants a string, list or map, not {_said(given[0].type)}", given[0].at)
        return Typed(Call("size", (given[0].node,)), "int", at)

    def method(self, tree: Any, depth: int) -> Typed:
        at, name = _at(tree), str(tree.children[1])
        args = tree.children[2].children if len(tree.children) > 2 else []
        if name not in _METHODS:
            where = tree.children[1].start_pos or at
            known = f"known are {', '.join(_METHODS)}"
            raise Wrong("E1104", f"unknown function `{name}`", where, mean(name, _METHODS, known))
        of = self.expr(tree.children[0], depth + 1)
        if name == "size":
            return self.size([of, *(self.expr(arg, depth + 1) for arg in args)], at)
        if name in ("exists", "all"):
            return self.every(of, args, name == "exists", at, depth)
        given = [self.expr(arg, depth + 1) for arg in args]
        if len(given) != 1 or of.type not in ("string", "dyn") or given[0].type not in ("string", "dyn"):
            raise Wrong("E1105", f"`{name}` is asked of a string, and wants one string", at)
        if name != "matches":
            return Typed(Call(name, (of.node, given[0].node)), "bool", at)
        pattern = given[0].node
        if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
            raise Wrong("E1109", "`matches` wants its pattern as a literal", given[0].at)
        try:
            Regex(pattern.value)
        except EarnestError as error:
            raise Wrong("E1109", error.message, given[0].at, "see the policy reference for what is supported") from None
        return Typed(Matches(of.node, pattern.value), "bool", at)

    def every(self, over: Typed, args: Sequence[Any], some: bool, at: int, depth: int) -> Typed:
        word = "exists" if some else "all"
        target = _bare(args[0]) if len(args) == 2 else None
        if target is None or target.data != "ident":
            raise Wrong("E1105", f"`{word}` wants a name and a condition, such as `args.to.{word}(x, x == 'a')`", at)
        if over.type not in ("list", "dyn"):
            raise Wrong("E1105", f"`{word}` is asked of a list, not {_said(over.type)}", over.at)
        var = str(target.children[0])
        if var in self.variables or var in _ROOTS:
            raise Wrong("E1105", f"`{var}` means something else already", _at(target), "choose another name")
        if len(self.variables) > 1:
            # Two loops in each other take the square of the argument's size, which is the caller's to choose.
            raise Wrong("E1105", f"`{word}` cannot stand inside another", at, "write two rules")
        self.variables.append(var)
        test = self.expr(args[1], depth + 1)
        self.variables.pop()
        _want_bool(test)
        return Typed(Every(over.node, var, test.node, some), "bool", at)


_LEAVES: Final = frozenset(("literal", "ident", "list_lit", "ident_arg", "dot_ident", "dot_ident_arg", "map_lit", "paren_expr"))
_UNUSED: Final = {
    "map_lit": "a map",
    "member_object": "an object",
    "dot_ident": "a leading dot",
    "dot_ident_arg": "a leading dot",
}


def _is_token(part: Any) -> bool:
    return not hasattr(part, "data")


def _at(tree: Any) -> int:
    return int(getattr(tree.meta, "start_pos", 0))


def _bare(tree: Any) -> Any:
    """What a chain of single children leads to; parentheses stay."""
    while len(tree.children) == 1 and tree.data not in _LEAVES and not _is_token(tree.children[0]):
        tree = tree.children[0]
    return tree


def _chain(tree: Any, kind: str) -> list[Any]:
    """The sides of `a || b || c`, in order."""
    sides: list[Any] = []
    while tree.data == kind and len(tree.children) == 2:
        sides.append(tree.children[1])
        tree = tree.children[0]
    return [tree, *reversed(sides)]


def _fields(node: Expr, names: Sequence[str]) -> Expr:
    for name in names:
        node = Field(node, name)
    return node


def _constant_type(node: Expr) -> str:
    if not isinstance(node, Const):
        return WORDS[node.name].name if isinstance(node, Name) and WORDS[node.name].kind == "enum" else "dyn"
    value = node.value
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "double", str: "string"}[type(value)]


def _pair(left: Typed, right: Typed) -> str:
    return f"{_said(left.type)} and {_said(right.type)}"


def _quote_hint(left: Typed, right: Typed) -> str:
    if {left.type, right.type} == {"bool", "string"}:
        for one in (left, right):
            if isinstance(one.node, Const) and one.node.value in ("true", "false"):
                return f"write {one.node.value} without quotes"
    return ""


_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_PLAIN: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "'": "'", "\\": "\\", "`": "`", "?": "?",
}  # fmt: skip


def _literal(token: Any) -> Typed:
    text, at = str(token), int(token.start_pos or 0)
    match token.type:
        case "BOOL_LIT":
            return Typed(Const(text == "true"), "bool", at)
        case "NULL_LIT":
            return Typed(Const(None), "null", at)
        case "INT_LIT":
            if len(text) > 1000:
                raise Wrong("E1105", "a number of more than 1000 digits", at)
            return Typed(Const(int(text, 16 if "0x" in text else 10)), "int", at)
        case "FLOAT_LIT":
            return Typed(Const(float(text)), "double", at)
        case "STRING_LIT" | "MLSTRING_LIT":
            return Typed(Const(_string(text, at)), "string", at)
        case "UINT_LIT":
            raise Wrong("E1105", f"`{text}`: there are no unsigned numbers here", at, f"write {text[:-1]}")
        case _:
            raise Wrong("E1105", "bytes cannot be compared with anything here", at, "write a string, without the b")


def _string(text: str, at: int) -> str:
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[width:-width]
    if raw:
        return body

    def one(found: re.Match[str]) -> str:
        *codes, octal, plain = found.groups()
        for code in codes:
            if code is not None:
                if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF:
                    raise Wrong("E1103", f"`{found.group()}` is no character", at)
                return chr(int(code, 16))
        if octal is not None:
            return chr(int(octal, 8))
        if plain not in _PLAIN:
            raise Wrong("E1103", f"`{found.group()}` is no escape", at, "write `\\\\` for a backslash, or r'…'")
        return _PLAIN[plain]

    return _ESCAPE.sub(one, body)
