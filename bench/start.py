"""What earnest adds to the start of a server on pipes, and how long a daemon takes to be there.

    python bench/start.py [--rounds 15] [--burst 50]

Milliseconds from the start of a process to its answer to `initialize`, medians: `direct` is the server itself, `warm` the same
through `earnest stdio` with a daemon that runs (each time a session of its own, so the server starts each time), `cold` with
none, so that the daemon starts too; `daemon` is `cold` less `warm`. Ways are interleaved, so that a machine whose speed drifts
treats them alike. `daemons`: how many were started by so many shims at once where none ran; each of them got its answer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relay_stdio import ROOT, SERVER

STARTED = " serves "
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
LINE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"


def started(command: list[str], env: dict[str, str], cwd: str) -> float:
    """Milliseconds until a server answers."""
    begin = time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, cwd=cwd) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(LINE)
        process.stdin.flush()
        answer = process.stdout.readline()
        took = (time.perf_counter() - begin) * 1000
        process.stdin.close()
        process.wait(10)
    if b'"result"' not in answer:
        raise SystemExit(f"no result: {answer[:300]!r}")
    return took


def burst(through: list[str], env: dict[str, str], cwd: str, count: int) -> int:
    """How many daemons so many shims at once start. Ends the run where one of them gets no answer."""
    log = Path(env["EARNEST_HOME"], "default", "daemon.log")
    before = log.read_text().count(STARTED)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: started(through, env, cwd), range(count)))
    return log.read_text().count(STARTED) - before


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--burst", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="e-") as folder:
        (Path(folder) / "server.py").write_text(SERVER.replace("SIZE", "200"))
        server = [sys.executable, "-S", f"{folder}/server.py"]
        config = Path(folder, ".config", "earnest", "earnest.toml")
        config.parent.mkdir(parents=True)
        config.write_text(f'[servers.bench]\ncommand = {json.dumps(server)}\ntrust = "trusted"\n')
        shim = str(Path(sys.executable).parent / "earnest")
        through = [shim if os.access(shim, os.X_OK) else str(ROOT / "bin" / "earnest"), "stdio", "bench"]
        env = {"PATH": os.environ["PATH"], "HOME": folder, "EARNEST_HOME": f"{folder}/e", "PYTHONPATH": str(ROOT / "src")}
        times: dict[str, list[float]] = {"direct": [], "warm": [], "cold": []}
        try:
            for _ in range(given.rounds):
                times["direct"].append(started(server, env, folder))
                times["cold"].append(started(through, env, folder))
                times["warm"].append(started(through, env, folder))
                subprocess.run([through[0], "stop"], env=env, cwd=folder, stdout=subprocess.DEVNULL, check=True)
            daemons = burst(through, env, folder, given.burst)
        finally:
            subprocess.run([through[0], "stop"], env=env, cwd=folder, stdout=subprocess.DEVNULL)
    found = {name: round(statistics.median(values), 1) for name, values in times.items()}
    added = {"added": round(found["warm"] - found["direct"], 1), "daemon": round(found["cold"] - found["warm"], 1)}
    print(
        json.dumps(
            {"bench": "start", "rounds": given.rounds, "unit": "ms", **found, **added, "shims": given.burst, "daemons": daemons}
        )
    )


if __name__ == "__main__":
    main()
