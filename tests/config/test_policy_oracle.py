"""Conditions mean what CEL says: our reading against an implementation in Rust, on text made up at random.

Left out is where we differ on purpose: integers do not overflow, integers and doubles mix in arithmetic, and types
that can never fit are refused when the policy is read.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from earnest.config.policy.findings import Wrong
from earnest.config.policy.lower import condition
from earnest.core.expr import ConditionError, evaluate
from earnest.core.fold import closure, fold
from properties import examples

cel = pytest.importorskip("cel")

strings = st.sampled_from(["''", "'a'", '"ab"', "r'a\\b'", "'\\n'", "'b'"])
integers = st.integers(-9, 9).map(lambda n: f"({n})" if n < 0 else str(n))
fields = st.sampled_from(["args.i", "args.s", "args.b", "args.l", "args.m", "args.m.k", "args.none", "args['s']", "args.l[0]"])


def _booleans(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(" ".join).map("({})".format),
        inner.map("!{}".format),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
    )


numbers = st.recursive(
    st.one_of(integers, st.sampled_from(["args.i", "args.l[1]", "size(args.s)", "args.l.size()", "args.none"])),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=4,
)
comparisons = st.one_of(
    st.tuples(numbers, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), numbers).map(" ".join),
    st.tuples(fields, st.sampled_from(["==", "!="]), st.one_of(strings, integers, fields)).map(" ".join),
    st.tuples(strings, st.sampled_from(["==", "!=", "<", ">="]), st.one_of(strings, st.just("args.s"))).map(" ".join),
    st.tuples(fields, st.sampled_from(["startsWith", "endsWith", "contains"]), strings).map(lambda t: f"{t[0]}.{t[1]}({t[2]})"),
    st.tuples(fields, st.sampled_from(["'^a'", "'b$'", "'a+b'", "'^[a-b]*$'"])).map(lambda t: f"{t[0]}.matches({t[1]})"),
    st.tuples(st.one_of(fields, integers, strings), st.sampled_from(["args.l", "[1, 2, 'a']", "args.m"])).map(" in ".join),
    st.sampled_from(["has(args.i)", "has(args.none)", "has(args.m.k)", "has(args.m.no)", "args.b", "true", "false"]),
    st.tuples(st.sampled_from(["exists", "all"]), st.sampled_from(["x == 1", "x > 0", "x in [1, 2]"])).map(
        lambda t: f"args.l.{t[0]}(x, {t[1]})"
    ),
).map("({})".format)
texts = st.recursive(comparisons, _booleans, max_leaves=4)
given_arguments = st.fixed_dictionaries(
    {
        "i": st.integers(-3, 3),
        "s": st.sampled_from(["", "a", "ab", "ba"]),
        "b": st.booleans(),
        "l": st.lists(st.integers(-1, 3), max_size=3),
        "m": st.dictionaries(st.sampled_from(["k", "a"]), st.sampled_from(["a", 1]), max_size=2),
    }
)


def ours(text: str, args: Any) -> object:
    node = condition(text)
    results = []
    for work in (lambda: evaluate(node, {}, {"args": args}), lambda: closure(fold(node, {}))({"args": args})):
        try:
            results.append(work())
        except ConditionError:
            results.append("error")
    assert results[0] == results[1]
    return results[0]


def theirs(text: str, args: Any) -> object:
    try:
        return cel.evaluate(text, {"args": args})
    except (ValueError, TypeError, RuntimeError, OverflowError, LookupError, ArithmeticError):
        return "error"


@settings(max_examples=examples(250), deadline=None)
@given(texts, given_arguments)
def test_a_condition_means_what_cel_says(text: str, args: dict[str, Any]) -> None:
    try:
        mine = ours(text, args)
    except Wrong:
        assume(False)
    assert mine == theirs(text, args), text
