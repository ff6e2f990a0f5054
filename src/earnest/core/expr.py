"""Conditions: a typed expression tree, what it means, and how it becomes a closure.

Theory. A condition is a tree of the frozen nodes below; `config.policy` makes it from CEL text and has
checked its names and types. It has one meaning, given by `evaluate`. For speed the same meaning is reached
in two steps: `fold` puts in everything that is known ahead (a tool's facts, then the flow bits) and
simplifies; `closure` turns what is left, which speaks of arguments only, into nested Python functions. A
property holds the two ways equal.

Where a condition cannot be evaluated (a field that is not there, a string compared by `<` with a number) it
*errs*: it raises `ConditionError`. As in CEL, `&&` and `||` take a side that settles the result over an
error in the other: `false && error` is false. What an error means for a rule is decided in `policy`: matched
in ask and deny, unmatched in allow.

Numbers are JSON's: an integer is exact whatever its size, anything with a point or exponent is a double; the
two compare by value. A boolean is never a number. Values of different kinds are unequal; ordering them errs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.regex import Regex, glob

Scope: TypeAlias = Mapping[str, Any]
Closure: TypeAlias = Callable[[Scope], Any]


class ConditionError(EarnestError):
    """A condition that has no value for this call."""

    def __init__(self, message: str) -> None:
        super().__init__("E1110", message)


class Const(msgspec.Struct, frozen=True):
    """A known value: None, bool, int, float, str or a tuple of such."""

    value: Any


class Fail(msgspec.Struct, frozen=True):
    """A part already known to err."""

    message: str


class Name(msgspec.Struct, frozen=True):
    """A typed name of `vocabulary.WORDS`."""

    name: str


class Present(msgspec.Struct, frozen=True):
    """`has` of an optional typed name."""

    name: str


class Var(msgspec.Struct, frozen=True):
    """`args`, or the variable of an `exists` or `all`."""

    name: str


class Field(msgspec.Struct, frozen=True):
    """`of.name` on dynamic data."""

    of: Expr
    name: str


class Has(msgspec.Struct, frozen=True):
    """`has(of.name)` on dynamic data; errs where `of` does."""

    of: Expr
    name: str


class Index(msgspec.Struct, frozen=True):
    """`of[key]`: a list by integer, a map by string."""

    of: Expr
    key: Expr


class Not(msgspec.Struct, frozen=True):
    """`!of`."""

    of: Expr


class Negate(msgspec.Struct, frozen=True):
    """`-of`."""

    of: Expr


class Binary(msgspec.Struct, frozen=True):
    """`op` is one of `BINARY`."""

    op: str
    left: Expr
    right: Expr


class And(msgspec.Struct, frozen=True):
    """All of them; one that is false wins over errors in the others."""

    of: tuple[Expr, ...]


class Or(msgspec.Struct, frozen=True):
    """Any of them; one that is true wins over errors in the others."""

    of: tuple[Expr, ...]


class If(msgspec.Struct, frozen=True):
    """`test ? then : otherwise`; only the chosen side is looked at."""

    test: Expr
    then: Expr
    otherwise: Expr


class ListOf(msgspec.Struct, frozen=True):
    """A list literal."""

    of: tuple[Expr, ...]


class Call(msgspec.Struct, frozen=True):
    """A function of `CALLS` on evaluated arguments."""

    name: str
    args: tuple[Expr, ...]


class Matches(msgspec.Struct, frozen=True):
    """`of.matches(pattern)`. The pattern is a literal that compiles."""

    of: Expr
    pattern: str


class Every(msgspec.Struct, frozen=True):
    """`over.all(var, test)`, or with `some` `over.exists(var, test)`."""

    over: Expr
    var: str
    test: Expr
    some: bool


Expr: TypeAlias = (
    Const
    | Fail
    | Name
    | Present
    | Var
    | Field
    | Has
    | Index
    | Not
    | Negate
    | Binary
    | And
    | Or
    | If
    | ListOf
    | Call
    | Matches
    | Every
)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def kind(value: Any) -> str:
    """The CEL-like name of a value's kind, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    return "map" if isinstance(value, Mapping) else "list"


def equal(left: Any, right: Any) -> bool:
    """Equality by value; kinds that differ are unequal, numbers compare exactly across int and double."""
    if _number(left) or _number(right):
        return _number(left) and _number(right) and left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    return type(left) is type(right) and bool(left == right)


def _less(left: Any, right: Any) -> bool:
    if (_number(left) and _number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return bool(left < right)
    raise ConditionError(f"cannot order {kind(left)} and {kind(right)}")


def _member(item: Any, of: Any) -> bool:
    if isinstance(of, Mapping):
        if not isinstance(item, str | int):
            raise ConditionError(f"a map has no key that is a {kind(item)}")
        return isinstance(item, str) and item in of
    if isinstance(of, list | tuple):
        return any(equal(item, one) for one in of)
    raise ConditionError(f"`in` wants a list or a map, not {kind(of)}")


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return (*left, *right)
    return _arithmetic(left, right, lambda a, b: a + b)


def _arithmetic(left: Any, right: Any, how: Callable[[Any, Any], Any]) -> Any:
    if not (_number(left) and _number(right)):
        raise ConditionError(f"cannot calculate with {kind(left)} and {kind(right)}")
    try:
        result = how(left, right)
    except (ArithmeticError, ValueError) as error:
        raise ConditionError(f"cannot calculate: {error}") from None
    if result != result:
        raise ConditionError("the result is not a number")
    return result


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)  # CEL rounds towards zero
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)  # the sign of the dividend, as in CEL
        return -rest if left < 0 else rest
    raise ConditionError("`%` wants integers")


BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": _less,
    ">": lambda a, b: _less(b, a),
    "<=": lambda a, b: not _less(b, a),
    ">=": lambda a, b: not _less(a, b),
    "in": _member,
    "+": _add,
    "-": lambda a, b: _arithmetic(a, b, lambda x, y: x - y),
    "*": lambda a, b: _arithmetic(a, b, lambda x, y: x * y),
    "/": lambda a, b: _arithmetic(a, b, _divide),
    "%": lambda a, b: _arithmetic(a, b, _remainder),
}
_BOOLEAN_OPERATORS: Final = frozenset(("==", "!=", "<", ">", "<=", ">=", "in"))


def _size(value: Any) -> int:
    if isinstance(value, str | list | tuple | Mapping):
        return len(value)
    raise ConditionError(f"size() wants a string, list or map, not {kind(value)}")


def _text(how: Callable[[str, str], bool]) -> Callable[..., bool]:
    def call(value: Any, other: Any) -> bool:
        if not (isinstance(value, str) and isinstance(other, str)):
            raise ConditionError(f"wants two strings, not {kind(value)} and {kind(other)}")
        return how(value, other)

    return call


CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "size": _size,
    "startsWith": _text(str.startswith),
    "endsWith": _text(str.endswith),
    "contains": _text(str.__contains__),
    "glob": _text(lambda text, pattern: glob(pattern, text)),
    "mcp": lambda server, tool: f"mcp__{server}__{tool}",
}
"""Functions by name. `glob(text, pattern)` and `mcp(server, tool)` come from lists, not from CEL."""
_BOOLEAN_CALLS: Final = frozenset(("startsWith", "endsWith", "contains", "glob"))


def truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ConditionError(f"a condition is true or false, not {kind(value)}")


def field(of: Any, name: str) -> Any:
    if not isinstance(of, Mapping):
        raise ConditionError(f"no field `{name}` on {kind(of)}")
    if name not in of:
        raise ConditionError(f"no field `{name}`")
    return of[name]


def has_field(of: Any, name: str) -> bool:
    if not isinstance(of, Mapping):
        raise ConditionError(f"no field `{name}` on {kind(of)}")
    return name in of


def index(of: Any, key: Any) -> Any:
    if isinstance(of, Mapping) and isinstance(key, str):
        return field(of, key)
    if isinstance(of, list | tuple) and isinstance(key, int) and not isinstance(key, bool):
        if 0 <= key < len(of):
            return of[key]
        raise ConditionError(f"index {key} is outside a list of {len(of)}")
    raise ConditionError(f"cannot index {kind(of)} by {kind(key)}")


def negate(value: Any) -> Any:
    if not _number(value):
        raise ConditionError(f"cannot negate {kind(value)}")
    return -value


def entries(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | Mapping):
        return list(value)
    raise ConditionError(f"wants a list or map, not {kind(value)}")


def _settle(parts: Iterator[Callable[[], Any]], winner: bool) -> bool:
    """`||` for `winner` true, `&&` for false: the winner ends it, an error counts only if nobody wins."""
    failed: ConditionError | None = None
    for part in parts:
        try:
            if truth(part()) is winner:
                return winner
        except ConditionError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not winner


def evaluate(node: Expr, names: Mapping[str, Any], scope: Scope) -> Any:
    """The meaning of a condition: typed names from `names` (None for an absent optional one), `args` in
    `scope`.

    Raises `ConditionError`. This is the reference; the data path uses `fold` and `closure`.
    """
    match node:
        case Const(value):
            return value
        case Fail(message):
            raise ConditionError(message)
        case Name(name):
            if names[name] is None:
                raise ConditionError(f"`{name}` is not set")
            return names[name]
        case Present(name):
            return names[name] is not None
        case Var(name):
            return scope[name]
        case Field(of, name):
            return field(evaluate(of, names, scope), name)
        case Has(of, name):
            return has_field(evaluate(of, names, scope), name)
        case Index(of, key):
            return index(evaluate(of, names, scope), evaluate(key, names, scope))
        case Not(of):
            return not truth(evaluate(of, names, scope))
        case Negate(of):
            return negate(evaluate(of, names, scope))
        case Binary(op, left, right):
            return BINARY[op](evaluate(left, names, scope), evaluate(right, names, scope))
        case And(parts) | Or(parts):
            return _settle(
                (lambda part=part: evaluate(part, names, scope) for part in parts),  # type: ignore[misc]
                isinstance(node, Or),
            )
        case If(test, then, otherwise):
            return evaluate(then if truth(evaluate(test, names, scope)) else otherwise, names, scope)
        case ListOf(items):
            return tuple(evaluate(item, names, scope) for item in items)
        case Call(name, args):
            return CALLS[name](*(evaluate(arg, names, scope) for arg in args))
        case Matches(of, pattern):
            return matches(Regex(pattern), evaluate(of, names, scope))
        case Every(over, var, test, some):
            return _settle(
                (
                    lambda item=item: evaluate(test, names, {**scope, var: item})  # type: ignore[misc]
                    for item in entries(evaluate(over, names, scope))
                ),
                some,
            )


def matches(regex: Regex, value: Any) -> bool:
    if not isinstance(value, str):
        raise ConditionError(f"matches() wants a string, not {kind(value)}")
    return regex.search(value)


def is_boolean(node: Expr) -> bool:
    """Whether a node, where it has a value at all, has a boolean one."""
    match node:
        case Const(value):
            return isinstance(value, bool)
        case Fail() | Present() | Has() | Not() | And() | Or() | Matches() | Every():
            return True
        case Binary(op):
            return op in _BOOLEAN_OPERATORS
        case Call(name):
            return name in _BOOLEAN_CALLS
        case If(_, then, otherwise):
            return is_boolean(then) and is_boolean(otherwise)
        case _:
            return False


def children(node: Expr) -> tuple[Expr, ...]:
    """The direct parts of a node, in order."""
    match node:
        case Field(of) | Has(of) | Not(of) | Negate(of) | Matches(of):
            return (of,)
        case Index(of, key):
            return (of, key)
        case Binary(_, left, right):
            return (left, right)
        case And(parts) | Or(parts) | ListOf(parts):
            return parts
        case If(test, then, otherwise):
            return (test, then, otherwise)
        case Call(_, args):
            return args
        case Every(over, _, test):
            return (over, test)
        case _:
            return ()


def walk(node: Expr) -> Iterator[Expr]:
    """A node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def names_in(node: Expr) -> frozenset[str]:
    """The typed names a condition mentions."""
    return frozenset(part.name for part in walk(node) if isinstance(part, Name | Present))


def reads_arguments(node: Expr) -> bool:
    """Whether the arguments have to be parsed for this."""
    return any(isinstance(part, Var) for part in walk(node))
