"""Assays of a list of servers: how many claims are contradicted, how many mutating tools show an effect, what a tool costs.

    python bench/assay.py --real                    the seven servers of scripts/servers.toml
    python bench/assay.py --folder DIR              those of bench/assay_servers.toml, installed below DIR
    python bench/assay.py --liar                    the lying server and the honest one of the tests
    python bench/assay.py --table FILE…             the table of what --json kept of several runs

Prints a table as Markdown and, with --json FILE, keeps every report. A tool counts as mutating if its name has a verb that
changes things, or if it says it is not read-only; it shows an effect if a call of it changed something that is state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VERBS = {
    "create", "add", "write", "edit", "update", "delete", "remove", "move", "rename", "set", "append", "insert", "commit",
    "reset",
    "checkout", "copy", "apply", "merge", "complete", "clear", "drop", "save", "put", "push", "patch", "toggle", "archive",
    "log",
}  # fmt: skip


def mutating(tool: dict[str, Any]) -> bool:
    """Whether a tool is one that changes something, by its name or its own word."""
    words = set(tool["name"].lower().replace("-", "_").split("_"))
    claim = tool["hints"]["read_only"]["claimed"]
    return claim is not True and (bool(words & VERBS) or claim is False)


def assay(command: list[str], more: list[str], limit: float) -> dict[str, Any]:
    """One report; an error as `{"error": …}`."""
    with tempfile.TemporaryDirectory() as home:
        bound = ["--time-limit", str(max(limit - 60.0, 1.0))]
        line = [sys.executable, "-m", "earnest", "assay", "--json", *bound, *more, "--", *command]
        try:
            done = subprocess.run(line, cwd=home, capture_output=True, text=True, timeout=limit)
            return dict(json.loads(done.stdout))
        except (ValueError, subprocess.TimeoutExpired) as error:
            return {"error": {"message": str(error)[:200]}}


def row(name: str, report: dict[str, Any]) -> str:
    """A line of the table."""
    if "error" in report:
        return f"| {name} | {report['error']['message'][:80]} | | | | | |"
    tools = report["tools"]
    words = Counter(found["verdict"] for tool in tools for found in tool["hints"].values())
    changing = [tool for tool in tools if mutating(tool)]
    shown = sum(bool(tool["effective_calls"]) for tool in changing)
    reached = sum(bool(tool["answered"]) for tool in tools)
    each = report["cpu_seconds"] / max(len(tools), 1)
    return (
        f"| {name} | {len(tools)} | {reached} | {shown} of {len(changing)} | {words['CONTRADICTED']} / {words['SOFT']} "
        f"| {each:.1f} | {report['seconds']:.0f} |"
    )


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a report: counts, and the tools that show no effect or are contradicted."""
    if "error" in report:
        return {"error": report["error"]["message"]}
    tools = report["tools"]
    found = {key: report[key] for key in ("tier", "seconds", "cpu_seconds", "sessions")}
    found |= {"tools": len(tools), "reached": sum(bool(tool["answered"]) for tool in tools)}
    found["mutating"] = {tool["name"]: tool["effective_calls"] for tool in tools if mutating(tool)}
    for word in ("CONTRADICTED", "SOFT"):
        found[word.lower()] = [
            f"{tool['name']}: {hint}" for tool in tools for hint, said in tool["hints"].items() if said["verdict"] == word
        ]
    return found


def servers(arguments: argparse.Namespace) -> dict[str, tuple[list[str], list[str]]]:
    """Commands and options, by name."""
    if arguments.liar:
        folder = ROOT / "tests" / "servers"
        return {name: ([sys.executable, "-S", str(folder / f"{name}.py")], []) for name in ("liar", "liar_honest")}
    found: dict[str, tuple[list[str], list[str]]] = {}
    if arguments.real:
        for name, pin in tomllib.loads((ROOT / "scripts" / "servers.toml").read_text()).items():
            place = "npm/node_modules/.bin" if "npm" in pin else f"{pin['venv']}/bin"
            words = [word.replace("{folder}", "/tmp/folder") for word in pin.get("args", [])]
            found[name] = ([str(ROOT / ".servers" / place / pin["program"]), *words], [])
    if arguments.folder:
        for name, one in tomllib.loads((ROOT / "bench" / "assay_servers.toml").read_text()).items():
            words = [word.replace("{folder}", str(arguments.folder)) for word in one["command"]]
            found[name] = (words, one.get("options", []))
    return {name: one for name, one in found.items() if not arguments.only or name in arguments.only}


def main() -> None:
    """Run them one after the other and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--liar", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", nargs="*", type=Path, default=())
    parser.add_argument("--tier", default="", help="A or B")
    parser.add_argument("--results", type=Path, help="where a summary is kept")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one server")
    arguments = parser.parse_args()
    chosen = servers(arguments)
    if not chosen and not arguments.table:
        parser.error("say which servers: --real, --liar or --folder DIR")
    reports: dict[str, Any] = {}
    for path in arguments.table:
        reports |= json.loads(path.read_text())
    print("| server | tools | reached | mutating tools with effect | contradicted / soft | CPU s a tool | wall s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    began = time.monotonic()
    for name in reports:
        print(row(name, reports[name]))
    tier = ["--tier", arguments.tier] if arguments.tier else []
    for name, (command, more) in chosen.items():
        reports[name] = assay(command, ["--jobs", "2", *tier, *more], arguments.limit)
        print(row(name, reports[name]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(reports, indent=1))
    good = [report for report in reports.values() if "error" not in report]
    changing = [tool for report in good for tool in report["tools"] if mutating(tool)]
    shown = sum(bool(tool["effective_calls"]) for tool in changing)
    print(f"\n{shown} of {len(changing)} mutating tools show an effect ({100 * shown // max(len(changing), 1)} %), ", end="")
    print(f"{len(good)} servers, {time.monotonic() - began:.0f} s")
    if arguments.results:
        arguments.results.write_text(json.dumps({name: summary(report) for name, report in reports.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
