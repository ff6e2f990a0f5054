"""Runs a shell script in a box over a copy of a tree, makes what it changed real, takes it back, and tells what there was each
time: `python committing.py TIER FOLDER LARGE SCRIPT`, JSON on standard output. A program of its own, so that it can be run as
another user. FOLDER is made here."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from earnest.sandbox import changeset
from earnest.sandbox.box import Folder, Plan
from earnest.sandbox.tiers import choose
from earnest.sandbox.undo import Undos
from sandbox import tree


def main() -> None:
    tier, name, large, script = sys.argv[1:]
    folder = Path(name)
    base = folder / "base"
    (base / "sub" / "deep").mkdir(parents=True)
    for number in range(int(large)):
        (base / "sub" / f"more{number}").write_text("as it was\n")
    for each in ("kept", "changed", "gone", "moved", "sub/one", "sub/deep/two", "moded"):
        (base / each).write_text(f"{each}\n")
    (base / "shut").mkdir(0o750)
    (base / "shut" / "in").write_text("in\n")
    tree.settle(base)
    place = choose(tier)
    inside = str(base) if place.sight.copies_in_place else str(folder / "inside" / "base")
    home = str(folder / "inside" / "home")
    plan = Plan(
        ("/bin/sh", "-c", f"cd {inside}\n{script}"),
        {"PATH": os.defpath},
        home,
        home,
        (Folder(inside, str(base), "copy"),),
        watch=True,
    )
    before = tree.picture(base)
    begun = changeset.start(plan)
    box = place.box(plan)
    done = subprocess.run(box.argv, env=dict(box.env), capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    changes = changeset.change_set(box.look(), box.bytes_of, begun, box.events(), (home, "/tmp", tempfile.gettempdir()))
    box.close()
    told = {
        "status": done.returncode,
        "err": done.stderr.decode(errors="replace"),
        "still": tree.picture(base) == before,
        "items": {item.path: item.word for item in changes.items},
        "refused": {os.path.basename(refused.path): refused.why for refused in changes.refused},
        "attempted": changes.attempted,
        "scratch": changes.scratch,
    }
    if not changes.refused:
        undos = Undos(str(folder / "undo"), time.time)
        undos.commit(changes, begun, "w.1", "s", "t")
        told["made"] = {path: [kind, f"{mode:o}", *map(bytes.decode, rest)]
                        for path, (kind, mode, _, *rest) in tree.picture(base).items() if "sub/more" not in path}  # fmt: skip
        undos.undo("w.1")
        told["undone"] = tree.picture(base) == before
    print(json.dumps(told))


main()
