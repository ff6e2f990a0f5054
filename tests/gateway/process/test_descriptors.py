"""Every kind of descriptor a client may give: each works, none takes the daemon down, no wrapper notices."""

import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
import tty

import pytest


def _blocking(fd: int) -> bool:
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


def _line(read) -> dict:
    data = b""
    while not data.endswith(b"\n"):
        part = read(65536)
        assert part, data
        data += part
    return json.loads(data)


@pytest.fixture
def other(rig, talk):
    """A client that must not notice what another one is given."""
    shim = rig.shim("stdio", "other")
    first = talk(shim, 0)["result"]["daemon"]
    yield
    assert talk(shim, 1)["result"]["daemon"] == first, "the daemon did not survive"


def test_pipes_and_a_wrapper_that_shares_them(rig, other, talk):
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    shim = rig.shim(stdin=in_read, stdout=out_write)
    os.write(in_write, b'{"jsonrpc":"2.0","id":1,"method":"x"}\n')
    assert _line(lambda n: os.read(out_read, n))["id"] == 1
    assert _blocking(in_read) and _blocking(out_write)  # our copies are what a wrapper holds
    os.close(in_write)
    assert shim.wait(60) == 0
    for fd in (in_read, out_read, out_write):
        os.close(fd)


def test_sockets_and_a_wrapper_that_shares_them(rig, other, ask):
    ours, theirs = socket.socketpair()
    shim = rig.shim(stdin=theirs, stdout=theirs)
    ours.sendall(ask(1, size=300_000))
    assert len(_line(ours.recv)["result"]["text"]) == 300_000
    ours.sendall(ask(2))
    assert _line(ours.recv)["id"] == 2
    assert _blocking(theirs.fileno())
    ours.shutdown(socket.SHUT_WR)
    assert shim.wait(60) == 0
    theirs.close()
    assert ours.recv(1) == b""
    ours.close()


def test_a_file_is_answered_to_a_file(rig, other, ask, tmp_path):
    (tmp_path / "in").write_bytes(b"".join(ask(n) for n in range(300)))
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as sink:
        assert rig.shim(stdin=source, stdout=sink).wait(60) == 0
    answers = [json.loads(line)["id"] for line in (tmp_path / "out").read_text().splitlines()]
    assert answers == list(range(300))


def test_a_last_line_without_its_end_counts(rig, other, ask):
    out, _ = rig.shim().communicate(ask(1).rstrip() + b"\n" + ask(2).rstrip(), timeout=60)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]


def test_dev_null_ends_at_once(rig, other):
    shim = rig.shim(stdin=subprocess.DEVNULL)
    assert shim.wait(60) == 0
    shim = rig.shim(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert shim.wait(60) == 0


def test_closed_descriptors_are_no_descriptors_of_ours(rig, other):
    command = " ".join(f"'{word}'" for word in rig.command())
    out = subprocess.run(f"{command} <&- >&- 2>&-", shell=True, env=rig.env, timeout=60)
    assert out.returncode == 0


def test_a_full_disk_ends_the_client_and_nothing_else(rig, other, ask):
    with open("/dev/full", "wb") as full:
        shim = rig.shim(stdout=full)
        shim.stdin.write(ask(1))
        shim.stdin.flush()
        assert shim.wait(60) == 0


def test_a_terminal_is_copied_and_left_as_it_was(rig, other, ask):
    master, slave = pty.openpty()
    tty.setraw(slave, termios.TCSANOW)
    mode = termios.tcgetattr(slave)
    mode[3] |= termios.ICANON
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    shim = rig.shim(stdin=slave, stdout=slave)
    os.write(master, ask(1))
    assert _line(lambda n: os.read(master, n))["id"] == 1
    assert _blocking(slave)
    os.write(master, b"\x04")
    assert shim.wait(60) == 0
    os.close(master)
    os.close(slave)


def test_a_stopped_shim_leaves_the_terminal_to_others(rig, other, ask):
    master, slave = pty.openpty()
    tty.setraw(slave, termios.TCSANOW)
    shim = rig.shim(stdin=slave)
    os.write(master, ask(1))
    assert json.loads(shim.stdout.readline())["id"] == 1
    os.kill(shim.pid, signal.SIGSTOP)
    os.write(master, b"for the shell\n")
    time.sleep(0.2)
    assert os.read(slave, 100) == b"for the shell\n"
    os.kill(shim.pid, signal.SIGCONT)
    os.write(master, ask(2))
    assert json.loads(shim.stdout.readline())["id"] == 2
    os.close(master)
    assert shim.wait(60) == 0
    os.close(slave)


def test_standard_error_is_the_clients_own(rig, other, talk):
    shim = rig.shim()
    talk(shim, 1, "say")
    assert shim.stderr.readline() == b"from the server\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_shim_that_is_ended_ends_the_clients_streams(rig, other, talk, number):
    shim = rig.shim()
    talk(shim, 1)
    os.kill(shim.pid, number)
    assert shim.stdout.read() == b""
    shim.wait(60)
    assert shim.stderr.read() == b""


def test_a_client_that_does_not_read_is_not_read_from(rig, other, ask):
    """Back-pressure: the queue stops at its mark, and everything arrives once the client reads."""
    shim = rig.shim()
    os.set_blocking(shim.stdin.fileno(), False)
    count = 0
    stuck = time.monotonic()
    while time.monotonic() - stuck < 0.4 and count < 4000:
        try:
            os.write(shim.stdin.fileno(), ask(count, size=20_000, pad="y" * 3000))
            count += 1
            stuck = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    assert count < 4000, "a client that reads nothing was read from without end"
    with open(f"/proc/{rig.daemons()[0]}/statm") as f:
        assert int(f.read().split()[1]) * 4096 < 120 << 20
    shim.stdin.close()
    ids = sorted(json.loads(line)["id"] for line in shim.stdout)
    assert ids == list(range(count))
    assert shim.wait(60) == 0


def test_a_line_over_the_limit_is_refused_by_its_id_and_the_next_is_served(rig, other, ask):
    shim = rig.shim()
    big = ask(7, pad="z" * (5 << 20))
    last = b'{"method":"x","params":{"pad":"' + b"z" * (9 << 20) + b'"},"jsonrpc":"2.0","id":"last"}\n'
    shim.stdin.write(big + last + ask(8, pad="z" * (3 << 20)) + ask(9))
    shim.stdin.flush()
    answers = [json.loads(shim.stdout.readline()) for _ in range(4)]
    assert [a["id"] for a in answers] == [7, "last", 8, 9]
    assert "E1706" in answers[0]["error"]["message"] and "E1706" in answers[1]["error"]["message"]
    assert "result" in answers[2] and "result" in answers[3]


def test_a_mistake_in_the_application_is_an_error_and_no_silence(rig, other, talk):
    shim = rig.shim()
    assert talk(shim, 1, "broken")["error"]["code"] == -32603
    assert talk(shim, 2)["result"]


def test_calls_beyond_the_journal_are_refused_by_name(rig, other, ask):
    shim = rig.shim()
    shim.stdin.write(b"".join(ask(n, delay="never") for n in range(1024)) + ask(1024) + ask("i" * 200))
    shim.stdin.flush()
    first, second = (json.loads(shim.stdout.readline()) for _ in range(2))
    assert first["id"] == 1024 and "E1701" in first["error"]["message"]
    assert second["id"] == "i" * 200 and "E1702" in second["error"]["message"]


def test_a_nul_byte_ends_the_client_with_a_word(rig, other):
    shim = rig.shim()
    shim.stdin.write(b'{"a":\0}\n')
    shim.stdin.flush()
    assert shim.wait(60) == 2 and b"NUL" in shim.stderr.read()


def test_a_hook_gives_its_answer_and_code(rig, other):
    shim = rig.shim("hook", "pre-tool", "--client", "claude")
    out, err = shim.communicate(b"event", timeout=60)
    assert (shim.returncode, out, err) == (7, b"out:EVENT", b"err")


def test_a_hook_whose_daemon_dies_counts_as_refused(rig):
    shim = rig.shim("hook")
    out, err = shim.communicate(b"die", timeout=60)
    assert (shim.returncode, out) == (2, b"") and b"E1505" in err


def test_python_asyncio_and_uvloop_clients(rig, other):
    """Asyncio gives pipes, uvloop gives sockets."""
    code = (
        "import asyncio, json, sys, uvloop\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec(*json.loads(sys.argv[1]), stdin=-1, stdout=-1)\n"
        "    p.stdin.write(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\\n')\n"
        "    print(json.loads(await p.stdout.readline())['id'])\n"
        "    p.stdin.close(); print(await p.wait())\n"
        "asyncio.run(main()); uvloop.run(main())\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, json.dumps(rig.command())], env=rig.env, capture_output=True, text=True, timeout=60
    )
    assert out.stdout.split() == ["1", "0", "1", "0"], out.stderr


def test_a_client_that_closes_both_ends_is_gone_though_a_call_still_runs(rig, other):
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    shim = rig.shim(stdin=in_read, stdout=out_write)
    os.close(in_read)
    os.close(out_write)
    os.write(in_write, b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"delay":"never"}}\n')
    os.close(in_write)
    with pytest.raises(subprocess.TimeoutExpired):
        shim.wait(0.7)  # a call is under way and its answer can still be read
    os.close(out_read)
    assert shim.wait(60) == 0
