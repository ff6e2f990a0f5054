"""How long lint takes: `python bench/lint.py PATH…` over recordings, on one core.

Prints CPU seconds for reading and for all audits, the audits that cost most, and tools a second; exit code 1 above LIMIT_S.
"""

import sys
import time
from collections import Counter
from pathlib import Path

from earnest.lint.evidence import gather
from earnest.lint.reading import read_path
from earnest.lint.registry import AUDITS

LIMIT_S = 10.0


def main(paths: list[str]) -> int:
    start = time.process_time()
    servers = [server for path in paths for server in read_path(Path(path))]
    read = time.process_time()
    spent: Counter[str] = Counter()
    findings = 0
    for server in servers:
        before = time.process_time()
        seen = gather(server)
        spent["(language)"] += time.process_time() - before
        for audit in AUDITS:
            before = time.process_time()
            findings += sum(1 for _ in audit.run(seen))
            spent[audit.id] += time.process_time() - before
    end = time.process_time()
    tools = sum(len(server.tools) for server in servers)
    print(f"{len(servers)} servers, {tools} tools, {findings} findings")
    spent_s = f"reading {read - start:.2f} s, audits {end - read:.2f} s, all {end - start:.2f} s of CPU"
    print(f"{spent_s}; {tools / (end - start):.0f} tools a second")
    for name, seconds in spent.most_common(5):
        print(f"  {name:<24}{seconds:>7.2f} s")
    return int(end - start > LIMIT_S)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
