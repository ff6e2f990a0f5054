"""Runs one plan in one tier and tells what came of it: `python driver.py TIER`, the plan on standard input, JSON on standard
output. A program of its own, so that tests can run it as another user, and end it."""

import subprocess
import sys

import msgspec

from earnest.sandbox.box import Plan, Tier
from earnest.sandbox.confined import Confined
from earnest.sandbox.namespaces import Namespaces

TIERS: dict[str, Tier] = {"namespaces": Namespaces(), "confined": Confined()}


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    box = TIERS[sys.argv[1]].box(plan)
    pipe = subprocess.PIPE
    done = subprocess.Popen(box.argv, env=dict(box.env), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    print(done.pid, file=sys.stderr, flush=True)
    out, err = done.communicate(timeout=60)
    look = box.look()
    contents = {path: (box.bytes_of(path), box.bytes_of(path, look)) for path in look.entries}
    told = {
        "status": done.returncode,
        "out": out.decode(errors="replace"),
        "err": err.decode(errors="replace"),
        "look": look,
        "contents": contents,
        "events": box.events(),
        "ended": box.close(),
    }
    sys.stdout.buffer.write(msgspec.json.encode(told))


main()
