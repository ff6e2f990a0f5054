"""What the shim adds to the interpreter's own start: from before the spawn until a daemon holds header and descriptors.

    python bench/shim_start.py [--rounds 40]

Compared with the whole life of `python -I -S -c pass`, interleaved; the machine's speed drifts, so compare within one run.
To hold: the command's handover takes no more than 10 ms longer than the bare interpreter (medians).
"""

import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from earnest.gateway.process import arrivals  # noqa: E402
from earnest.shim import activate, paths  # noqa: E402

DESCRIPTORS = 6
"""Its three streams, the journal, and a pipe."""


def _bare() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - start


def _handover(listener: socket.socket, command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    shim = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    fds: list[int] = []
    try:
        sock, _ = listener.accept()
        data = arrivals.receive(sock, 1 << 18, fds)
        took = time.perf_counter() - start
        if len(data) <= 100 or len(fds) != DESCRIPTORS:
            raise SystemExit(f"{command[-2:]}: handed over {len(data)} bytes and {len(fds)} descriptors, not {DESCRIPTORS}")
        arrivals.end(sock, 0, "")
        sock.close()
    finally:
        for fd in fds:  # its end of its output is one of them
            os.close(fd)
        if sys.exc_info()[0] is not None:
            shim.kill()
        shim.communicate()
    return took


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        library = at / "v/lib/python3.11/site-packages"
        library.mkdir(parents=True)
        (at / "v/bin").mkdir()
        (at / "v/bin/python3").symlink_to(sys.executable)
        (at / "v/bin/earnest").symlink_to(ROOT / "bin/earnest")
        installed = at / "v/bin/installed"
        installed.write_bytes((ROOT / "bin/earnest").read_bytes())
        installed.chmod(0o755)
        (library / "_editable_impl_earnest.pth").write_text(str(ROOT / "src"))
        (at / "link").symlink_to(installed)
        env = {"HOME": folder, "PATH": os.environ["PATH"], "LOGNAME": "x", "SHELL": "/bin/sh", "TERM": "x", "USER": "x"}
        os.chmod(folder, 0o700)
        place = paths.open_folder(paths.instance(env))
        raw = activate.listen(place)
        listener = socket.socket(fileno=raw.detach())
        boot = [sys.executable, "-I", "-S", str(ROOT / "src/earnest/shim/boot.py"), "stdio", "x"]
        took: dict[str, list[float]] = {}
        for n in range(rounds + 3):
            one = {
                "python -I -S -c pass, whole life": _bare(),
                "boot.py, to handover": _handover(listener, boot, env),
                "earnest stdio, to handover": _handover(listener, [str(installed), "stdio", "x"], env),
                "same by a symlink": _handover(listener, [str(at / "link"), "stdio", "x"], env),
            }
            if n >= 3:  # the first rounds write the compiled files
                for name, seconds in one.items():
                    took.setdefault(name, []).append(seconds * 1000)
    bare = statistics.median(next(iter(took.values())))
    print(f"{'ms':34} {'median':>7} {'min':>7} {'p90':>7} {'added':>7}")
    for name, values in took.items():
        values.sort()
        median, p90 = statistics.median(values), values[int(len(values) * 0.9)]
        print(f"{name:34} {median:7.1f} {values[0]:7.1f} {p90:7.1f} {median - bare:+7.1f}")


if __name__ == "__main__":
    main()
