"""The command line's requests to the daemon."""

import os
import subprocess
import sys

import pytest

from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control
from earnest.shim import activate


@pytest.fixture
def control(rig, talk):
    talk(rig.shim(), 1)
    with connect_control(rig.env, start=False) as one:
        yield one


def test_answers_and_streams(control):
    assert control.call("ping")["clients"] == 1
    assert list(control.stream("count", to=3)) == [0, 1, 2, "done"]
    assert control.call("ping")["clients"] == 1


def test_the_daemon_runs_on_uvloop(control):
    assert control.call("loop")["loop"] == "uvloop"


def test_errors_arrive_whole(control):
    with pytest.raises(EarnestError) as e:
        control.call("boom")
    assert (e.value.code, e.value.message, e.value.remedy, e.value.exit_code) == ("E1601", "no.", "Ask a person.", 1)
    with pytest.raises(EarnestError, match="no operation 'nothing'"):
        control.call("nothing")
    with pytest.raises(EarnestError, match="E1509: the operation 'count' wants 'to'"):
        control.call("count")


def test_leaving_cancels_what_runs(rig, control):
    with connect_control(rig.env, start=False) as other:
        other._sock.sendall(b'{"op": "hang"}\n')
        rig.wait(lambda: control.call("ping"))
    rig.wait(lambda: "cancelled" in control.call("loop")["events"])


def test_who_asks_is_known_by_the_kernel(control):
    who = control.call("whoami")
    assert (who["pid"], who["uid"], who["chain"][0]) == (os.getpid(), os.getuid(), os.getpid())


def test_what_a_clients_host_starts_counts_as_a_models_doing(rig):
    """A host starts the shim and, as a tool call could, a command line; a person's terminal is beside it."""
    script = (
        "import subprocess, sys, json\n"
        "from earnest.gateway.process.control import connect_control\n"
        "import os\n"
        f"shim = subprocess.Popen({rig.command()!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'shim.stdin.write(b\'{"jsonrpc":"2.0","id":1,"method":"x"}\\n\'); shim.stdin.flush(); shim.stdout.readline()\n'
        "code = 'import os; from earnest.gateway.process.control import connect_control; '\\\n"
        "       'print(connect_control(dict(os.environ)).call(\"whoami\")[\"by_model\"], flush=True)'\n"
        "subprocess.run(['sh', '-c', f\"{sys.executable} -c '{code}'; true\"])\n"
        "sys.stdin.readline()\n"
    )
    env = {**rig.env, "PYTHONPATH": str(rig.root)}
    host = subprocess.Popen(
        [sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert host.stdout.readline().strip() == "True"
        with connect_control(rig.env, start=False) as person:
            assert person.call("whoami")["by_model"] is False
    finally:
        host.communicate("\n", timeout=60)


def test_without_a_daemon_there_is_none_unless_asked_for(rig, monkeypatch):
    monkeypatch.setattr(activate, "__file__", str(rig.root / "earnest/shim/activate.py"))
    assert connect_control(rig.env, start=False) is None
    with connect_control(rig.env) as control:
        assert control.call("ping")["pid"] in rig.daemons()


def test_a_daemon_that_cannot_start_says_why(make_rig, monkeypatch):
    rig = make_rig(fail="earnest")
    monkeypatch.setattr(activate, "__file__", str(rig.root / "earnest/shim/activate.py"))
    with pytest.raises(EarnestError) as e:
        connect_control(rig.env)
    assert e.value.code == "E1001"


def test_stop_ends_clients_with_a_word(rig, talk, control):
    shim = rig.shim()
    talk(shim, 1)
    control.call("stop")
    assert shim.wait(60) == 0 and b"earnest stop" in shim.stderr.read()
    rig.wait(lambda: not rig.daemons())
