"""Cases of flow as data: what a user said, what was read, and which calls may then run unasked.

Each file in `cases/` is one server: its tools with their labels, and cases of steps. `seen` is a call that ran with its result;
`call` is one that is judged, with `allow` or `stop` (asked or denied) as the right answer; `conversation` starts another one.
"""

import json
from pathlib import Path

import pytest

from earnest import Guard

FILES = sorted((Path(__file__).parent / "cases").glob("*.json"))
SERVERS = [json.loads(path.read_text("utf-8")) for path in FILES]
CASES = [(server, case) for server in SERVERS for case in server["cases"]]


@pytest.mark.parametrize("server, case", CASES, ids=[f"{server['server']}: {case['name']}" for server, case in CASES])
def test_a_call_is_judged_by_whose_its_values_are(server, case):
    guard = Guard(labels=server["tools"])
    for step in case["steps"]:
        if "user" in step:
            guard.user(step["user"])
        elif "conversation" in step:
            guard = guard.conversation()
        elif "seen" in step:
            guard.decide(step["seen"], step["args"])
            guard.observe(step["seen"], step["result"])
        else:
            decided = guard.decide(step["call"], step["args"])
            right = decided.verdict == "allow" if step["expect"] == "allow" else decided.verdict in ("ask", "deny")
            assert right, (step, decided.verdict, [reason.text for reason in decided.reasons])
            if decided.verdict != "allow":
                assert decided.reasons and decided.remedies
            if "result" in step:
                guard.observe(step["call"], step["result"])


def test_there_are_sixty_cases_over_a_dozen_servers_each_kind_with_benign_twins():
    kinds = {case["about"] for _, case in CASES}
    assert len(CASES) >= 60 and len(SERVERS) >= 12
    assert kinds >= {
        "general tools",
        "pasted",
        "payload",
        "poisoned memory",
        "code execution",
        "persistence",
        "secrets",
        "priority",
        "recipients",
    }
    assert kinds >= {"language", "encodings", "benign"}
    benign = [case for _, case in CASES if all(step.get("expect") != "stop" for step in case["steps"])]
    assert len(benign) >= 20
