"""Kills the daemon again and again under load, and counts what became of every call.

    python bench/storm.py [--kills 100] [--sockets]

One client keeps eight calls outstanding, every fiftieth answer has 200 kB, and the daemon gets SIGKILL each 0.25 to
0.6 s, but not before one in three has delivered an answer. To hold: no call unanswered, none done twice, none answered
with a result that was not done.
"""

import argparse
import collections
import importlib.util
import json
import pathlib
import random
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

OUTSTANDING = 8
BARREN = 3
"""Daemons in a row that are killed before they delivered an answer; a shim gives up after eight."""


class Found(NamedTuple):
    """What a storm did."""

    kills: int
    calls: int
    unanswered: int
    twice: int
    errors: int
    errors_done: int
    answered_undone: int
    second_answers: int
    broken_lines: int
    seconds: float


def storm(
    start: Callable[..., "subprocess.Popen[bytes]"],
    kill: Callable[[], bool],
    done: Callable[[], list[str]],
    *,
    kills: int,
    sockets: bool,
    seed: int,
) -> Found:
    """Runs one; `start` starts a shim, `kill` the daemon's end, `done` lists the effects so far."""
    chance = random.Random(seed)
    if sockets:
        ours, theirs = socket.socketpair()
        shim = start(stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
        theirs.close()
        reader, writer = ours.makefile("rb"), ours.makefile("wb")
    else:
        shim = start(stderr=subprocess.DEVNULL)
        assert shim.stdin is not None and shim.stdout is not None
        reader, writer = shim.stdout, shim.stdin  # type: ignore[assignment]
    answers: dict[int, list[bool]] = collections.defaultdict(list)
    broken = 0
    free = threading.Semaphore(OUTSTANDING)
    began = time.monotonic()

    def read() -> None:
        nonlocal broken
        for line in reader:
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:
                broken += line != b"\n"
                continue
            first = not answers[message["id"]]
            answers[message["id"]].append("result" in message)
            if first:
                free.release()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    stop = False
    killed = 0

    def killing() -> None:
        nonlocal stop, killed
        barren, heard = 0, 0
        while killed < kills and not stop:
            time.sleep(chance.uniform(0.25, 0.6))
            while barren == BARREN and len(answers) == heard and not stop:
                time.sleep(0.01)
            barren = barren + 1 if len(answers) == heard else 0
            heard = len(answers)
            killed += kill()
        stop = True

    killer = threading.Thread(target=killing, daemon=True)
    killer.start()
    sent = 0
    while not stop:
        if not free.acquire(timeout=60):
            break
        params = {"tag": f"c{sent}", "size": 200_000 if sent % 50 == 49 else 10}
        request = {"jsonrpc": "2.0", "id": sent, "method": "tools/call", "params": params}
        writer.write(json.dumps(request).encode() + b"\n")
        writer.flush()
        sent += 1
    stop = True
    killer.join()
    end = time.monotonic() + 60
    while len(answers) < sent and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    effects = collections.Counter(line for line in done() if line.startswith("did c"))
    found = Found(
        kills=killed,
        calls=sent,
        unanswered=sent - len(answers),
        twice=sum(count > 1 for count in effects.values()),
        errors=sum(not any(one) for one in answers.values()),
        errors_done=sum(not any(one) and effects[f"did c{id}"] > 0 for id, one in answers.items()),
        answered_undone=sum(any(one) and effects[f"did c{id}"] == 0 for id, one in answers.items()),
        second_answers=sum(len(one) > 1 for one in answers.values()),
        broken_lines=broken,
        seconds=round(time.monotonic() - began, 1),
    )
    writer.close()
    if sockets:
        ours.shutdown(socket.SHUT_RDWR)
    shim.wait(20)
    thread.join(5)
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--sockets", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    path = pathlib.Path(__file__).parents[1] / "tests/gateway/process/conftest.py"
    spec = importlib.util.spec_from_file_location("rig", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory() as folder:
        rig = module.Rig(pathlib.Path(folder), {})
        try:
            found = storm(
                rig.shim, rig.kill_any, rig.done, kills=said.kills, sockets=said.sockets, seed=said.seed
            )  # fmt: skip
        finally:
            rig.clean()
    for name, value in found._asdict().items():
        print(f"{name:16} {value}")
    raise SystemExit(0 if (found.unanswered, found.twice, found.answered_undone) == (0, 0, 0) else 1)


if __name__ == "__main__":
    main()
