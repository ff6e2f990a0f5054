"""What a decision with value provenance costs, and whether it grows with what the conversation has read.

    python bench/flow/decide.py [--calls 10000]

One conversation of so many calls; each reads a stranger's mail of a hundred words, and every call with effect is judged by
the user's words, trusted values and all that was read. Prints one line of JSON: microseconds of this thread's CPU, medians
over all, over the first and the last tenth of each, for calls that pass and that ask; what it takes to take in a result; the
memory that the conversation's values take; and the call from which on, that being used up, what used to pass asks (`full`).
The figure to hold is a median of 200 µs, the last tenth like the first.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from earnest import Guard  # noqa: E402

LABELS = {
    "read_inbox": {
        "read_only": True,
        "open_world": True,
        "reads_private": True,
        "sees_untrusted": True,
        "can_exfiltrate": False,
    },
    "send_mail": {
        "read_only": False,
        "destructive": False,
        "open_world": True,
        "reads_private": False,
        "sees_untrusted": False,
        "can_exfiltrate": True,
        "arg_roles": {"to": "destination", "subject": "content", "body": "content"},
    },
}
BODY = "Dear Ann, here is what came in today, in short. Nothing needs an answer before Monday. Best, me"
WORDS = [f"word{number}" for number in range(5000)]


def measured(calls: int) -> dict[str, object]:
    """One conversation."""
    chance = random.Random(7)
    guard = Guard(labels=LABELS)
    guard.user("Read my inbox and mail a summary to ann@corp.example")
    passed: list[int] = []
    asked: list[int] = []
    taken: list[int] = []
    full: list[int] = []
    clock = time.thread_time_ns
    for number in range(calls):
        mail = {
            "id": number,
            "sender": f"x{number}@evil.example",
            "subject": f"About {number}",
            "body": " ".join(chance.choices(WORDS, k=100)),
        }
        guard.decide("read_inbox", {})
        start = clock()
        guard.observe("read_inbox", [mail])
        taken.append(clock() - start)
        start = clock()
        verdict = guard.decide("send_mail", {"to": ["ann@corp.example"], "subject": "Today", "body": BODY}).verdict
        spent = clock() - start
        if verdict == "allow":
            passed.append(spent)
        else:
            full.append(number)
            asked.append(spent)
        start = clock()
        guard.decide("send_mail", {"to": [f"x{number}@evil.example"], "subject": "Today", "body": BODY})
        asked.append(clock() - start)

    def us(values: list[int]) -> dict[str, float]:
        part = max(1, len(values) // 10)
        parts = {"all": values, "first": values[:part], "last": values[-part:]}
        return {name: round(statistics.median(some) / 1000, 1) for name, some in parts.items()}

    return {"pass": us(passed), "ask": us(asked), "take_in": us(taken), "full": full[0] if full else None}


def memory(calls: int) -> float:
    """MiB that the values of such a conversation take."""
    chance = random.Random(7)
    guard = Guard(labels=LABELS)
    tracemalloc.start()
    for number in range(calls):
        guard.observe(
            "read_inbox", [{"id": number, "sender": f"x{number}@evil.example", "body": " ".join(chance.choices(WORDS, k=100))}]
        )
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return round(used / 1024 / 1024, 2)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    given = parser.parse_args()
    print(json.dumps({"calls": given.calls, "unit": "us", **measured(given.calls), "memory_mib": memory(given.calls)}))


if __name__ == "__main__":
    main()
