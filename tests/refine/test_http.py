"""A safe method asks for no effect and is still a way out; every other may do anything."""

import pytest

from earnest.core.profile import Labels
from earnest.refine.http import HttpRule, look
from earnest.refine.refinement import WORST_LABELS

RULE = HttpRule("method")
LEAVES = {"open_world": True, "sees_untrusted": True, "can_exfiltrate": True}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "get"])
def test_a_safe_method_reads_and_leaves(method: str) -> None:
    assert look(RULE, {"method": method, "url": "https://x.example/"}).labels == Labels(read_only=True, **LEAVES)


@pytest.mark.parametrize("method", ["POST", "PATCH", "CONNECT", "TRACE", "PURGE", "post"])
def test_any_other_method_may_have_any_effect(method: str) -> None:
    assert look(RULE, {"method": method}).labels == Labels(False, True, False, **LEAVES)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_put_and_delete_say_nothing_of_repeating(method: str) -> None:
    assert look(RULE, {"method": method}).labels == Labels(False, True, None, **LEAVES)


@pytest.mark.parametrize("method", [None, "", 3, ["GET"], "GET ", "GET\r\nX: y", "GÉT", "ＧＥＴ", {"GET": 1}])
def test_what_is_no_method_is_worst(method: object) -> None:
    assert look(RULE, {"method": method}).labels == WORST_LABELS


def test_an_absent_method_is_the_documented_default_or_worst() -> None:
    assert look(RULE, {}).labels == WORST_LABELS
    assert look(HttpRule("method", default="GET", source="p:1"), {}).labels == Labels(read_only=True, source="p:1", **LEAVES)


@pytest.mark.parametrize(
    "others",
    [
        {"headers": {"X-HTTP-Method-Override": "DELETE"}},
        {"headers": [{"name": "x-http-method", "value": "DELETE"}]},
        {"headers": "X-Method-Override: DELETE"},
        {"url": "https://x.example/?_method=delete"},
        {"body": {"_method": "delete"}},
    ],
)
def test_an_override_elsewhere_makes_the_method_mean_nothing(others: dict[str, object]) -> None:
    assert look(RULE, {"method": "GET", **others}).labels == WORST_LABELS
