"""Files in one folder, by tools of four different risks: `python -m earnest.demo.file_ops FOLDER`.

Every claim of this server is true, which takes some care: `set` calls itself not destructive, so it keeps what it
replaces, and idempotent, so the second of two equal calls does nothing at all.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from earnest.demo.kit import Context, Json, Resource, Server, Tool, ToolError

HISTORY = ".history"
FILE: Json = {"type": "string", "description": "name of a file in the folder"}
TEXT: Json = {"type": "string", "description": "text"}
READ = {"readOnlyHint": True, "openWorldHint": False}
LOCAL = {"readOnlyHint": False, "openWorldHint": False}


class Folder:
    """The files below one folder; nothing outside it is reachable, through links neither."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._root.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[str]:
        """Names of all files, sorted."""
        found = (path.relative_to(self._root) for path in self._root.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if path.parts[0] != HISTORY)

    def path(self, name: str) -> Path:
        """Where the file `name` is; raises `ToolError` for a name that leads outside."""
        path = (self._root / name).resolve()
        inside = path.is_relative_to(self._root) and path != self._root
        if not inside or path.relative_to(self._root).parts[0] == HISTORY:
            raise ToolError(f"{name!r} is not a file of this folder")
        return path

    def overview(self, arguments: Json, context: Context) -> str:
        """All names, one a line."""
        return "\n".join(self.files()) or "(no files)"

    def read(self, arguments: Json, context: Context) -> str:
        """The text of one file."""
        path = self.path(arguments["file"])
        if not path.is_file():
            raise ToolError(f"there is no file {arguments['file']!r}")
        return path.read_text()

    def append(self, arguments: Json, context: Context) -> str:
        """Add to the end; again adds again."""
        path = self.path(arguments["file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(arguments["text"])
        return f"appended {len(arguments['text'])} characters to {arguments['file']}"

    def replace(self, arguments: Json, context: Context) -> str:
        """Replace the text; what was there is kept under `.history`."""
        path = self.path(arguments["file"])
        old = path.read_text() if path.exists() else None
        if old == arguments["text"]:
            return f"{arguments['file']} already has this text"
        if old is not None:
            kept = self._root / HISTORY / path.relative_to(self._root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            number = len(list(kept.parent.glob(f"{kept.name}.*"))) + 1
            kept.with_name(f"{kept.name}.{number}").write_text(old)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(arguments["text"])
        return f"{arguments['file']} is set"

    def delete(self, arguments: Json, context: Context) -> str:
        """Remove one file for good; one that is not there is no error."""
        path = self.path(arguments["file"])
        gone = not path.exists()
        path.unlink(missing_ok=True)
        return f"{arguments['file']} {'was not there' if gone else 'is deleted'}"

    def resources(self) -> Sequence[Resource]:
        """Each file as a resource."""
        return [Resource(self.path(name).as_uri(), name, self.path(name).read_text) for name in self.files()]

    def tools(self) -> Sequence[Tool]:
        """The five tools."""
        one = {"file": FILE}
        two = {"file": FILE, "text": TEXT}
        additive = {**LOCAL, "destructiveHint": False, "idempotentHint": False}
        repeatable = {**LOCAL, "destructiveHint": False, "idempotentHint": True}
        final = {**LOCAL, "destructiveHint": True, "idempotentHint": True}
        return (
            Tool("list", "List the files of the folder.", self.overview, hints=READ),
            Tool("read", "Read a file.", self.read, one, hints=READ),
            Tool("append", "Append text to a file, which is made if need be.", self.append, two, hints=additive),
            Tool("set", "Set the text of a file. Its former text is kept.", self.replace, two, hints=repeatable),
            Tool("delete", "Delete a file for good.", self.delete, one, hints=final),
        )


def main() -> None:
    """Entry point."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m earnest.demo.file_ops FOLDER")
    folder = Folder(Path(sys.argv[1]))
    Server("file-ops", "Files in one folder.", folder.tools, folder.resources).serve()


if __name__ == "__main__":
    main()
