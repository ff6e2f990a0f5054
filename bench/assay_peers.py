"""The same servers by `earnest assay`, `mcp-groundtruth`, `mcp-ztgateway`: what each finds, falsely accuses and cannot judge.

    python bench/assay_peers.py --folder DIR [--only liar …] [--results FILE]

The peers are installed below DIR, each in an environment of its own, in the versions named here, if they are not there. What a
peer wants to know is told it from what `earnest assay init` writes: arguments for each tool, and the fixture's files as the
state that each session begins with. A lie counts as caught where the hint that is false is contradicted (SOFT is counted by
itself), an accusation as false where a true claim is. Published servers are taken to be true in what they claim.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SERVERS = ROOT / "tests" / "servers"
PEERS = {"groundtruth": "mcp-groundtruth==0.3.0", "ztgateway": "mcp-ztgateway==0.5.2"}
HINTS = {"READ_ONLY": "read_only", "DESTRUCTIVE": "destructive", "IDEMPOTENCE": "idempotent", "OPEN_WORLD": "open_world"}


def lies() -> dict[str, str]:
    """The false hint of each lying tool."""
    return dict(runpy.run_path(str(SERVERS / "liar_lies.py"))["LIES"])


def commands() -> dict[str, list[str]]:
    """The servers, by name."""
    python = [sys.executable, "-S"]
    found = {name: [*python, str(SERVERS / f"{name}.py")] for name in ("liar", "liar_honest")}
    for name, pin in tomllib.loads((ROOT / "scripts" / "servers.toml").read_text()).items():
        place = "npm/node_modules/.bin" if "npm" in pin else f"{pin['venv']}/bin"
        found[name] = [str(ROOT / ".servers" / place / pin["program"]), *pin.get("args", [])]
    return found


def installed(folder: Path, peer: str) -> Path:
    """The peer's environment."""
    place = folder / peer
    if not (place / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "-q", PEERS[peer]], check=True)
    return place / "bin"


def ran(line: list[str], limit: float, **more: Any) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    began = time.monotonic()
    try:
        return subprocess.run(line, capture_output=True, text=True, timeout=limit, **more), time.monotonic() - began
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - began


def ours(command: list[str], limit: float) -> dict[str, Any]:
    """By `earnest assay`: per tool and hint a word."""
    words = [word.replace("{folder}", "/tmp/folder") for word in command]
    done, seconds = ran([sys.executable, "-m", "earnest", "assay", "--json", "--", *words], limit)
    if done is None or not done.stdout.startswith("{") or "error" in (report := json.loads(done.stdout)):
        return {"error": "not done in time" if done is None else done.stdout[-200:], "seconds": seconds}
    said = {tool["name"]: {h: v["verdict"] for h, v in tool["hints"].items()} for tool in report["tools"]}
    claimed = {tool["name"]: {h: v["claimed"] for h, v in tool["hints"].items()} for tool in report["tools"]}
    return {"said": said, "claimed": claimed, "seconds": seconds}


def guessed(command: list[str], folder: Path) -> tuple[dict[str, Any], Path]:
    """What `earnest assay init` would call each tool with, and a folder like the fixture's workspace, repository in it."""
    from earnest.assay.fixture import build

    words = [word.replace("{folder}", "/tmp/folder") for word in command]
    path = folder / "assay.toml"
    ran([sys.executable, "-m", "earnest", "assay", "init", "--settings", str(path), "--", *words], 120)
    tools = tomllib.loads(path.read_text()).get("tools", {}) if path.exists() else {}
    build(str(folder / "home"), str(folder / "home"))
    seed = folder / "home" / "workspace"
    shutil.move(str(folder / "home" / "repo"), str(seed / "repo"))
    return {name: one["arguments"][0] for name, one in tools.items() if one.get("arguments")}, seed


def relative(value: Any) -> Any:
    """An argument for a server that runs in the folder of its state."""
    if isinstance(value, dict):
        return {key: relative(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [relative(inner) for inner in value]
    if isinstance(value, str):
        value = value.replace("{repository}", "repo").replace("{database}", "app.db").replace("{home}", ".")
        return value.replace("{workspace}/", "").replace("{workspace}", ".")
    return value


def inline(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def groundtruth(program: Path, command: list[str], limit: float) -> dict[str, Any]:
    """By `mcpgt`: its target is written by itself, and filled in from guesses of ours."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments, seed = guessed(command, folder)
        words = [word.replace("{folder}", "{state}") for word in command]
        began, _ = ran([str(program / "mcpgt"), "init", "lab", "--", *words], 120, cwd=folder)
        target = folder / "lab" / "target.toml"
        if began is None or not target.exists():
            return {"error": "init: " + (began.stderr.strip().splitlines() or ["not done"])[-1] if began else "init: not done"}
        shutil.move(str(seed), str(folder / "lab" / "seed"))
        target.write_text(filled(target.read_text(), arguments, folder / "lab" / "seed"))
        done, seconds = ran([str(program / "mcpgt"), "run", "lab", "--audit", "--runs-dir", "runs"], limit, cwd=folder)
        reports = (
            sorted((folder / "runs").rglob("*.json"), key=lambda path: path.stat().st_size)
            if (folder / "runs").exists()
            else []
        )
        if done is None or not reports:
            said = "not done in time" if done is None else " ".join((done.stderr or done.stdout).split())[-200:]
            return {"error": said, "seconds": seconds}
        return {"said": verdicts(json.loads(reports[-1].read_text())), "seconds": seconds}


def filled(text: str, arguments: dict[str, Any], seed: Path) -> str:
    """A target without open decisions: one adapter over all files, all of them the user's data."""
    head, mark, _ = text.partition("\n# --- Tools")
    names = sorted([*os.listdir(seed), "state"])
    head = re.sub(r"^locations = .*$", 'locations = ["fs:."]', head, flags=re.M)
    head = re.sub(r"^kind = .*$", 'kind = "fs"', head, flags=re.M)
    head = re.sub(r"^label = .*$", 'label = "."\nseed = "seed"\nmodes = true', head, flags=re.M)
    head = re.sub(r"^business = .*$", f"business = {inline(names)}", head, flags=re.M)
    head = re.sub(r"^append_only = .*$", "append_only = []", head, flags=re.M)
    head = re.sub(r"^mask = .*$", "mask = []", head, flags=re.M)
    tools = re.findall(r'^\[\[tools\]\]\nname = "([^"]+)"', text, re.M)
    blocks = [f'[[tools]]\nname = "{name}"\narguments = {inline(relative(arguments.get(name, {})))}\n' for name in tools]
    return head + mark + "\n" + "\n".join(blocks)


def verdicts(report: Any) -> dict[str, dict[str, str]]:
    """Words per tool and hint, wherever in the report they stand."""
    found: dict[str, dict[str, str]] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            test, outcome = str(value.get("test", "")).upper(), value.get("outcome")
            hint = next((ours for theirs, ours in HINTS.items() if test.startswith(theirs[:9])), "")
            if isinstance(value.get("tool"), str) and hint and isinstance(outcome, str):
                found.setdefault(value["tool"], {})[hint] = outcome.split(":")[0]
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(report)
    return found


def ztgateway(program: Path) -> str:
    """What `mcp-ztgateway profile` says here: it profiles images in Docker."""
    done, _ = ran([str(program / "mcp-ztgateway"), "profile", "python:3.11", "--tool", "x"], 120)
    said = "" if done is None else (done.stderr + done.stdout)
    return "needs Docker; could not be run here" if "Docker daemon" in said else "ran: not compared"


def row(name: str, tool: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    if "said" not in found:
        return f"| {name} | {tool} | {found.get('error', '')[:90]} | | | {found.get('seconds', 0):.0f} |"
    liars = lies() if name == "liar" else {}
    said: dict[str, dict[str, str]] = found["said"]
    bad, soft = ("VIOLATION", "") if tool != "earnest" else ("CONTRADICTED", "SOFT")
    caught = sum(said.get(one, {}).get(hint) == bad for one, hint in liars.items())
    mild = sum(said.get(one, {}).get(hint) == soft for one, hint in liars.items()) if soft else 0
    words = [(one, hint, word) for one, hints in said.items() for hint, word in hints.items()]
    false = sum(word == bad and liars.get(one) != hint for one, hint, word in words)
    open_ = sum(word in ("INCONCLUSIVE", "NOT-EXERCISED", "NOT_APPLICABLE") for _, _, word in words)
    lied = f"{caught} of {len(liars)}" + (f", {mild} soft" if mild else "") if liars else "–"
    return f"| {name} | {tool} | {lied} | {false} | {open_} of {len(words)} | {found['seconds']:.0f} |"


def main() -> None:
    """Run them one after the other, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    program, other = installed(folder, "groundtruth"), installed(folder, "ztgateway")
    kept: dict[str, Any] = {"versions": PEERS, "ztgateway": ztgateway(other)}
    print("| server | by | lies caught | falsely accused | not judged | wall s |\n|---|---|---|---|---|---|")
    for name, command in commands().items():
        if options.only and name not in options.only:
            continue
        kept[name] = {"earnest": ours(command, options.limit), "mcp-groundtruth": groundtruth(program, command, options.limit)}
        for tool, found in kept[name].items():
            print(row(name, tool, found), flush=True)
        if options.results:
            options.results.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"| any | mcp-ztgateway | {kept['ztgateway']} | | | |")


if __name__ == "__main__":
    main()
