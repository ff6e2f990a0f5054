"""Compiles the compiled pieces of earnest (`src/earnest/net/_tracks.pyx`, `pdp/_leads.pyx`, decision record 0011) when it is
installed.

    python hatch_build.py              compile it in place, for who works on it (needs Cython)
    python hatch_build.py --sanitize   the same with the address sanitizer, as `scripts/sanitize` does in a copy

Where there is no C compiler, or EARNEST_COMPILED is 0, earnest is installed without them and does the same more slowly.
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


def mark(folder: Path, sources: tuple[str, ...] = SOURCES) -> str:
    """What tells a compiled piece from one that was made of other sources; `tracks.py` and `leads.py` make the same."""
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in sources)).hexdigest()[:16]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


LEADS = Path("src") / "earnest" / "pdp", ("_leads.pyx",)
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def compiled(root: Path, *more: str) -> list[bool]:
    """Which pieces could be made, each beside its source; where one cannot be, says why."""
    return [_compiled(root / folder, sources, more) for folder, sources in ((FOLDER, SOURCES), LEADS)]


def _compiled(folder: Path, sources: tuple[str, ...], more: tuple[str, ...]) -> bool:
    name = sources[0].partition(".")[0]
    target = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    made_of = f'-D{name[1:].upper()}_MARK="{mark(folder, sources)}"'
    flags = ["-O2", "-fPIC", "-fstack-protector-strong", "-D_GNU_SOURCE", made_of]
    link = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch, f"{name}.c"), Path(scratch, "made.so")
        build = [*compiler, *flags, *more, *link, f"-I{include}", "-o", str(made), str(source)]
        try:
            _run([sys.executable, "-m", "cython", "-3", "-o", str(source), str(folder / sources[0])])
            try:
                _run([*build, "-DTRACKS_LIBCRYPTO", "-lcrypto"])  # the one that hashlib uses, without objects around it
            except subprocess.CalledProcessError:
                _run(build)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or str(error)
            print(f"earnest is installed without a compiled piece, {name}: {why.strip()[-500:]}", file=sys.stderr)
            return False
        # In one step, so that a process that runs keeps what it has.
        fresh = target.with_suffix(".new")
        fresh.write_bytes(made.read_bytes())
        fresh.chmod(0o755)
        os.replace(fresh, target)
    return True


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one of this platform if that was done."""
        if self.target_name != "wheel" or os.environ.get("EARNEST_COMPILED") == "0":
            return
        if any(compiled(Path(self.root))):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


if __name__ == "__main__":
    sys.exit(not all(compiled(Path(__file__).parent, *(SANITIZE if "--sanitize" in sys.argv[1:] else ()))))
