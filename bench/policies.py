"""Holds the verdicts of random policies to an outside oracle: rules evaluated directly, the compiled table, and Cedar.

    python bench/policies.py [--states 100000] [--seed 1] [--json]

How a policy is said in Cedar stands in tests/config/cedar.py. Ends with 1 and the first difference where there is one.
"""

import argparse
import collections
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000, help="how many states, a hundred for each policy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    said = parser.parse_args()

    from config.cedar import Difference, differences

    began, seen = time.monotonic(), collections.Counter[str]()
    for n, found in enumerate(differences(said.states, said.seed)):
        if isinstance(found, Difference):
            print(f"{found.state}\n{found.policy.ours}\n{found.policy.theirs}", file=sys.stderr)
            print(f"rules {found.reference.name}, table {found.table.name}, Cedar {found.cedar.name}", file=sys.stderr)
            return 1
        seen[found.name.lower()] += 1
        if sys.stderr.isatty() and n % 5000 == 0:
            print(f"\r{n} states", end="", file=sys.stderr)
    result = {"states": said.states, "differences": 0, **seen, "seed": said.seed, "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps(result) if said.json else "\n".join(f"{name:12} {value}" for name, value in result.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
