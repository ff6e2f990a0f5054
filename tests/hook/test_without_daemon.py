"""Without a daemon each host's calls are refused; reads go on where the operator said so, and are not forgotten."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import Home
from earnest.shim import alone, paths
from hook.conftest import Host
from hook.recorded import Codex, Cursor, GeminiCli


def instance(home: Home) -> Path:
    folder = Path(paths.instance(home.env, ""))
    os.close(paths.open_folder(str(folder)))
    return folder


@contextmanager
def no_daemon(home: Home) -> Iterator[None]:
    """None runs, and none can be started while this holds."""
    subprocess.run([sys.executable, "-m", "earnest", "stop"], env=home.env, capture_output=True, timeout=30)
    with open(instance(home) / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def calls(host: Any) -> list[tuple[str, dict[str, Any]]]:
    """An event of each kind that holds a call of this host's."""
    if isinstance(host, Codex):
        use = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "u"}
        return [("PreToolUse", {**host.base(), **use})]
    if isinstance(host, GeminiCli):
        return [("BeforeTool", {**host.base(), "tool_name": "read_file", "tool_input": {"file_path": "/etc/hosts"}})]
    members: dict[str, dict[str, Any]] = {
        "preToolUse": {"tool_name": "Grep", "tool_input": {"pattern": "x"}},
        "beforeShellExecution": {"command": "ls"},
        "beforeMCPExecution": {"tool_name": "read", "tool_input": "{}"},
        "beforeReadFile": {"file_path": "/etc/hosts", "content": "x"},
    }
    return [(event, {**host.base(), **more}) for event, more in members.items()]


@pytest.mark.parametrize("kind", [Codex, GeminiCli, Cursor])
def test_each_hosts_calls_are_refused_in_its_words(home: Home, kind: Any) -> None:
    host = kind(home)
    with no_daemon(home):
        for event, body in calls(host):
            code, out = host.say(event, body)
            said = json.loads(out)
            inner = said.get("hookSpecificOutput", said)
            word = inner.get("permissionDecision") or inner.get("decision") or inner.get("permission")
            assert (code, word) == (0, "deny") and "E150" in json.dumps(said), (event, out)


def test_reads_go_on_where_the_operator_said_so_and_the_session_has_seen_them_all_the_same(host: Host) -> None:
    home = host.home
    home.config.write_text('[hook]\nwithout_daemon = "reads"\n')
    for session in ("one", "quiet"):
        host.start(session)
        host.says("Hello", session)
    with no_daemon(home):
        assert host.before("Read", file_path=f"{host.cwd}/a.txt") == "allow"
        assert host.before("Glob", pattern="**/*.py", path=host.cwd) == "allow"
        for tool, given in [
            ("Bash", {"command": "ls"}),
            ("Write", {"file_path": f"{host.cwd}/a.txt", "content": "x"}),
            ("WebFetch", {"url": "https://x.example/", "prompt": "x"}),
            ("mcp__files__Read", {"file_path": f"{host.cwd}/a.txt"}),
        ]:
            assert host.before(tool, **given) == "deny", tool
    for session, word in (("quiet", "allow"), ("one", "ask")):
        host.start(session, source="resume")
        assert host.before("WebFetch", session, url="https://x.example/", prompt="x") == word, "what was read is not forgotten"
    assert not (instance(home) / alone.UNHEARD).exists()


def test_what_earnest_keeps_is_not_read_without_it_however_the_path_is_spelt(host: Host) -> None:
    home = host.home
    home.config.write_text('[hook]\nwithout_daemon = "reads"\n')
    host.start()
    (home.path / "link").symlink_to(home.earnest)
    with no_daemon(home):
        kept, where = str(home.earnest), str(home.path)
        assert host.before("Read", file_path=f"{where}/elsewhere.txt") == "allow"
        for given in (
            {"file_path": f"{kept}/default/token"},
            {"file_path": f"{where}/link/default/token"},
            {"file_path": f"{where}/project/../state/default/token"},
            {"file_path": "../state/default/token"},
            {"file_path": "~/state/default/token"},
            {"file_path": str(home.config)},
        ):
            assert host.before("Read", **given) == "deny", given
        above, hidden, below = (
            {"path": where, "pattern": "x"},
            {"pattern": f"{where}/st*/*"},
            {"pattern": "../**", "path": kept},
        )
        for given in (above, hidden, below):
            assert host.before("Grep", **given) == "deny", given


def test_the_mark_is_the_daemons_alone(host: Host) -> None:
    home = host.home
    home.config.write_text('[hook]\nwithout_daemon = "reads"\n')
    host.start()
    mark = instance(home) / alone.MARK
    assert mark.stat().st_mode & 0o777 == 0o600
    read = {"file_path": f"{host.cwd}/a.txt"}
    with no_daemon(home):
        mark.chmod(0o666)
        assert host.before("Read", **read) == "deny", "others could have written it"
        mark.unlink()
        mark.symlink_to("/dev/null")
        assert host.before("Read", **read) == "deny"
        mark.unlink()
        assert host.before("Read", **read) == "deny"
        home.config.write_text("")
    host.start()
    assert not mark.exists()


def test_a_read_that_cannot_be_noted_is_refused(host: Host) -> None:
    home = host.home
    home.config.write_text('[hook]\nwithout_daemon = "reads"\n')
    host.start()
    (instance(home) / alone.UNHEARD).symlink_to("/nowhere")
    with no_daemon(home):
        assert host.before("Read", file_path=f"{host.cwd}/a.txt") == "deny"
