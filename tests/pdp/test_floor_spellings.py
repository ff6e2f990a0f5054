"""Spellings by the dozen: what reaches a protected place or runs earnest's command is refused, what does not passes."""

import json
import time
from pathlib import Path

import pytest

from earnest.pdp.floor import Floor

INSTANCE = "c-6978ff4949b63d6a"


def rule(value: object, *, changes: bool = False, cwd: str | None = None, home: str = "/home/ada") -> str:
    own = [f"{home}/.local/state/earnest", f"{home}/.local/state/earnest/{INSTANCE}", f"{home}/work/policy.toml"]
    own.append(f"{home}/.config/earnest")
    found = Floor(home=home, own=own).check(json.dumps(value).encode(), cwd=cwd, changes=changes)
    return found.rule if found is not None else ""


def short(value: object) -> str:
    """A case by its beginning."""
    return json.dumps(value)[:60]


STATE = f".local/state/earnest/{INSTANCE}"
REACHES = [
    # Relative, from a root that is not known.
    {"path": f"../{STATE}/token"},
    {"path": f"../../../home/{STATE}/store.db"},
    {"path": f"./../{STATE}"},
    {"path": "a/../.local/state/earnest/x"},
    {"path": "../.local//state/./earnest/x"},
    {"path": "../.config/earnest/earnest.toml"},
    {"path": "../work/policy.toml"},
    {"path": f"{INSTANCE}/store.db"},
    {"path": f"earnest/{INSTANCE}/token"},
    {"path": f"state/earnest/{INSTANCE}/token"},
    {"path": "../.claude/hooks/x.sh"},
    # Put together from two arguments or more.
    {"dir": "/home/ada/.local/state", "name": "earnest/token"},
    {"name": "earnest/token", "dir": "/home/ada/.local/state"},
    {"root": "/home/ada", "dir": ".local/state", "name": "earnest"},
    {"dir": "~/.local/state/", "file": {"name": "/earnest/token"}},
    {"path": ["~", ".local", "state", "earnest", "token"]},
    {"dir": "../.local/state", "name": "earnest/token"},
    {"dir": ".claude", "file": "settings.json"},
    {"path": "settings.json", "cwd": "/home/ada/.claude"},
    {"dir": "/home/ada/.cursor", "file": "mcp.json"},
    {"where": [{"in": "/srv/project/.vscode"}], "what": {"name": "mcp.json"}},
    {"cwd": "~/.local/state", "command": "cat earnest/x/token"},
    {"cwd": "$XDG_STATE_HOME", "file": "earnest/token"},
    {"dir": "/", "name": "home/ada/.config/earnest/x"},
    # Names as paths.
    {".mcp.json": "x"},
    {"/home/ada/.cursor/mcp.json": "{}"},
    {"~/.local/state/earnest/x": 1},
    {"edits": [{"/home/ada/.claude/settings.json": "x"}]},
    # Environment and other people's names.
    {"path": "$XDG_STATE_HOME/earnest/x"},
    {"path": "${XDG_STATE_HOME}/earnest/x"},
    {"path": "${XDG_STATE_HOME:-/x}/earnest/x"},
    {"path": "$XDG_CONFIG_HOME/earnest/x"},
    {"path": "$EARNEST_HOME/x/token"},
    {"path": "${HOME}/.local/state/earnest"},
    {"path": "/home/$USER/.local/state/earnest/x"},
    {"path": "~root/.local/state/earnest/x"},
    {"path": "~other/.claude.json"},
    {"path": "~ada/.local/state/earnest/x"},
    {"cmd": "cat ${XDG_STATE_HOME:-$HOME/.local/state}/earnest/x/token"},
    {"text": "cat $XDG_STATE_HOME/earnest/x/token"},
    # Patterns of a shell.
    {"cmd": f"cat ear*/{INSTANCE[:2]}*/token"},
    {"cmd": "cat /home/ada/.local/state/ear*/c-*/token"},
    {"cmd": "cat ~/.local/state/e*/*/token"},
    {"cmd": "cat ~/.lo*/st*/ear*/*/token"},
    {"cmd": "cat ~/.local/state/[e]arnest/x"},
    {"cmd": "cat ~/.local/state/e?rnest/x"},
    {"cmd": "cd ~/.local/state && cat */*/token"},
    {"cmd": "cd ~/.local; cat state/earnest/x/token"},
    {"cmd": "cat ~/.local/state/{earnest,x}/token"},
    {"cmd": "cat ~/.local/**/token"},
    {"cmd": "cp x .cl*/settings.json"},
    {"cmd": "cp x ~/.cl*/sett*.json"},
    {"cmd": "rm earn*.toml"},
    # What a server that resolves by letters makes of it.
    {"path": "/home/ada/.claude/" + "a/../" * 1000 + "settings.json"},
    {"path": "~/.claude/" + "./" * 3000 + "settings.json"},
    {"path": "~/x\n/../.claude/settings.json"},
    {"path": "https://../../project/.claude/settings.json"},
    {"path": "/home/ada/.claude.json\0.txt"},
    {"path": "\\srv\\.cursor\\mcp.json"},
    {"path": "\uff45arnest.toml"},
    {"path": "/home/ada/.local/state/ea\u200brnest"},
    {"cmd": "true " + " ".join(map(str, range(500))) + "; cp x ../.claude/settings.json"},
    {"cmd": "# " + "x" * 20_000 + "\ncp x ../.claude/settings.json"},
    {"shellCommand": "cp x ../.claude/settings.json"},
    {"sql": "ATTACH '../.claude/settings.json' AS x"},
    # Programs that put a path together.
    {"code": "open(os.path.join(home, '.local', 'state', 'earnest', 'token'))"},
    {"code": "(Path.home() / '.local' / 'state' / 'earnest').iterdir()"},
]


@pytest.mark.parametrize("value", REACHES, ids=short)
def test_a_spelling_that_reaches_a_protected_place_is_refused(value: object) -> None:
    assert rule(value, cwd="/srv") == "floor/own-files"
    assert rule(value, cwd="/srv", changes=True) == "floor/own-files"
    assert rule({"arguments": json.dumps(value)}, cwd="/srv") == "floor/own-files"


ABOVE = [
    {"path": "~/.claude"},
    {"source": "~/.local/state"},
    {"source": "/home/ada/.local/state", "destination": "/tmp/x"},
    {"path": "$XDG_STATE_HOME"},
    {"path": "/home/ada/.config"},
    {"path": "/home/ada"},
    {"path": "/home"},
    {"path": "~"},
    {"path": "/srv/project/.cursor"},
    {"path": ".claude"},
]


@pytest.mark.parametrize("value", ABOVE, ids=short)
def test_a_folder_above_is_for_tools_that_change_nothing(value: object) -> None:
    assert rule(value, cwd="/srv", changes=True) == "floor/own-files"
    assert rule(value, cwd="/srv") == ""


@pytest.mark.parametrize("name", ["..", ".local", "./.local", ".config", "./"])
def test_a_folder_above_is_found_from_the_server_s_own_folder(name: str) -> None:
    folder = "/home/ada/work" if name == ".." else "/home/ada"
    assert rule({"path": name}, cwd=folder, changes=True) == "floor/own-files"
    assert rule({"path": name}, cwd=folder) == ""


COMMANDS = [
    {"command": "earnest trust t --trusted"},
    {"cmd": "uvx earnest trust t"},
    {"cmd": "$(which earnest) trust t"},
    {"cmd": "sudo -u me earnest pins accept t"},
    {"cmd": "e\\arnest trust t"},
    {"cmd": "pkill earnest"},
    {"cmd": "kill -9 $(pgrep -f earnest)"},
    {"cmd": "tmux new-session -d 'earnest trust t --trusted'"},
    {"code": "subprocess.run(['earnest','trust','t'])"},
    {"x": "env X=1 earnest labels set t/del destructive=false"},
    {"x": "`earnest stop`"},
    {"x": "true; earnest approvals yes a-1"},
    {"input": "ls && earnest trust t --trusted"},
    {"input": "earnest trust t --trusted\n"},
    {"input": "X=1 earnest config approve"},
    {"keys": "/usr/bin/earnest --config x labels set a/b read_only=true"},
    {"line": "python3 -m earnest pins accept t"},
    {"cmd": "echo trust t | xargs earnest"},
    {"cmd": "E=earnest; $E trust t"},
    {"cmd": "alias e=/usr/bin/earnest\ne trust t"},
    {"cmd": "earnest $X"},
    {"code": "from earnest import cli"},
    {"code": "runpy.run_module('earnest')"},
    {"cmd": "ear''nest trust t"},
    {"argv": ["earnest", "trust", "t"]},
    {"program": "earnest", "arguments": ["trust", "t"]},
    {"exe": "/usr/bin/earnest", "with": ["pins", "accept"]},
    {"command": "uvx", "args": ["earnest", "trust", "t"]},
]


@pytest.mark.parametrize("value", COMMANDS, ids=short)
def test_what_is_a_person_s_to_run_is_not_a_tool_s(value: object) -> None:
    assert rule(value) == "floor/own-command"


PASSES = [
    {"q": "earnest run for charity"},
    {"q": "earnest"},
    {"q": "The Importance of Being Earnest, and trust"},
    {"text": "The earnest student trusts the labels on the pins."},
    {"text": "An earnest policy of trust"},
    {"q": "earnest trust building exercises"},
    {"query": "earnest", "section": "config"},
    {"action": "init", "name": "earnest"},
    {"tags": ["trust", "earnest"]},
    {"command": "earnest run"},
    {"command": "earnest serve --port 1"},
    {"command": "earnest receipts --json"},
    {"argv": ["earnest", "run"]},
    {"cmd": "cat src/*.py"},
    {"cmd": "pytest earnest tests/config"},
    {"cmd": "pip install --target=lib earnest"},
    {"path": "/home/ada/.config/earnest-notes/x"},
    {"url": "https://a.example/b/../.claude"},
    {"cmd": "echo " + " ".join(map(str, range(500)))},
    {"cmd": "ls *.toml *.json"},
    {"cmd": "cat ~/*/README.md"},
    {"cmd": "rm -rf build/* dist/*"},
    {"pattern": "**/*.ts", "path": "/srv/web"},
    {"path": "/home/ada/work/earnest/src/x.py"},
    {"path": "/home/ada/earnest/README.md", "cwd": "/home/ada"},
    {"owner": "claude", "path": "hooks", "user": "code"},
    {"path": "../state/x.json"},
    {"name": "state", "value": "config"},
    {"path": "src/state/store.ts"},
    {"dir": "/home/ada/work", "file": "settings.json"},
    {"dir": "/srv/.vscode", "file": "settings.json"},
    {"url": "https://a.example/.local/state"},
    {"amount": "$5", "note": "~5 %"},
    {"path": "~lock.doc#"},
    {"text": "edit your .mcp.json file"},
]


@pytest.mark.parametrize("value", PASSES, ids=short)
def test_what_only_looks_alike_passes(value: object) -> None:
    assert rule(value, cwd="/srv") == ""


@pytest.mark.parametrize("word", ["library", "Library", "state", "code", "user", ".", "earnest", "settings.json"])
def test_a_word_that_is_a_folder_s_name_too_is_a_word(word: str) -> None:
    assert rule({"q": word}, cwd="/home/ada", changes=True) == ""


def test_a_folder_reached_by_a_link_joins_as_the_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".local/state/earnest").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home / ".local")
    assert rule({"dir": str(tmp_path / "link"), "name": "state/earnest/x"}, home=str(home)) == "floor/own-files"
    assert rule({"dir": str(tmp_path / "link"), "name": "state/other"}, home=str(home)) == ""


def test_more_pairs_than_can_be_looked_at_reach() -> None:
    names = [f"state/{number}" for number in range(600)]
    assert rule({"dir": "/home/ada/.local", "names": names}) == "floor/own-files"


@pytest.mark.parametrize(
    "text", ["earnest " * 20_000, "a=" * 60_000 + " earnest", "earnest -x " * 10_000, "/a" * 60_000 + "/earnest", "e " * 60_000]
)
def test_no_text_makes_the_search_slow(text: str) -> None:
    start = time.thread_time()
    for name in ("command", "q"):
        rule({name: text}, cwd="/srv")
    assert time.thread_time() - start < 1
