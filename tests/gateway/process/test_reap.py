"""Server processes of an earlier daemon: ended, and never somebody else's."""

import os
import stat
import subprocess

import pytest

from earnest.gateway.process.peers import process
from earnest.gateway.process.reap import Children


@pytest.fixture
def child():
    one = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield one
    one.kill()
    one.wait()


def test_what_was_left_is_ended(tmp_path, child):
    path = str(tmp_path / "children")
    Children(path).add(child.pid)
    assert Children(path).end_leftovers() == 1
    assert child.wait(60) == -15
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_one_that_ignores_the_request_is_killed(tmp_path):
    stubborn = subprocess.Popen(["sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done"], stdout=subprocess.PIPE,
                                start_new_session=True)  # fmt: skip
    assert stubborn.stdout is not None and stubborn.stdout.readline()
    path = str(tmp_path / "children")
    Children(path).add(stubborn.pid)
    assert Children(path).end_leftovers(limit_s=0.2) == 1
    assert stubborn.wait(60) == -9
    stubborn.stdout.close()


def test_one_that_ended_in_order_is_not_looked_for(tmp_path, child):
    path = str(tmp_path / "children")
    children = Children(path)
    children.add(child.pid)
    one = process(child.pid)
    assert one is not None and children.alive == {(child.pid, one.start)}
    children.remove(child.pid)
    assert children.alive == frozenset()
    assert Children(path).end_leftovers() == 0 and child.poll() is None


def test_a_later_process_of_the_same_number_is_left_alone(tmp_path, child):
    path = tmp_path / "children"
    children = Children(str(path))
    children.add(child.pid)
    words = path.read_text().split()
    path.write_text(" ".join([*words[:3], str(int(words[3]) - 1)]) + "\n")
    assert Children(str(path)).end_leftovers() == 0 and child.poll() is None


def test_numbers_of_another_boot_and_garbage_mean_nothing(tmp_path, child):
    path = tmp_path / "children"
    Children(str(path)).add(child.pid)
    words = path.read_text().split()
    path.write_text(f"+ other-boot {words[2]} {words[3]}\n\xff\n+ {words[1]} x y\n")
    assert Children(str(path)).end_leftovers() == 0 and child.poll() is None
