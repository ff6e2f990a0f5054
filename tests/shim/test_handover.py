"""The shim's command line, its encoding and its patience; what it loads."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import earnest
from earnest.shim import activate, handover, paths
from earnest.shim.handover import Patience, parse
from earnest.shim.paths import ShimError
from properties import examples

BOOT = pathlib.Path(handover.__file__).with_name("boot.py")


def test_a_whole_command_line_is_read():
    said = parse(["stdio", "files", "--client", "claude", "--config=/c.toml", "--", "npx", "-y", "--", "s"])
    assert (said.name, said.client, said.config) == ("files", "claude", "/c.toml")
    assert said.command == ["npx", "-y", "--", "s"]
    hook = parse(["hook", "pre-tool", "--client=c", "--flag"])
    assert (hook.client, hook.rest) == ("c", ["pre-tool", "--flag"])


@pytest.mark.parametrize(
    "words",
    [["stdio"], ["stdio", "a", "b"], ["stdio", "a", "--"], ["stdio", "a", "--odd"], ["stdio", "a", "--client"],
     ["stdio", "a", "--client="]],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_usage(words):
    with pytest.raises(ShimError) as e:
        parse(words)
    assert e.value.code == "E1501" and e.value.remedy.startswith("Usage: earnest stdio")
    assert e.value.exit_code == 2


def test_help_is_printed_and_starts_nothing(tmp_path):
    for kind in ("stdio", "hook"):
        out = subprocess.run(
            [sys.executable, "-I", "-S", str(BOOT), kind, "--help"],
            env={"HOME": str(tmp_path)}, capture_output=True, text=True,
        )  # fmt: skip
        assert out.returncode == 0 and out.stdout.startswith(f"Usage: earnest {kind}")
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_the_packages():
    assert earnest.__version__ == handover.VERSION


_JSON = st.recursive(
    st.text() | st.integers(0, 2**53) | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=examples(60))
@given(_JSON)
def test_the_encoding_is_json(value):
    back = json.loads(handover.encode(value))
    assert back == value and repr(back) == repr(value)


@settings(max_examples=examples(60))
@given(st.binary())
def test_what_cannot_be_decoded_survives_the_encoding(data):
    assert os.fsencode(json.loads(handover.encode(os.fsdecode(data)))) == data


def test_the_hot_path_loads_only_what_is_cheap(tmp_path):
    """With a daemon there: everything up to the send, which finds a listener that ends it."""
    code = (
        "import sys, runpy, atexit\n"
        "from _socket import socket\n"
        "before = set(sys.modules)\n"
        "atexit.register(lambda: print(*sorted(set(sys.modules) - before), file=sys.stderr))\n"
        f"sys.argv = ['boot.py', 'stdio', 'x']\n"
        f"__file__ = {str(BOOT)!r}\n"
        f"exec(compile(open({str(BOOT)!r}).read(), __file__, 'exec'))\n"
    )
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    from earnest.shim import activate, paths

    tmp_path.chmod(0o700)
    folder = paths.open_folder(paths.instance(env))
    listener = activate.listen(folder)
    shim = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    fd, _ = listener._accept()
    from _socket import socket

    sock = socket(fileno=fd)
    assert sock.recv(4)
    sock.send(b"X\x05\x00\x00\x00\x00")
    _, err = shim.communicate(timeout=60)
    sock.close()
    listener.close()
    os.close(folder)
    assert shim.returncode == 5
    loaded = set(err.split())
    allowed = {
        "earnest", "earnest.shim", "earnest.shim.handover", "earnest.shim.paths", "os", "stat", "_stat", "posixpath",
        "genericpath", "_collections_abc", "_socket", "_json", "__future__", "time", "os.path", "_sha256", "_sha2",
        "_posixsubprocess",
    }  # fmt: skip
    assert loaded <= allowed, loaded - allowed
    assert "earnest.shim.handover" in loaded


def test_progress_between_kills_keeps_patience():
    patience = Patience()
    for n in range(200):
        assert patience.lost(n.to_bytes(4, "little"), 0.3, True) == 0.0


def test_a_crash_loop_is_given_up_after_growing_pauses():
    patience = Patience()
    pauses = []
    while (pause := patience.lost(b"same", 0.2, True)) is not None:
        pauses.append(pause)
    assert len(pauses) == 12 and pauses == sorted(pauses) and pauses[0] == 0.0 and pauses[-1] == 2.0


def test_a_daemon_that_never_takes_over_is_given_up_sooner():
    patience = Patience()
    assert [patience.lost(b"", 0.1, False) is None for _ in range(9)] == [False] * 8 + [True]


def test_a_long_life_is_no_part_of_a_row():
    patience = Patience()
    for _ in range(50):
        assert patience.lost(b"", 31.0, True) == 0.0


def test_a_folder_that_was_removed_is_told_and_what_to_do(tmp_path):
    at = tmp_path / "e"
    folder = paths.open_folder(str(at))
    at.rmdir()
    with pytest.raises(paths.ShimError, match="was removed while this ran") as told:
        activate.activate(folder, str(at), "", False, {}, 1.0)
    assert (told.value.code, "Start this again" in told.value.remedy) == ("E1502", True)
    os.close(folder)


def test_a_folder_in_which_nothing_can_be_written_is_told(tmp_path):
    at = tmp_path / "e"
    folder = paths.open_folder(str(at))
    (at / "lock").mkdir()  # stands for whatever the system may answer, to any user
    with pytest.raises(paths.ShimError, match=r"no daemon can be started from .*: Is a directory") as told:
        activate.activate(folder, str(at), "", False, {}, 1.0)
    assert (told.value.code, "doctor" in told.value.remedy) == ("E1502", True)
    os.close(folder)
