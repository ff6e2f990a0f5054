# ruff: noqa: E501 (the page has long lines, and so has what it is made of)
"""Makes docs/faults.md from the tables of this folder and the findings of the commands: `python tests/faults/page.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "faults.md"
FINDINGS = ROOT / "bench" / "results" / "faults.json"

HEAD = """# Faults and attack

What earnest does with bytes that are wrong, or that two programs could read in two ways, and what it withstands under load. The tables are the ones that the tests run
(`tests/faults`), in both eras unless a row says else; this page is made by `python tests/faults/page.py` and a test holds it to them.

For every row a test holds: the answer, what becomes of the connection, how many calls reach the server, that a client who calls all the while notices nothing; and of each call that
reaches a server, that name, arguments, method and `Mcp-*` headers, as a second program reads them there, are those in its receipt. What is not a call never reaches a server.

"Kept": an honest call on the same connection is answered. "Closed": the answer is the last word on the connection.

## Requests

HTTP in the listener's hands (RFC 9112, RFC 9110). A number alone is the HTTP status, one in brackets the JSON-RPC code.

| request | answers | connection | calls |
|---|---|---|---|
"""

BODIES = """
## Bodies and lines

The same as the body of a POST and, but for a few, as a line of a pipe through the shim (`tests/faults/test_lines.py`), where the JSON-RPC code is the same and there is no status. A NUL in a pipe
ends that client, with exit code 2 and E1301. "Denied" is a tool's result that says the call was not run; it has a receipt.

| body | modern | legacy |
|---|---|---|
"""

FIELDS = """
## Headers that contradict the body

2026-07-28 ("Streamable HTTP"): who reads the body refuses a request whose `MCP-Protocol-Version`, `Mcp-Method` or `Mcp-Name` does not repeat it. In 2025-11-25 `Mcp-Method` and `Mcp-Name` have no
meaning, so a server must not refuse a request for them; earnest drops them. To a server of either era only headers go that were made from the body, and `forward_headers` takes none of them (E1238).
Where a proxy in front decides by these headers, let it drop them unless the version is 2026-07-28, or serve modern clients alone through it.

| headers | modern | legacy |
|---|---|---|
"""

ANSWERS = """
## Answers of servers

`ok`: the client has the server's result. Any other word is the receipt's outcome: the client is told that there is no result and that the call may have taken effect, never a part of one, and the
call is not sent again. "Kept": the connection to the server is used again.

| answer | outcome | connection |
|---|---|---|
"""


def _due(due: int | tuple[int, int]) -> str:
    return str(due) if isinstance(due, int) else f"{due[0]} ({due[1]})"


def _said(code: int, status: int) -> str:
    return "call" if code == 0 and status == 200 else "denied" if code == 1 else f"{status} ({code})" if code else str(status)


def _answers(answers: tuple[int | tuple[int, int], ...]) -> str:
    if len(answers) > 3:
        return f"{len(answers) - 1} × {_due(answers[0])}, then {_due(answers[-1])}"
    return ", then ".join(map(_due, answers)) or "none"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(found: dict[str, Any], rows: dict[str, str]) -> str:
    lines = [f"| {label} | {found[key]} |" for key, label in rows.items() if key in found]
    return "| | |\n|---|---|\n" + "\n".join(lines) + "\n"


def figures(found: dict[str, Any]) -> str:
    """What the commands measured."""
    out = [
        "\n## Under load\n\nFigures of one run each; the machine and its load at the end stand with them. Ends with 1 where something does not hold.\n"
    ]
    for name, command, rows in (
        (
            "streams",
            "python bench/load.py streams",
            {
                "streams": "event streams held at once",
                "refused": "refused",
                "closed": "closed before their time",
                "bytes_each": "bytes of memory for each",
                "resident_mb": "MB of the daemon with all of them",
                "open_s": "seconds until all were open",
                "a_call_beside_ms": "ms for a call beside them",
            },
        ),
        (
            "calls",
            "python bench/load.py calls",
            {
                "calls": "calls",
                "rate": "calls a second",
                "done_wrong": "done wrong by the server",
                "answers": "answers",
                "reached": "reached the server",
                "receipts": "receipts",
                "outcomes": "their outcomes",
                "receipts_verify": "receipts verify",
                "p50_ms": "ms, median",
                "p99_ms": "ms, 99 of 100",
            },
        ),
        (
            "kills",
            "python bench/kills.py 50",
            {
                "kills": "times killed with SIGKILL",
                "verified": "times the chains verified after it",
                "calls": "calls",
                "became": "what clients were told (lost: no connection, or it broke)",
                "reached": "reached the server",
                "twice": "reached it twice",
                "without_a_decision": "reached it without a decision on record",
                "unanswered": "never answered on a pipe",
                "second_answers": "second answers on a pipe",
                "approved": "approvals given",
                "approved_ran": "calls they served",
                "ran_twice": "approvals that served two calls",
                "ran_unapproved": "calls that ran without theirs",
            },
        ),
        (
            "policies",
            "python bench/policies.py",
            {"states": "random states and policies", "differences": "differences between rules, table and Cedar"},
        ),
    ):
        if name not in found:
            continue
        one = found[name]
        where = (
            f"{one['date']}, {one['machine']['cpu']}, {one['machine']['cores']} cores, load {one['load']}"
            if "machine" in one
            else one.get("date", "")
        )
        told = {
            key: ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            for key, value in one.items()
        }
        told = {
            key: {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
            for key, value in told.items()
        }
        out.append(f"\n`{command}` ({where})\n\n{_table(told, rows)}")
    if "fuzz" in found:
        one = found["fuzz"]
        out.append(
            f"\n`scripts/fuzz --seconds {one['seconds_each']}` ({one['date']})\n\n| target | runs | branches | broken promises |\n|---|---|---|---|\n"
        )
        out += [f"| {name} | {t['runs']} | {t['covered']} | {t['crashes']} |\n" for name, t in one["targets"].items()]
    return "".join(out)


TAIL = """
A client over HTTP that was killed out of its answer sees its connection break: HTTP has no more to say, and the call is not sent again. A client on a pipe is answered by the next daemon: with an
error that says that the call may have taken effect.

A handle that a client makes up (`dev.earnest/conversation`) is a conversation of its own for the first 4096 of one user; what comes under further ones is judged by all labels of that client, and
labels all of them. `earnest conversation end` makes room.

## Fuzzing

`scripts/fuzz --seconds 60` runs a coverage-guided fuzzer (atheris) on each parser of bytes from outside, from the shapes above, and holds it to more than not failing: what one of earnest's
readings accepts, another program must read alike (`fuzz/targets.py`). Inputs that once broke a promise stay in `fuzz/regressions`, and the suite replays them.
"""


def page() -> str:
    """The whole page."""
    from faults.wire.answer_shapes import LIES
    from faults.wire.header_shapes import MISMATCHES
    from faults.wire.http_shapes import SHAPES
    from faults.wire.json_shapes import TEXTS

    out = [HEAD]
    out += [f"| {_cell(s.name)} | {_answers(s.answers)} | {s.fate} | {s.calls} |\n" for s in SHAPES]
    out.append(BODIES)
    out += [f"| {_cell(t.name)} | {_said(*t.due(True))} | {_said(*t.due(False))} |\n" for t in TEXTS]
    out.append(FIELDS)
    out += [f"| {m.name} | {_said(m.modern[1], m.modern[0])} | {_said(m.legacy[1], m.legacy[0])} |\n" for m in MISMATCHES]
    out.append(ANSWERS)
    out += [f"| {_cell(lie.name)} | {lie.outcome} | {'kept' if lie.kept else 'closed'} |\n" for lie in LIES]
    if FINDINGS.exists():
        out.append(figures(json.loads(FINDINGS.read_text())))
    out.append(TAIL)
    return "".join(out)


def main() -> None:
    """The command."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
