"""Start, herd, end: one daemon, whatever comes at once, and a clear word when there is none."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest


def test_a_shim_starts_the_daemon_and_relays(rig, talk):
    shim = rig.shim("stdio", "files", "--client", "claude", "--", "server", "--flag")
    who = talk(shim, 1, "who")["result"]
    assert (who["name"], who["client"], who["argv"]) == ("files", "claude", ["server", "--flag"])
    assert (who["pid"], who["uid"], who["cwd"]) == (shim.pid, os.getuid(), os.getcwd())
    assert len(rig.daemons()) == 1
    shim.stdin.close()
    assert shim.wait(60) == 0


def test_undecodable_environment_arrives_as_it_is(rig, talk):
    shim = rig.shim(env={"ODD": os.fsdecode(b"a\xff\xc3b"), "NICE": "ä😀"})
    env = talk(shim, 1, "who")["result"]["env"]
    assert bytes.fromhex(env["ODD"]) == b"a\xff\xc3b"
    assert bytes.fromhex(env["NICE"]).decode() == "ä😀"


def test_a_large_environment_and_many_arguments_arrive(rig, talk):
    shim = rig.shim("stdio", "x", "--", *["word" * 20] * 3000, env={"BIG": "y" * 100_000})
    who = talk(shim, 1, "who")["result"]
    assert len(who["argv"]) == 3000 and len(who["env"]["BIG"]) == 200_000


def test_the_daemon_is_nobodys_child_and_holds_nothing_of_the_client(rig, talk):
    read, write = os.pipe()
    shim = rig.shim(env={"SECRET": "1", "PYTHONPATH": "/nowhere"}, pass_fds=(write,))
    talk(shim, 1)
    os.close(write)
    (daemon,) = rig.daemons()
    assert os.getsid(daemon) != os.getsid(shim.pid)
    assert os.readlink(f"/proc/{daemon}/cwd") == "/"
    with open(f"/proc/{daemon}/environ", "rb") as f:
        names = {word.partition(b"=")[0] for word in f.read().split(b"\0") if word}
    assert b"SECRET" not in names and b"EARNEST_CONFIG" not in names
    assert os.readlink(f"/proc/{daemon}/fd/0") == "/dev/null"
    shim.kill()
    shim.wait()
    os.set_blocking(read, False)
    assert os.read(read, 1) == b""  # nobody else holds the write end
    os.close(read)


def test_modes_let_nobody_else_in(rig, talk):
    talk(rig.shim(), 1)
    assert stat.S_IMODE(rig.instance.stat().st_mode) == 0o700
    for name in ("s", "lock", "daemon.log"):
        assert stat.S_IMODE((rig.instance / name).lstat().st_mode) == 0o600, name


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become another user")
def test_another_user_is_refused_even_when_the_folder_lets_him_in(rig, talk):
    shim = rig.shim()
    talk(shim, 1)
    place = rig.instance / "s"
    for one in (place, rig.instance, rig.home / "e", rig.home):
        one.chmod(0o777)
    # connected as another user, with every file mode open: only the kernel's word for the peer is left
    code = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "fd = os.open(sys.argv[1], os.O_PATH)\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "s.connect(f'/proc/self/fd/{fd}')\n"
        "try: s.sendall((2).to_bytes(4, 'little') + b'{}')\n"
        "except OSError: pass\n"
        "try: print(repr(s.recv(100)))\n"
        "except ConnectionError: print(repr(b''))\n"
    )
    out = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True, text=True)
    assert out.stdout.strip() == "b''", out.stderr
    assert "refused a connection of user 65534" in rig.log()
    assert talk(shim, 2)["id"] == 2


def test_a_folder_open_to_others_is_refused_with_the_cure(rig):
    assert rig.shim(stdin=subprocess.DEVNULL).wait(60) == 0
    rig.instance.chmod(0o750)
    shim = rig.shim()
    _, err = shim.communicate(timeout=60)
    assert shim.returncode == 2 and b"chmod 700" in err and err.startswith(b"earnest: E1502")


def test_twenty_shims_at_once_start_one_daemon(rig, ask):
    shims = [rig.shim() for _ in range(20)]
    for n, shim in enumerate(shims):
        shim.stdin.write(ask(n))
        shim.stdin.flush()
    daemons = {json.loads(shim.stdout.readline())["result"]["daemon"] for shim in shims}
    assert len(daemons) == 1 and rig.daemons() == list(daemons)
    assert rig.log().count(" serves ") == 1 and "E1503" not in rig.log()  # no other was even tried


def test_twenty_shims_over_a_stale_socket_start_one_daemon(rig, ask, talk):
    talk(rig.shim("stdio", "y"), 0)
    rig.clean()
    assert (rig.instance / "s").exists()
    shims = [rig.shim() for _ in range(20)]
    for n, shim in enumerate(shims):
        shim.stdin.write(ask(n))
        shim.stdin.flush()
    assert len({json.loads(shim.stdout.readline())["result"]["daemon"] for shim in shims}) == 1
    assert len(rig.daemons()) == 1


def test_a_second_daemon_is_refused_by_the_lock(rig, talk):
    talk(rig.shim(), 1)
    again = subprocess.run(
        [sys.executable, "-m", "earnest.daemon", "--instance", str(rig.instance), "--config", "/x"],
        env={**rig.env, "PYTHONPATH": str(rig.root)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert again.returncode == 3 and "a daemon already runs" in again.stderr
    assert len(rig.daemons()) == 1


@pytest.mark.parametrize(
    ("fail", "code", "words"), [("earnest", 2, b"E1001: the configuration is wrong"), ("crash", 3, b"RuntimeError")]
)
def test_a_daemon_that_cannot_start_tells_every_shim_why(make_rig, fail, code, words):
    rig = make_rig(fail=fail)
    shims = [rig.shim() for _ in range(4)]
    for shim in shims:
        _, err = shim.communicate(timeout=60)
        assert shim.returncode == code and words in err, err
    rig.wait(lambda: not rig.daemons())


def test_a_daemon_that_only_dies_is_given_up_with_the_log(make_rig):
    rig = make_rig(fail="exit")
    (rig.home / "e").mkdir(mode=0o700)
    shim = rig.shim()
    _, err = shim.communicate(timeout=60)
    assert shim.returncode == 3 and b"E1503" in err and b"daemon.log" in err


def test_an_unknown_server_ends_the_shim_with_a_clear_word(rig):
    shim = rig.shim("stdio", "unknown")
    out, err = shim.communicate(timeout=60)
    assert (shim.returncode, out) == (2, b"")
    assert err.startswith(b"earnest: E1201: there is no server 'unknown'.")


def test_idle_exit_against_clients_that_arrive_just_then_fails_none(make_rig, talk):
    rig = make_rig(idle_s=0.15)
    daemons = set()
    for n in range(100):
        if n > 8 and len(daemons) > 1:
            break
        shim = rig.shim()
        daemons.add(talk(shim, n)["result"]["daemon"])
        shim.stdin.close()
        assert shim.wait(60) == 0
        time.sleep(0.12 + 0.01 * (n % 12))
    assert len(daemons) > 1  # some of them did end in between
    rig.wait(lambda: not rig.daemons())
    assert not (rig.instance / "s").exists()


def test_a_connected_client_keeps_the_daemon(make_rig, talk):
    rig = make_rig(idle_s=0.1)
    shim = rig.shim()
    first = talk(shim, 1)["result"]["daemon"]
    time.sleep(0.5)
    assert talk(shim, 2)["result"]["daemon"] == first


def test_sigterm_lets_calls_finish_and_says_why_it_ends(rig, talk, ask):
    shim = rig.shim()
    talk(shim, 1)
    shim.stdin.write(ask(2, delay=0.4))
    shim.stdin.flush()
    os.kill(rig.rests(), signal.SIGTERM)
    out, err = shim.communicate(timeout=60)
    assert json.loads(out)["result"]["method"] == "tools/call"
    assert shim.returncode == 0 and b"the daemon was stopped" in err
    rig.wait(lambda: not rig.daemons())


def test_a_daemon_whose_folder_is_gone_ends(rig, talk):
    shim = rig.shim()
    first = talk(shim, 1)["result"]["daemon"]
    (rig.instance / "s").unlink()
    again = talk(shim, 2)["result"]
    assert again["daemon"] == first
    rig.wait(lambda: first not in rig.daemons())
    assert talk(shim, 3)["result"]["daemon"] != first
    assert len(rig.daemons()) == 1


def test_the_lock_is_held_for_life(rig, talk):
    talk(rig.shim(), 1)
    with open(rig.instance / "lock") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        rig.clean()
        rig.wait(lambda: _locks(lock))


def _locks(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_while_another_holds_the_lock_no_daemon_is_started(rig, talk):
    rig.shim(stdin=subprocess.DEVNULL).wait(60)
    rig.clean()
    with open(rig.instance / "lock") as lock:
        rig.wait(lambda: _locks(lock))
        shim = rig.shim()
        time.sleep(0.4)
        assert shim.poll() is None and not rig.daemons() and rig.log().count(" serves ") == 1
    assert talk(shim, 1)["id"] == 1


def test_servers_of_a_killed_daemon_are_ended_by_the_next(make_rig, talk):
    rig = make_rig(child=["sleep", "1000"])
    shim = rig.shim()
    talk(shim, 1)
    children = rig.instance / "children"
    first = int(children.read_text().split()[2])
    os.kill(first, 0)
    rig.kill()
    shim.stdin.write(b"\n")
    talk(shim, 2)
    second = int(children.read_text().split()[2])
    assert second != first
    rig.wait(lambda: not _runs(first))
    os.kill(second, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_a_newer_shim_makes_the_daemon_make_way_and_clients_stay(make_rig, talk):
    rig = make_rig()
    old = rig.shim()
    first = talk(old, 1)["result"]
    # an upgrade: the same checkout, with a higher version
    newer = make_rig()
    package = newer.root / "earnest"
    (package / "__init__.py").unlink()
    (package / "__init__.py").write_text('"""Newer."""\n\n__version__ = "9.0"\n')
    newer.changed("shim", "handover.py", 'VERSION = "0.1.0"', 'VERSION = "9.0"')
    newer.env = rig.env
    new = newer.shim()
    talk(new, 1)
    rig.wait(lambda: "making way" in rig.log() and "earnest 9.0 serves" in rig.log())
    assert talk(old, 2)["result"]["epoch"] == 2
    assert talk(new, 2)["result"]["daemon"] == first["daemon"]  # the same process, executed anew
    assert "9.0" in rig.log() and len(rig.daemons()) == 1
