"""`scripts/pack-pins` adds the pins of recorded definitions to a pack and touches nothing else."""

import subprocess
import sys
from pathlib import Path

from earnest.config.packs import read
from earnest.core.pin import pin

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "pack-pins"
PACK = """\
# A comment that stays.
[server]
packages = ["npm:a"]
evidence = "seen"

[tools.x]   # and this one
read_only = true

[tools."y z"]
destructive = true
pins = ["v1:{0}"]
"""
OLD = "0" * 64
X, Y, OTHER = b'{"name":"x","n":1.0}', b'{"name":"y z"}', b'{"name":"other"}'


def run(*arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60)


def test_pins_are_added_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    pack, listing = tmp_path / "p.toml", tmp_path / "list.json"
    pack.write_text(PACK.format(OLD))
    listing.write_bytes(b'{"tools":[' + b",".join((X, Y, OTHER)) + b'],"nextCursor":"z"}')
    done = run(pack, listing)
    assert done.returncode == 0 and "does not list other" in done.stderr
    after = read("p", "p.toml", pack.read_bytes())
    assert after.tools["x"].pins == {pin(X)}
    assert after.tools["y z"].pins == {pin(Y), f"v1:{OLD}"}
    kept = [line for line in pack.read_text().splitlines() if "v1:" not in line and line not in ("pins = [", "]")]
    assert kept == [line for line in PACK.splitlines() if "v1:" not in line]
    text = pack.read_text()
    assert run(pack, listing).returncode == 0 and pack.read_text() == text


def test_a_bare_list_is_read_too(tmp_path: Path) -> None:
    pack, listing = tmp_path / "p.toml", tmp_path / "list.json"
    pack.write_text(PACK.format(OLD))
    listing.write_bytes(b"[" + X + b"]")
    assert run(pack, listing).returncode == 0
    assert read("p", "p.toml", pack.read_bytes()).tools["x"].pins == {pin(X)}


def test_what_cannot_be_read_is_one_message_and_changes_nothing(tmp_path: Path) -> None:
    pack, listing = tmp_path / "p.toml", tmp_path / "list.json"
    pack.write_text(PACK.format(OLD))
    for broken in (b"{", b"{}", b'[{"name":"x","name":"x"}]'):
        listing.write_bytes(broken)
        done = run(pack, listing)
        assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr
        assert pack.read_text() == PACK.format(OLD)
    assert run(pack).returncode == 2
