"""From a condition to what is left of it: `fold` puts in what is known, `closure` makes the rest callable.

See `expr` for what conditions mean; nothing here may change that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earnest.core.expr import (
    BINARY,
    CALLS,
    And,
    Binary,
    Call,
    Closure,
    ConditionError,
    Const,
    Every,
    Expr,
    Fail,
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
    Scope,
    Var,
    children,
    entries,
    evaluate,
    field,
    has_field,
    index,
    is_boolean,
    matches,
    negate,
    truth,
)
from earnest.core.regex import Regex


def fold(node: Expr, names: Mapping[str, Any]) -> Expr:
    """The same condition with the given names put in, and simplified. Names that are not given stay.

    Never raises; a part that must err becomes `Fail`.
    """
    match node:
        case Const() | Fail() | Var():
            return node
        case Name(name):
            if name not in names:
                return node
            return Fail(f"`{name}` is not set") if names[name] is None else Const(names[name])
        case Present(name):
            return Const(names[name] is not None) if name in names else node
        case And(parts) | Or(parts):
            return _fold_logic(parts, names, isinstance(node, Or))
        case If(test, then, otherwise):
            test = fold(test, names)
            if isinstance(test, Fail):
                return test
            if isinstance(test, Const):
                if not isinstance(test.value, bool):
                    return _now(Not(test))
                return fold(then if test.value else otherwise, names)
            return If(test, fold(then, names), fold(otherwise, names))
        case Every(over, var, test, some):
            folded = Every(fold(over, names), var, fold(test, names), some)
            if isinstance(folded.over, Fail):
                return folded.over
            # Over a known list and a test that speaks of nothing but its variable, the answer is known.
            return _now(folded) if isinstance(folded.over, Const) and _only(folded.test, var) else folded
        case Field(of, name):
            return _strict(Field(fold(of, names), name))
        case Has(of, name):
            return _strict(Has(fold(of, names), name))
        case Index(of, key):
            return _strict(Index(fold(of, names), fold(key, names)))
        case Not(of):
            return _strict(Not(fold(of, names)))
        case Negate(of):
            return _strict(Negate(fold(of, names)))
        case Binary(op, left, right):
            return _strict(Binary(op, fold(left, names), fold(right, names)))
        case ListOf(items):
            return _strict(ListOf(tuple(fold(item, names) for item in items)))
        case Call(name, args):
            return _strict(Call(name, tuple(fold(arg, names) for arg in args)))
        case Matches(of, pattern):
            return _strict(Matches(fold(of, names), pattern))


def _strict(node: Expr) -> Expr:
    """Fold a node all of whose parts are evaluated: known if they all are, failed if one is and it comes
    first."""
    parts = children(node)
    for part in parts:
        if isinstance(part, Fail):
            return part
    return _now(node) if all(isinstance(part, Const) for part in parts) else node


def _now(node: Expr) -> Expr:
    try:
        return Const(evaluate(node, {}, {}))
    except ConditionError as error:
        return Fail(error.message)


def _only(node: Expr, var: str) -> bool:
    """Whether nothing but constants and `var` is in it."""
    if isinstance(node, Var):
        return node.name == var
    return not isinstance(node, Name | Present) and all(_only(part, var) for part in children(node))


def _fold_logic(parts: tuple[Expr, ...], names: Mapping[str, Any], winner: bool) -> Expr:
    left: list[Expr] = []
    for part in parts:
        part = fold(part, names)
        if isinstance(part, Const):
            if part.value is winner:
                return part
            if part.value is (not winner):
                continue
            part = Fail("a condition is true or false")
        left.append(part)
    if not left:
        return Const(not winner)
    if all(isinstance(part, Fail) for part in left):
        return left[0]
    if len(left) == 1 and is_boolean(left[0]):
        return left[0]
    return Or(tuple(left)) if winner else And(tuple(left))


def closure(node: Expr) -> Closure:
    """A function of the scope (`{"args": …}`) with the meaning of `node`, in which no typed name is left.

    Raises `ConditionError` when called, as `evaluate` would. Raises `KeyError` here if a typed name is left.
    """
    match node:
        case Const(value):
            return lambda scope: value
        case Fail(message):

            def fail(scope: Scope) -> Any:
                raise ConditionError(message)

            return fail
        case Name(name) | Present(name):
            raise KeyError(name)
        case Var(name):
            return lambda scope: scope[name]
        case Field(of, name):
            inner = closure(of)
            return lambda scope: field(inner(scope), name)
        case Has(of, name):
            inner = closure(of)
            return lambda scope: has_field(inner(scope), name)
        case Index(of, key):
            inner, at = closure(of), closure(key)
            return lambda scope: index(inner(scope), at(scope))
        case Not(of):
            inner = closure(of)
            return lambda scope: not truth(inner(scope))
        case Negate(of):
            inner = closure(of)
            return lambda scope: negate(inner(scope))
        case Binary(op, left, right):
            how, one, two = BINARY[op], closure(left), closure(right)
            return lambda scope: how(one(scope), two(scope))
        case And(parts) | Or(parts):
            return _logic(tuple(closure(part) for part in parts), isinstance(node, Or))
        case If(test, then, otherwise):
            condition, yes, no = closure(test), closure(then), closure(otherwise)
            return lambda scope: yes(scope) if truth(condition(scope)) else no(scope)
        case ListOf(items):
            made = tuple(closure(item) for item in items)
            return lambda scope: tuple(item(scope) for item in made)
        case Call(name, args):
            function, given = CALLS[name], tuple(closure(arg) for arg in args)
            return lambda scope: function(*[arg(scope) for arg in given])
        case Matches(of, pattern):
            regex, inner = Regex(pattern), closure(of)
            return lambda scope: matches(regex, inner(scope))
        case Every(over, var, test, some):
            source, holds = closure(over), closure(test)
            return lambda scope: _over(entries(source(scope)), holds, scope, var, some)


def _logic(parts: tuple[Closure, ...], winner: bool) -> Closure:
    def settle(scope: Scope) -> bool:
        failed: ConditionError | None = None
        for part in parts:
            try:
                if truth(part(scope)) is winner:
                    return winner
            except ConditionError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not winner

    return settle


def _over(items: list[Any], holds: Closure, scope: Scope, var: str, winner: bool) -> bool:
    failed: ConditionError | None = None
    for item in items:
        try:
            if truth(holds({**scope, var: item})) is winner:
                return winner
        except ConditionError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not winner
