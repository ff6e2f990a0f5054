"""The shared fixtures keep their promises: nothing leaks from one test into another, nothing hangs."""

import os
import subprocess
import sys

import pytest

from conftest import end_daemons


def test_a_home_is_empty_private_and_short(home):
    assert home.env["HOME"] == str(home.path) and home.earnest.parent == home.path
    assert not home.earnest.exists() and home.config.parent.is_dir() and not home.config.exists()
    assert home.path.stat().st_mode & 0o077 == 0
    assert len(str(home.earnest / "c-0123456789abcdef" / "s")) < 60
    assert not {name for name in home.env if name.startswith("EARNEST_")} - {"EARNEST_HOME"}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_what_still_runs_with_a_home_is_ended_with_it_and_nothing_else(home, tmp_path):
    sleep = [sys.executable, "-S", "-c", "print(flush=True); import time; time.sleep(60)"]
    own = subprocess.Popen(sleep, env=home.env, stdout=subprocess.PIPE, start_new_session=True)
    other = subprocess.Popen(sleep, env={**home.env, "HOME": "/", "EARNEST_HOME": "/"}, stdout=subprocess.PIPE)
    try:
        own.stdout.readline()
        other.stdout.readline()
        end_daemons(home.path)
        assert own.wait(60) == -9
        assert other.poll() is None
    finally:
        for process in (own, other):
            process.kill()
            process.communicate()


def test_a_bounded_run_gives_output_code_and_input(run_bounded):
    code = "import sys; print(input()); print('e', file=sys.stderr); sys.exit(3)"
    done = run_bounded([sys.executable, "-c", code], input="hello\n")
    assert (done.code, done.out, done.err) == (3, "hello\n", "e\n")


def test_a_bounded_run_that_hangs_fails_the_test(run_bounded):
    with pytest.raises(pytest.fail.Exception, match="did not end"):
        run_bounded([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.3)
