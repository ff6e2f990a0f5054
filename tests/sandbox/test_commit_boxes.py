"""Changes of real boxes made for real and taken back: in each tier, as whoever runs the suite and as an ordinary user."""

import json
import subprocess
import sys

from sandbox.rig import HERE

SCRIPT = """
set -e
echo more >> changed; rm gone; mv moved elsewhere; chmod 600 moded; echo fresh > fresh; chmod 755 fresh
mkdir new; echo x > new/x; rm -r sub/deep; echo in > shut/more; chmod 700 shut; echo scratch > ~/scratch
"""
ITEMS = {
    "changed": "changed", "gone": "deleted", "moved": "deleted", "elsewhere": "moved", "moded": "touched", "fresh": "created",
    "new": "created", "new/x": "created", "sub/deep": "deleted", "sub/deep/two": "deleted", "shut": "touched",
    "shut/more": "created",
}  # fmt: skip
MADE = {
    "changed": ["file", "644", "changed\nmore\n"], "elsewhere": ["file", "644", "moved\n"], "moded": ["file", "600", "moded\n"],
    "fresh": ["file", "755", "fresh\n"], "new": ["folder", "755"], "new/x": ["file", "644", "x\n"],
    "kept": ["file", "644", "kept\n"],
    "sub": ["folder", "755"], "sub/one": ["file", "644", "sub/one\n"], "shut": ["folder", "700"],
    "shut/in": ["file", "644", "in\n"], "shut/more": ["file", "644", "in\n"],
}  # fmt: skip


def committed(rig, script, large=0):
    command = [sys.executable, str(HERE / "committing.py"), rig.tier, str(rig.folder / "work"), str(large), script]
    if rig.user == "ordinary":
        command = [sys.executable, str(HERE / "ordinary.py"), str(rig.folder), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, umask=0o022)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def held(told):
    assert (told["status"], told["still"], told["refused"]) == (0, True, {}), told["err"]
    assert told["items"] == ITEMS and told["scratch"] >= 1
    made = told["made"]
    del made["."]
    assert made == MADE
    assert told["undone"]


def test_what_a_box_changed_is_made_real_and_taken_back(rig):
    held(committed(rig, SCRIPT))


def test_so_is_what_it_changed_over_a_large_folder(make_rig):
    held(committed(make_rig("namespaces"), SCRIPT, 1100))


def test_what_is_no_file_or_folder_is_refused_and_the_network_told(mine):
    told = committed(mine, "ln -s kept link; mkfifo fifo; ln kept second; bash -c 'exec 3<>/dev/tcp/192.0.2.7/80'")
    assert told["refused"]["link"] == "it is a link" and told["refused"]["fifo"] == "it is neither a file nor a folder"
    assert told["attempted"] == ["192.0.2.7:80"] and told["still"]
