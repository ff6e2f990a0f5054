"""Fuzzes one target with atheris: `python fuzz/one.py TARGET SECONDS CORPUS CRASHES`. Started by scripts/fuzz."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

import atheris  # noqa: E402

with atheris.instrument_imports(include=["earnest"]):
    from fuzz.seeds import seeds
    from fuzz.targets import TARGETS


def main() -> None:
    """Entry point."""
    target, seconds, corpus, crashes = sys.argv[1:]
    os.makedirs(corpus, exist_ok=True)
    for number, data in enumerate(seeds(target)):
        Path(corpus, f"seed-{number}").write_bytes(data)
    # Both are told by the clock on the wall: a machine with other work must not be taken for a slow parser.
    slow = ["-timeout=60", "-report_slow_units=60"]
    options = [f"-max_total_time={seconds}", "-max_len=20000", *slow, "-rss_limit_mb=2048", "-print_final_stats=1"]
    words = [sys.argv[0], *options, f"-artifact_prefix={crashes}/{target}-", corpus]
    atheris.Setup(words, TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
