"""How many known lies lint finds: `python bench/lint_flip.py PATH…` over recordings.

Takes every tool whose own hints say that it writes (`readOnlyHint: false`), turns that one hint round, and counts those that
`read-only-but-writes` then finds. The truth is the server's own word, so it is known without labels; what the words do not give
away (a "manage" without a list, a tool that only stops a session) cannot be found.
"""

import sys
from collections import Counter
from pathlib import Path

import msgspec

from earnest.lint.model import Tool, tool_of
from earnest.lint.reading import read_path
from earnest.lint.run import Selection, lint

ONLY = Selection(persona="pedantic", only=frozenset(["read-only-but-writes"]))


def turned(tool: Tool) -> Tool:
    """The tool, claiming that it only reads."""
    hints = {name: value for name, value in tool.annotations.items() if name != "destructiveHint"}
    return tool_of({**tool.definition, "annotations": {**hints, "readOnlyHint": True}})


def main(paths: list[str]) -> int:
    found: Counter[str] = Counter()
    for server in (one for path in paths for one in read_path(Path(path))):
        lies = tuple(turned(tool) for tool in server.tools if tool.raw.read_only is False)
        sure = {one.tool: one.confidence for one in lint([msgspec.structs.replace(server, tools=lies)], ONLY)}
        found.update(sure.get(tool.name, "missed") for tool in lies)
    total = sum(found.values())
    for name in ("high", "medium", "low", "missed"):
        print(f"{name:<8}{found[name]:>6} of {total}  {found[name] / max(total, 1):.1%}")
    return 0 if found["high"] + found["medium"] >= 0.7 * total else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("python bench/lint_flip.py PATH…")
    sys.exit(main(sys.argv[1:]))
