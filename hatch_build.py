"""Compiles the one compiled piece of earnest (`src/earnest/net/_tracks.pyx`, decision record 0011) when it is installed.

    python hatch_build.py              compile it in place, for who works on it (needs Cython)
    python hatch_build.py --sanitize   the same with the address sanitizer, to be run as in
        LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \\
            python -m pytest tests/net/test_tracks.py tests/gateway/test_tracks.py

Where there is no C compiler, or EARNEST_COMPILED is 0, earnest is installed without it and does the same more slowly.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    BuildHookInterface = object  # type: ignore[assignment, misc]

FOLDER = Path("src") / "earnest" / "net"
SOURCES = ("_tracks.pyx", "_scan.pxi", "_records.pxi", "_heads.pxi", "_plain.pxi", "_pipes.pxi")


def mark(folder: Path) -> str:
    """What tells a compiled piece from one that was made of other sources; `tracks.py` makes the same."""
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def compiled(root: Path, *more: str) -> Path | None:
    """The compiled piece, made beside its source. None, and said why, where it cannot be made."""
    folder = root / FOLDER
    target = folder / f"_tracks{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ["-O2", "-fPIC", "-fstack-protector-strong", "-D_GNU_SOURCE", f'-DTRACKS_MARK="{mark(folder)}"']
    link = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch, "_tracks.c"), Path(scratch, "made.so")
        build = [*compiler, *flags, *more, *link, f"-I{include}", "-o", str(made), str(source)]
        try:
            _run([sys.executable, "-m", "cython", "-3", "-o", str(source), str(folder / SOURCES[0])])
            try:
                _run([*build, "-DTRACKS_LIBCRYPTO", "-lcrypto"])  # the one that hashlib uses, without objects around it
            except subprocess.CalledProcessError:
                _run(build)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or str(error)
            print(f"earnest is installed without its compiled piece: {why.strip()[-500:]}", file=sys.stderr)
            return None
        # In one step, so that a process that runs keeps what it has.
        fresh = target.with_suffix(".new")
        fresh.write_bytes(made.read_bytes())
        fresh.chmod(0o755)
        os.replace(fresh, target)
    return target


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one of this platform if that was done."""
        if self.target_name != "wheel" or os.environ.get("EARNEST_COMPILED") == "0":
            return
        if compiled(Path(self.root)) is not None:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


if __name__ == "__main__":
    sys.exit(compiled(Path(__file__).parent, *(SANITIZE if "--sanitize" in sys.argv[1:] else ())) is None)
