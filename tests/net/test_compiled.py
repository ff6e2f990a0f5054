"""The compiled piece: where it can be made it is there, so that no test of it is skipped unnoticed."""

import os
import shlex
import shutil
import sysconfig
from pathlib import Path

import pytest

from earnest.net.tracks import AVAILABLE


def test_where_it_can_be_compiled_it_is_there_and_of_these_sources() -> None:
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    headers = Path(sysconfig.get_paths()["include"], "Python.h")
    if shutil.which(compiler) is None or not headers.exists() or os.environ.get("EARNEST_COMPILED") == "0":
        pytest.skip(f"nothing to compile with ({compiler}, {headers}), or EARNEST_COMPILED is 0")
    assert AVAILABLE, "missing, or made of other sources than lie here: run `python hatch_build.py`"
