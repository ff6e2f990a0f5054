"""Hosts are remembered for as long as they run, beyond the daemon's life."""

import os
import subprocess
from pathlib import Path

from earnest.gateway.process.hosts import Hosts
from earnest.gateway.process.peers import Process, process


def test_a_host_is_known_to_the_next_daemon_while_it_runs(tmp_path: Path):
    child = subprocess.Popen(["sleep", "60"])
    try:
        host = process(child.pid)
        assert host is not None
        Hosts(str(tmp_path / "hosts")).add(host)
        again = Hosts(str(tmp_path / "hosts"))
        assert host.key in again.alive
        assert (tmp_path / "hosts").stat().st_mode & 0o777 == 0o600
    finally:
        child.kill()
        child.wait()
    assert again.alive == frozenset()
    assert Hosts(str(tmp_path / "hosts")).alive == frozenset()


def test_a_number_given_anew_is_no_host(tmp_path: Path):
    one = process(os.getpid())
    assert one is not None
    Hosts(str(tmp_path / "hosts")).add(Process(one.pid, one.start - 1, one.parent, one.name, one.argv))
    assert Hosts(str(tmp_path / "hosts")).alive == frozenset()


def test_a_persons_own_shell_is_not_kept(tmp_path: Path):
    one = process(os.getpid())
    assert one is not None
    hosts = Hosts(str(tmp_path / "hosts"))
    hosts.add(Process(one.pid, one.start, one.parent, "bash", ("-bash",)))
    assert hosts.alive == frozenset()
    hosts.add(Process(one.pid, one.start, one.parent, "bash", ("bash", "-c", "host")))
    assert one.key in hosts.alive


def test_a_damaged_file_or_a_full_disk_does_not_matter(tmp_path: Path):
    (tmp_path / "hosts").write_bytes(b"\xff\xfe nonsense\n1 2\n")
    one = process(os.getpid())
    assert one is not None
    missing = Hosts(str(tmp_path / "nowhere" / "hosts"))
    missing.add(one)
    assert one.key in missing.alive
    assert Hosts(str(tmp_path / "hosts")).alive == frozenset()
