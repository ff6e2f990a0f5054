"""A path of the machine in a definition: the same server is another one elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_OWN: Final = re.compile(
    r"\b(?:working directory|current directory|cwd|project root|server's? (?:root|folder)|image "
    r"dir(?:ectory)?)\b[^.\n]{0,40}?[\s:(\"'`]((?:/[\w.@-]+){2,}|[A-Z]:\\[\w\\.-]+)",
    re.I,
)


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        texts = [tool.description]
        texts += [str(schema.get("description", "")) for schema in tool.properties.values() if isinstance(schema, dict)]
        for text in texts:
            found = _OWN.search(text) if "/" in text or "\\" in text else None
            if found:
                yield Note(
                    f"carries a path of the machine it was started on ({found.group(1)})",
                    tool,
                    fix="say “the working directory” instead",
                )
                break


AUDIT = Audit(
    id="local-path",
    severity="note",
    confidence="medium",
    what="A description that quotes the folder in which the server runs.",
    why="The definition changes with the place of the start, so no pin of it holds; and it tells the model, and whoever "
    "logs it, about the machine.",
    how="Name the folder by what it is.",
    example="`download_figma_images` of figma-framelink.",
    check=_check,
)
