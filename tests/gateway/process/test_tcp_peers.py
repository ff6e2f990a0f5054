"""Who holds the other end of a TCP connection: real sockets and real processes, and everything that must not be guessed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from earnest.gateway.process import tcp_peers
from earnest.gateway.process.tcp_peers import host_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's tables are Linux's")

CONNECT = """
import os, socket, subprocess, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
if sys.argv[3] == "share":
    child = subprocess.Popen(["sleep", "60"], pass_fds=[s.fileno()])
print(os.getpid(), child.pid if sys.argv[3] == "share" else 0, flush=True)
sys.stdin.read()
if sys.argv[3] == "share":
    child.kill()
"""


class Rig:
    def __init__(self, family: int, host: str) -> None:
        self.listener = socket.socket(family)
        self.listener.bind((host, 0))
        self.listener.listen()
        self.started: list[subprocess.Popen[bytes]] = []
        self.taken: list[socket.socket] = []
        self.child = 0

    def connect(self, *before: str, to: str = "", mode: str = "") -> tuple[int, socket.socket]:
        """A process that connects; its number and our end."""
        host, port = self.listener.getsockname()[:2]
        command = [*before, sys.executable, "-S", "-c", CONNECT, to or host, str(port), mode]
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.started.append(one)
        taken, _ = self.listener.accept()
        self.taken.append(taken)
        assert one.stdout is not None
        pid, self.child = map(int, one.stdout.readline().split())
        return pid, taken

    def look(self, taken: socket.socket) -> int:
        found = host_of(taken.getpeername(), taken.getsockname())
        return found[0].pid if found else 0

    def close(self) -> None:
        for one in self.started:
            one.communicate()
        for taken in self.taken:
            taken.close()
        self.listener.close()


@pytest.fixture(params=["asked", "looked for"])
def way(request, monkeypatch) -> str:
    """How the client's end is found: asked for, or looked for in the kernel's tables; the other way is taken away."""
    if request.param == "asked":
        monkeypatch.setattr(tcp_peers, "_looked_for", lambda clients, listener: pytest.fail("the tables were read"))
    else:
        monkeypatch.setattr(tcp_peers, "_asked", lambda clients, listener: None)
    return str(request.param)


@pytest.fixture
def rig(way: str) -> Iterator[Rig]:
    made = Rig(socket.AF_INET, "127.0.0.1")
    yield made
    made.close()


def test_each_client_process_is_its_own_host(rig):
    (one, first), (two, second) = rig.connect(), rig.connect()
    assert (rig.look(first), rig.look(second)) == (one, two)


@pytest.mark.parametrize("bound,to", [("::1", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")])
def test_the_other_family_is_found_too(bound, to, way):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        made = Rig(socket.AF_INET6 if ":" in bound else socket.AF_INET, bound)
    except OSError:
        pytest.skip("no IPv6 here")
    try:
        pid, taken = made.connect(to=to)
        assert made.look(taken) == pid
    finally:
        made.close()


def test_what_carries_another_ones_words_is_not_the_host(rig, tmp_path):
    bridge = tmp_path / "mcp-remote"
    bridge.symlink_to(sys.executable)
    host, port = rig.listener.getsockname()
    command = [str(bridge), "-S", "-c", CONNECT, host, str(port), ""]
    one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    rig.started.append(one)
    taken, _ = rig.listener.accept()
    rig.taken.append(taken)
    assert rig.look(taken) == os.getpid()


def test_the_ancestors_of_a_host_come_after_it(rig):
    pid, taken = rig.connect()
    found = host_of(taken.getpeername(), taken.getsockname())
    assert [one.pid for one in found[:2]] == [pid, os.getpid()]


def test_a_shell_that_was_given_a_command_is_no_host(rig):
    pid, taken = rig.connect("sh", "-c", 'exec "$0" "$@"')
    assert rig.look(taken) == pid


# What is in doubt


def test_two_holders_of_one_connection_are_nobody(rig):
    _, taken = rig.connect(mode="share")
    assert rig.look(taken) == 0


def test_a_child_that_has_yet_to_run_its_program_is_waited_for(rig, monkeypatch):
    pid, taken = rig.connect(mode="share")
    paused = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        os.kill(rig.child, signal.SIGKILL)
        while Path(f"/proc/{rig.child}/stat").read_text().split()[2] != "Z":
            os.sched_yield()

    monkeypatch.setattr(tcp_peers.time, "sleep", pause)
    assert rig.look(taken) == pid and paused == [tcp_peers.PAUSES_S[0]]


def test_a_connection_whose_other_end_is_gone_is_nobodys(rig):
    _, taken = rig.connect()
    rig.started[0].kill()
    rig.started[0].wait()
    assert rig.look(taken) == 0


def test_another_users_connection_is_nobodys(rig, monkeypatch):
    _, taken = rig.connect()
    uid = os.getuid()
    monkeypatch.setattr(tcp_peers.os, "getuid", lambda: uid + 1)
    assert rig.look(taken) == 0


def test_too_much_to_look_through_is_left(rig, monkeypatch):
    _, taken = rig.connect()
    monkeypatch.setattr(tcp_peers, "DESCRIPTORS", 1)
    assert rig.look(taken) == 0


@pytest.mark.parametrize("end", [None, "", ("127.0.0.1",), ("192.0.2.1", 80), ("name", 80), ("127.0.0.1", "80")])
def test_an_address_that_is_not_of_this_machine_is_nobodys(rig, end):
    _, taken = rig.connect()
    assert host_of(end, taken.getsockname()) == ()
    assert host_of(taken.getpeername(), end) == ()


# Both ways


def test_both_ways_find_the_same_ends(rig, monkeypatch, way):
    if way != "asked":
        pytest.skip("both are taken here")
    monkeypatch.undo()
    ends = [rig.connect()[1] for _ in range(3)]
    listener = rig.listener.getsockname()
    clients = [one.getpeername() for one in ends] + [("127.0.0.1", 1), ("127.0.0.2", ends[0].getpeername()[1]), listener]
    asked = tcp_peers._asked(clients, listener)
    assert asked == tcp_peers._looked_for(clients, listener) and list(asked) == clients[:3]


def test_the_tables_are_gone_through_where_the_kernel_is_not_to_be_asked(rig, monkeypatch, way):
    if way != "asked":
        pytest.skip("the other way is taken anyway")
    monkeypatch.undo()
    pid, taken = rig.connect()
    for number in (9999, 0):  # no such family of messages; one that knows of no TCP
        monkeypatch.setattr(tcp_peers, "_SOCK_DIAG", number)
        assert tcp_peers._asked([taken.getpeername()], taken.getsockname()) is None
        assert rig.look(taken) == pid


def test_a_kernel_that_knows_no_ends_at_all_is_not_believed(rig, monkeypatch, way):
    monkeypatch.undo()
    _, taken = rig.connect()
    monkeypatch.setattr(tcp_peers, "_end", lambda line, own, other: None)
    assert tcp_peers._asked([taken.getpeername()], taken.getsockname()) is None


def test_an_end_that_is_gone_is_not_looked_for_again(rig, way):
    if way != "asked":
        pytest.skip("the kernel is not asked here")
    _, taken = rig.connect()
    rig.started[0].kill()
    rig.started[0].wait()
    assert tcp_peers._asked([taken.getpeername()], taken.getsockname()) == {}
