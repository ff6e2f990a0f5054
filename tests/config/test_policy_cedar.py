"""The verdict of a policy is the same by its rules, by its table, and in Cedar. `bench/policies.py` holds it for more."""

import collections

from config.cedar import Difference, differences
from earnest.core.verdict import Verdict
from properties import examples


def test_the_rules_the_table_and_cedar_say_the_same() -> None:
    seen: collections.Counter[Verdict] = collections.Counter()
    for found in differences(examples(2000), seed=20, each=25):
        assert not isinstance(found, Difference), found
        seen[found] += 1
    assert min(seen[verdict] for verdict in Verdict) > 100
