"""Small rules of a daemon's life."""

import os
import subprocess
import sys

import pytest

from earnest.gateway.process.life import is_newer


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [("0.2.0", "0.1.9", True), ("0.10", "0.9", True), ("1.0", "1.0", False), ("0.1.0", "0.2.0", False), ("", "0.1", False),
     ("1.0.1+local", "1.0", True), ("x", "0.1", False)],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(one, other, newer):
    assert is_newer(one, other) is newer


def test_a_rotating_log_takes_standard_error_along(tmp_path):
    code = (
        "import os, sys\n"
        "from earnest.gateway.process.logs import DaemonLog\n"
        "import logging\n"
        "log = logging.Logger('x'); log.addHandler(DaemonLog(sys.argv[1], max_bytes=2000, files=2))\n"
        "for n in range(100): log.info('line %d of many', n)\n"
        "os.write(2, b'a crash\\n')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "log")], check=True, env={**os.environ})
    assert "a crash" in (tmp_path / "log").read_text()
    assert sorted(os.listdir(tmp_path)) == ["log", "log.1", "log.2"]
    assert all((tmp_path / name).stat().st_size < 2200 for name in os.listdir(tmp_path))
