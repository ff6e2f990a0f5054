"""The generated sections of docs/lint.md: `python -m earnest.lint.page docs/lint.md` writes them, `--check` compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from earnest.lint.explain import audits, profiles


def render(page: str) -> str:
    """The page with its generated sections renewed. Raises ValueError if it lacks the marks of one."""
    for name, text in (("audits", audits()), ("profiles", profiles())):
        marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
        if not marks.search(page):
            raise ValueError(f"the page has no section {name!r}")
        page = marks.sub(lambda m, text=text: f"{m.group(1)}\n{text}\n{m.group(2)}", page)  # type: ignore[misc]
    return page


def main(argv: list[str]) -> int:
    """Writes or checks; 1 if the page is out of date."""
    paths = [one for one in argv if not one.startswith("-")]
    if len(paths) != 1:
        print("python -m earnest.lint.page [--check] docs/lint.md", file=sys.stderr)
        return 2
    path = Path(paths[0])
    before = path.read_text("utf-8")
    after = render(before)
    if "--check" in argv:
        return int(after != before)
    path.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
