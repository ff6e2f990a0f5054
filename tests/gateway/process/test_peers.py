"""Who started a shim, from the kernel's word."""

import os
import socket
import subprocess
import sys

import pytest

from earnest.gateway.process import peers
from earnest.gateway.process.peers import Process, host_chain, host_process, nesting


def _chain(*commands: str) -> list[Process]:
    """The shim first, then what started it, and so on."""
    return [
        Process(pid=1000 - n, start=100 - n, parent=999 - n, name=words.split()[0].rsplit("/", 1)[-1][:15],
                argv=tuple(words.split()))
        for n, words in enumerate(commands)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "host"),
    [
        (["shim", "/usr/bin/claude"], 1),
        (["shim", "sh -c earnest", "claude"], 2),
        (["shim", "/bin/sh /opt/start.sh", "npm exec x", "node /usr/bin/npx x", "env A=1 y", "uvx z", "cursor"], 6),
        (["shim", "node /usr/lib/node_modules/npm/bin/npx-cli.js -y x", "node /opt/app/server.js"], 2),
        (["shim", "bash -lc x", "timeout 5 x", "nice x", "python3 agent.py"], 4),
        (["shim", "python3 -I -S /v/earnest/shim/boot.py stdio x", "code"], 2),
        (["shim", "-bash", "gnome-terminal"], 1),  # a person's own shell, not the terminal all of them share
        (["shim", "zsh -l", "tmux"], 1),
        (["shim", "bash", "sshd"], 1),
        (["shim", "sh -c x", "systemd --user"], None),
        (["shim", "sh -c x", "sshd: a@pts/0"], None),
        (["shim"], None),
    ],
)
def test_the_host_is_the_nearest_that_is_no_wrapper(commands, host):
    chain = _chain(*commands)
    found = host_process(chain)
    assert found == (None if host is None else chain[host])


def test_the_first_process_is_no_host():
    assert host_process([*_chain("shim", "sh -c x"), Process(1, 0, 0, "app", ("app",))]) is None


def test_our_own_ancestry_is_what_the_kernel_says():
    chain = peers.ancestry(os.getpid())
    assert [one.pid for one in chain[:2]] == [os.getpid(), os.getppid()]
    assert chain[0].start >= chain[1].start and chain[0].argv[0] == sys.orig_argv[0]


def test_a_name_with_parentheses_and_spaces_is_read(tmp_path):
    odd = tmp_path / "a) S (b"
    odd.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(odd), "30"])
    try:
        while (one := peers.process(child.pid)) is not None and one.name != "a) S (b":
            pass
        assert one is not None and one.parent == os.getpid()
    finally:
        child.kill()
        child.wait()
    assert peers.process(child.pid) is None


def test_credentials_of_a_connection():
    ours, theirs = socket.socketpair()
    who = peers.credentials(ours)
    assert (who.pid, who.uid) == (os.getpid(), os.geteuid()) and who.chain[0].pid == os.getpid()
    ours.close()
    theirs.close()


def test_a_process_that_ended_has_no_ancestry(tmp_path):
    """Its number may be another's by now."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=True)
    sock, _ = listener.accept()
    assert peers.credentials(sock).chain == ()
    sock.close()
    listener.close()


@pytest.mark.parametrize(
    ("commands", "known", "found"),
    [
        (["shim", "python3 child.py", "claude", "bash", "konsole"], [], [1]),
        (["shim", "python3 child.py", "claude", "bash", "konsole"], [2], [2, 1]),
        (["shim", "python3 child.py", "sh -c x", "claude"], [3], [3, 1]),
        (["shim", "a", "b", "c", "d"], [2, 3, 4], [4, 3]),  # more levels than two: the outermost
        (["shim", "a", "b", "c", "d"], [1, 4], [4, 1]),
        (["shim", "python3 one.py", "bash", "konsole"], [2], [1]),  # two programs of a person's own shell
        (["shim", "zsh -l", "code"], [1, 2], [2, 1]),
        (["shim", "a", "npx b", "c"], [2], [2, 1]),
    ],
)
def test_a_host_is_below_the_outermost_known_one(commands, known, found):
    chain = _chain(*commands)
    hosts = {chain[at].key for at in known}
    assert list(nesting(host_chain(chain), lambda one: one.key in hosts)) == [chain[at] for at in found]
