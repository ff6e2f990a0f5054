"""Values guessed from names and descriptions, so that a call gets somewhere: the fixture's files, its repository, its tables.

What a tool does (its verb) settles what its paths should be: one that creates gets a path where nothing is, then one where
something is; one that reads or deletes gets what is there. Table first, code only for what a table cannot say.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from earnest.assay.arguments.complaints import Complaints
from earnest.assay.arguments.harvest import words
from earnest.assay.fixture import Fixture

_CREATING: Final = frozenset(
    {
        "create",
        "write",
        "add",
        "new",
        "save",
        "make",
        "mkdir",
        "touch",
        "export",
        "generate",
        "init",
        "download",
        "copy",
        "clone",
    }
)
_CHANGING: Final = frozenset(
    {
        "update",
        "edit",
        "append",
        "insert",
        "set",
        "put",
        "patch",
        "modify",
        "replace",
        "rename",
        "move",
        "format",
        "apply",
        "change",
    }
)
_DELETING: Final = frozenset(
    {"delete", "remove", "drop", "clear", "purge", "reset", "destroy", "erase", "truncate", "unset", "archive"}
)
_PATH: Final = frozenset(
    {"path", "file", "filename", "filepath", "directory", "dir", "folder", "root", "cwd", "workdir", "pathname", "location"}
)
_FOLDER: Final = frozenset({"directory", "dir", "folder", "root", "cwd", "workdir", "workspace"})
_TARGET: Final = frozenset({"destination", "dest", "target", "output", "out", "to", "new"})
_EXTENSIONS: Final = (
    ("xlsx", ("xlsx", "excel", "workbook", "spreadsheet"), "book.xlsx"),
    ("docx", ("docx", "word document"), "letter.docx"),
    ("pdf", ("pdf",), "letter.pdf"),
    ("csv", ("csv",), "data.csv"),
    ("json", ("json file", ".json"), "data.json"),
    ("jsonl", ("jsonl",), "events.jsonl"),
    ("png", ("image", "picture", "png", "photo", "media"), "picture.png"),
    ("db", ("sqlite", "database file", ".db"), "app.db"),
    ("html", ("html",), "page.html"),
    ("py", ("python file", "python script"), "main.py"),
    ("md", ("markdown",), "README.md"),
    ("yaml", ("yaml", "yml"), "config.yaml"),
    ("ipynb", ("ipynb", "notebook", "jupyter"), "analysis.ipynb"),
    ("zip", ("zip", "archive file"), "bundle.zip"),
)
_BY_WORD: Final[Mapping[str, Sequence[Any]]] = {
    "query": ("alpha",), "search": ("alpha",), "keyword": ("alpha",), "term": ("alpha",), "pattern": ("alpha", "*.txt", "**/*"),
    "glob": ("*.txt", "**/*"), "regex": ("alpha",), "filter": ("alpha",), "q": ("alpha",), "symbol": ("alpha",),
    "topic": ("alpha",),
    "content": ("sample text about alpha\n", "another text\n"), "text": ("sample text about alpha", "another text"),
    "body": ("sample text about alpha",), "message": ("sample message",), "msg": ("sample message",), "note": ("sample note",),
    "description": ("a sample",), "comment": ("a sample comment",), "summary": ("a sample summary",),
    "reason": ("a sample reason",),
    "title": ("sample", "alpha"), "name": ("sample", "alpha", "notes"), "label": ("sample",), "subject": ("sample",),
    "tag": ("sample", "v1"), "category": ("sample",), "key": ("alpha", "sample"), "value": ("sample", "10"), "field": ("name",),
    "prompt": ("Say alpha",), "question": ("What is alpha?",), "thought": ("First, alpha.",), "email": ("ada@example.com",),
    "recipient": ("ada@example.com",), "sender": ("bob@example.com",), "user": ("ada",), "username": ("ada",),
    "owner": ("ada",),
    "author": ("Ada Example",), "assignee": ("ada",), "phone": ("+12025550123",), "city": ("Paris",), "country": ("FR",),
    "timezone": ("Europe/Paris", "UTC"), "tz": ("Europe/Paris",), "language": ("en",), "lang": ("en",), "locale": ("en",),
    "currency": ("EUR",), "time": ("09:30", "2026-03-14T09:30:00Z"), "date": ("2026-03-14",), "due": ("2026-03-20",),
    "deadline": ("2026-03-20",), "since": ("2026-03-01",), "until": ("2026-03-31",), "start": ("2026-03-14T09:30:00Z",),
    "end": ("2026-03-14T10:30:00Z",), "when": ("2026-03-14T09:30:00Z",), "timestamp": ("2026-03-14T09:30:00Z",),
    "branch": ("feature", "topic"), "base": ("main",), "revision": ("HEAD", "main"), "rev": ("HEAD",), "commit": ("HEAD",),
    "ref": ("HEAD", "main"), "sha": ("HEAD",), "remote": ("origin",), "hostname": ("example.com",), "host": ("example.com",),
    "domain": ("example.com",), "command": ("echo alpha", "ls", "touch made.txt"), "cmd": ("echo alpha", "touch made.txt"),
    "shell": ("echo alpha",), "script": ("echo alpha",), "code": ("print('alpha')", "open('made.txt', 'w').write('x')"),
    "expression": ("1 + 2",), "formula": ("=A1",), "equation": ("1 + 2",), "table": ("notes",), "column": ("title",),
    "schema": ("main",), "sheet": ("Sheet1", "Sheet2"), "cell": ("A1", "B2"), "range": ("A1:C5", "A1:B2"),
    "color": ("#336699",),
    "id": ("1",), "uuid": ("7d2c3f1e-8a4b-4c5d-9e6f-0a1b2c3d4e5f",), "status": ("open", "done"), "state": ("open", "closed"),
    "priority": ("high", "1"), "level": ("info",), "mode": ("default",), "format": ("json", "text"), "type": ("sample", "note"),
    "operation": ("list", "get", "set"), "action": ("list", "get", "create"), "method": ("GET", "POST"), "entity": ("alpha",),
    "relation": ("knows",), "observation": ("alpha is a sample",), "context": ("sample",), "data": ("sample",),
    "input": ("alpha",),
    "mailbox": ("INBOX",), "channel": ("general",), "project": ("sample",), "repo": ("sample",), "item": ("alpha",),
    "task": ("sample",),
    "todo": ("sample",), "list": ("sample",), "session": ("s1",), "namespace": ("default",), "resource": ("alpha",),
    "object": ("HEAD",),
    "library": ("alpha",), "package": ("alpha",), "word": ("alpha",), "string": ("alpha",), "parent": ("1",),
    "selector": ("h1",),
    "from": ("alpha",), "to": ("beta",), "old": ("alpha",), "find": ("alpha",), "replace": ("omega",),
    "replacement": ("omega",),
}  # fmt: skip
_NUMBERS: Final[Mapping[str, Sequence[int]]] = {
    "limit": (5,), "max": (5,), "count": (3, 5), "n": (3,), "top": (5,), "page": (1,), "size": (10,), "offset": (0,),
    "depth": (2,),
    "line": (1,), "timeout": (5,), "duration": (1,), "seconds": (1,), "step": (1,), "context": (3,), "width": (10,),
    "height": (10,),
    "id": (1, 2), "index": (0, 1), "row": (1,), "col": (1,), "column": (1,), "head": (2,), "tail": (2,), "length": (1000,),
    "amount": (10,), "quantity": (1,), "price": (10,), "year": (2026,), "month": (3,), "day": (14,), "port": (8080,),
    "score": (5,),
    "latitude": (48,), "longitude": (2,), "lat": (48,), "lon": (2,), "lng": (2,), "pid": (1,), "start": (0, 1), "end": (2, 5),
}  # fmt: skip
_YES: Final = frozenset({"confirm", "confirmed", "force", "yes", "sure", "acknowledge", "approve", "recursive", "parent"})
_NO: Final = frozenset({"dry", "preview", "simulate", "interactive", "background", "wait"})
_QUOTED: Final = re.compile(
    r"(?:e\.g\.?,?|for example|such as|like|example:?|i\.e\.?|default(?:s to)?:?)\s*[:(]?\s*[\"'`]([^\"'`\n]{1,80})[\"'`]", re.I
)
_CHOICES: Final = re.compile(r"[\"'`]([A-Za-z][\w-]{0,30})[\"'`](?=\s*(?:,|\||or\b|and\b|\)|-|:|/|$))")


_ANY_QUOTED: Final = re.compile(r"[\"'`]([^\"'`\n{}]{1,60})[\"'`]")
_ONE_BASED: Final = re.compile(r"\b1-based\b|\bfrom 1\b|\bstarts? at 1\b", re.I)


def _kind_in(context: str, besides: frozenset[str] = frozenset()) -> str:
    """The kind of file a text speaks of, by ending."""
    for ending, hints, _ in _EXTENSIONS:
        if ending not in besides and any(hint in context for hint in hints):
            return ending
    return ""


def quoted(said: str) -> list[str]:
    """Values that a description gives as examples."""
    return [value for value in _QUOTED.findall(said) if "{" not in value and "..." not in value]


class Guesses:
    """Guesses for one tool. `extra` are further values by parameter: harvested ones, mined ones, a person's own."""

    def __init__(
        self,
        tool: str,
        description: str,
        fixture: Fixture,
        extra: Callable[[str], Sequence[Any]],
        fallback: Callable[[str], Sequence[Any]] = lambda name: (),
        siblings: Sequence[str] = (),
        complaints: Complaints | None = None,
        elsewhere: Callable[[str], Sequence[Any]] = lambda name: (),
    ) -> None:
        """`complaints`: what earlier calls were answered that failed; they often name what would do. `fallback` values come
        after the guesses. `siblings`: all parameters of the tool. `elsewhere`: what other tools say of a parameter of that
        name."""
        beside = {word for name in siblings for word in words(name)}
        self._complaints = complaints or Complaints()
        self._named = bool(beside & {"repo", "repository"})
        """Whether a parameter says which repository; if none does, the path does."""
        self._in_repository = self._named or "git" in words(tool)
        self._tool, self._description, self._fixture = tool, description, fixture
        self._verbs = frozenset(words(tool))
        beside_paths = [name for name in siblings if set(words(name)) & _PATH]
        self._paths_beside = len(beside_paths)
        self._others_kinds = frozenset(filter(None, (_kind_in(" ".join(words(name))) for name in beside_paths)))
        """Kinds of files that paths beside name: one without a kind of its own is of another."""
        self._extra, self._fallback, self._elsewhere = extra, fallback, elsewhere
        self._made: dict[tuple[str, int, str, int], Sequence[Any]] = {}

    def __call__(self, name: str, schema: Mapping[str, Any]) -> Sequence[Any]:
        """Values for a parameter, best first."""
        key = name, id(schema.get("description")), repr(schema.get("type")), len(schema)
        if key not in self._made:
            self._made[key] = self._guessed(name, schema)
        return self._made[key]

    def _guessed(self, name: str, schema: Mapping[str, Any]) -> Sequence[Any]:
        parts = words(name)
        said = str(schema.get("description") or schema.get("title") or "")
        heard = self._complaints
        found: list[Any] = [*heard.offers(self._tool, name), *heard.numbers(self._tool, name), *self._extra(name)]
        found += self._special(name, parts, said)
        choices = _CHOICES.findall(said)[:6]
        found += choices if len(choices) > 1 else []
        found += quoted(said)
        found += self._table(parts)
        found += choices
        found += [value for value in _ANY_QUOTED.findall(said) if "..." not in value]
        found += self._elsewhere(name)
        if not found and self._description:
            found += self._from_description(name)
        if not found:
            found += self._table(words(said)[-8:])
        if schema.get("type") == "string" and not schema.keys() & {"pattern", "format", "enum", "minLength", "maxLength"}:
            found += ["sample", "alpha"]
        found += self._fallback(name)
        if _ONE_BASED.search(said):
            found = [value for value in found if value != 0]
        return sorted(found, key=lambda value: heard.bad(self._tool, name, value))

    def least(self, name: str) -> int:
        """How many elements a list is said to need."""
        return self._complaints.least(self._tool, name)

    def wish(self, name: str) -> bool | None:
        """Whether a member that may be left out is to be there (True), or not (False)."""
        return self._complaints.wish(self._tool, name)

    def _table(self, parts: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        for part in reversed(parts):
            found += _BY_WORD.get(part, ())
            found += _NUMBERS.get(part, ())
            if part in _YES:
                found.append(True)
            if part in _NO:
                found.append(False)
        return found

    def _from_description(self, name: str) -> list[str]:
        """Values that the tool's description quotes beside the parameter's name."""
        at = self._description.find(name)
        return _QUOTED.findall(self._description[at : at + 200]) if at >= 0 else []

    def _special(self, name: str, parts: Sequence[str], said: str) -> list[Any]:
        own = set(parts)
        text = f"{said} {name}".lower()
        if "base64" in text and not own & _PATH:
            return self._encoded(name, said)
        if own & {"sql", "query", "statement"} and re.search(
            r"\bsql\b|\bselect\b|\bquery to execute|\bcreate table|\binsert\b", text + self._description.lower()
        ):
            return list(self._sql())
        if own & {"url", "uri", "link", "href", "website", "endpoint", "address"} and "path" not in own:
            return self._addresses(text)
        if own & {"repo", "repository"}:
            return (
                [self._fixture.repository] if own & _PATH or "path" in text or "git" in self._tool.lower() else ["ada/sample"]
            )
        several = name.lower().endswith("s")
        if self._in_repository and own & {"path", "cwd", "directory"} and not (self._named or several or own & {"file"}):
            return [self._fixture.repository]
        if self._in_repository and own & {"file", "path", "pathspec", "filename"}:
            return ["gamma.txt", "README.md", "alpha.txt"]
        if self._in_repository and own & {"target", "source", "revision", "ref", "commit", "base"}:
            return ["main", "HEAD", "feature"]
        ends = own & {"source", "destination", "src", "dest", "target", "output"}
        if own & _PATH or (ends and ("path" in text or "file" in text or self._verbs & (_PATH | {"move", "copy", "rename"}))):
            return self._paths(name, own, said)
        if own & {"branch"} and self._verbs & _CREATING:
            return ["topic", "feature"]
        if self._verbs & (_CHANGING | _DELETING) and own & {"name", "title", "key", "id"}:
            return []
        if own & {"old", "search", "find"} and own & {"text", "string", "str", "content"}:
            return ["alpha is the first note", "alpha"]
        if own & {"new", "replacement"} and own & {"text", "string", "str", "content"}:
            return ["omega is the first note"]
        return []

    def _sql(self) -> Sequence[str]:
        if self._verbs & {"create"}:
            return ("CREATE TABLE extra (id INTEGER PRIMARY KEY, name TEXT)",)
        if self._verbs & (_DELETING | _CHANGING | {"write", "execute", "exec"}):
            return (
                "INSERT INTO notes (title, body) VALUES ('delta', 'one more')",
                "UPDATE notes SET body = 'changed' WHERE title = 'alpha'",
                "DELETE FROM notes WHERE title = 'beta'",
                "CREATE TABLE other (id INTEGER PRIMARY KEY, name TEXT)",
            )
        if self._verbs & {"read", "select", "query", "run"}:
            return ("SELECT * FROM notes", "SELECT 1", "INSERT INTO notes (title, body) VALUES ('delta', 'one more')")
        return ("SELECT * FROM notes", "SELECT 1")

    def _addresses(self, text: str) -> list[str]:
        site = ["https://example.com/page.html", "https://example.com/data.json", "http://example.org/notes.txt"]
        if "file:" in text or "local" in text:
            return [f"file://{self._fixture.file('letter.docx')}", *site]
        if "image" in text:
            return ["https://example.com/picture.png", *site]
        return site

    def _encoded(self, name: str, said: str) -> list[str]:
        """A file of the fixture in base64."""
        try:
            with open(os.path.join(self._fixture.source, "workspace", self._kind(name, said)[1]), "rb") as file:
                return [base64.b64encode(file.read()).decode(), "c2FtcGxl"]
        except OSError:
            return ["c2FtcGxl"]

    def _kind(self, name: str, said: str) -> tuple[str, str]:
        """The kind of file a parameter is about: its ending, and the fixture's. What is said nearest to it counts."""
        samples = {ending: sample for ending, _, sample in _EXTENSIONS}
        own = _kind_in(" ".join(words(name)))
        if own:
            return own, samples[own]
        for wanted in self._complaints.endings(self._tool, name):
            if wanted in samples:
                return wanted, samples[wanted]
        near = (said.lower(), " ".join(words(self._tool)), self._description.lower())
        for context in (*near, self._complaints.words_of(self._tool)):
            found = _kind_in(context, self._others_kinds)
            if found:
                return found, samples[found]
        return "txt", "notes.txt"

    def _paths(self, name: str, own: set[str], said: str) -> list[str]:
        fixture, verbs = self._fixture, self._verbs
        if "git" in verbs and own & _FOLDER | own & {"path"} and "file" not in own:
            return [fixture.repository, "alpha.txt"]
        extension, existing = self._kind(name, said)
        here, fresh = fixture.file(existing), fixture.file(f"made.{extension}")
        folders = [fixture.workspace, fixture.file("docs"), fixture.file("empty")]
        if own & _TARGET or (own & {"destination", "dest"}):
            return [fresh, fixture.file(f"moved.{extension}"), fixture.file("made"), here]
        lowered = said.lower()
        folder = bool(own & _FOLDER) or ("director" in lowered and "file" not in own and "file" not in lowered)
        if folder or (verbs & {"mkdir", "directory", "folder", "dir", "tree"} and "file" not in own):
            return [fixture.file("made"), *folders] if verbs & _CREATING else [*folders, here]
        source = self._paths_beside > 1 and own == {"path"}  # the other one is what is made
        if own & {"source", "src", "old"} or source or not verbs & _CREATING:
            rest = [fixture.file("old.txt"), *folders]
            return [here, os.path.basename(here), *rest] if not verbs & _DELETING else [fixture.file("old.txt"), here, *rest]
        return [fresh, here, os.path.basename(fresh), *folders]
