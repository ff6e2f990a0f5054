"""What is there for tools to read and change: a home with files, a repository, databases, a mailbox, a small site.

The same bytes each time (but for the repository's, which its dates fix too), so that sessions can be compared. Words recur
(`alpha`, `beta`), so that a search for one finds something.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import zipfile
import zlib
from typing import Final

import msgspec

WORDS: Final = "alpha"
_GIT_ENV: Final = {
    "GIT_AUTHOR_NAME": "Ada Example", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_COMMITTER_NAME": "Ada Example",
    "GIT_COMMITTER_EMAIL": "ada@example.com", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip
_TEXT: Final = {
    "workspace/notes.txt": "alpha is the first note\nbeta is the second note\ngamma is the third note\n",
    "workspace/todo.md": "# To do\n\n- [ ] alpha: write a report\n- [x] beta: call Ada\n- [ ] gamma: water plants\n",
    "workspace/README.md": "# Sample\n\nA sample project. It has notes about alpha and beta.\n",
    "workspace/data.csv": "id,name,amount\n1,alpha,10\n2,beta,20\n3,gamma,30\n",
    "workspace/data.json": '{"items": [{"id": 1, "name": "alpha"}, {"id": 2, "name": "beta"}], "title": "sample"}\n',
    "workspace/events.jsonl": '{"id": 1, "kind": "login", "who": "ada"}\n{"id": 2, "kind": "logout", "who": "ada"}\n',
    "workspace/config.yaml": "name: sample\nlevel: 2\nitems:\n  - alpha\n  - beta\n",
    "workspace/page.html": "<!doctype html><title>Sample</title><h1>Alpha</h1><p>About <a href='data.json'>alpha</a>.</p>\n",
    "workspace/main.py": 'def alpha(name):\n    """Say hello."""\n    return f"hello {name}"\n\n\nprint(alpha("beta"))\n',
    "workspace/index.js": "export function alpha(name) {\n  return `hello ${name}`;\n}\n",
    "workspace/old.txt": "alpha: an old file that nobody needs\n",
    "workspace/docs/guide.md": "# Guide\n\nHow to alpha, and when to beta.\n",
    "workspace/docs/letter.txt": "Dear Ada,\nalpha went well.\nYours, Bob\n",
    "workspace/analysis.ipynb": json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "id": "c1", "metadata": {}, "source": ["# Alpha"]},
                {
                    "cell_type": "code", "execution_count": None, "id": "c2", "metadata": {}, "outputs": [],
                    "source": ["print('alpha')"],
                },
            ],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ),
    "workspace/empty/.keep": "",
    "mail/inbox.mbox": (
        "From bob@example.com Sat Mar 14 09:30:00 2026\nFrom: Bob <bob@example.com>\nTo: Ada <ada@example.com>\n"
        "Subject: alpha\nDate: Sat, 14 Mar 2026 09:30:00 +0000\nMessage-ID: <1@example.com>\n\nHow is alpha doing?\n\n"
    ),
    "Maildir/cur/1773480600.M1.example:2,S": (
        "From: Bob <bob@example.com>\nTo: Ada <ada@example.com>\nSubject: beta\n"
        "Date: Sat, 14 Mar 2026 09:30:00 +0000\nMessage-ID: <2@example.com>\n\nAnd beta?\n"
    ),
    ".gitconfig": "[user]\n\tname = Ada Example\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n",
    ".bashrc": "export EDITOR=true\n",
    ".cache/viewer/thumbnails.db": "kept by another program: alpha\n",
    ".config/viewer/settings.json": '{"theme": "dark", "recent": ["notes.txt"]}\n',
    ".local/share/viewer/library.json": '{"books": [{"id": 1, "title": "alpha"}]}\n',
}  # fmt: skip
_TABLES: Final = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
INSERT INTO notes (title, body) VALUES ('alpha', 'the first note'), ('beta', 'the second note'), ('gamma', 'the third');
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE);
INSERT INTO people (name, email) VALUES ('Ada', 'ada@example.com'), ('Bob', 'bob@example.com');
"""


class Fixture(msgspec.Struct, frozen=True):
    """Where the things of the fixture are, as paths inside the box. `source` is its home on this machine."""

    source: str
    home: str

    @property
    def workspace(self) -> str:
        return f"{self.home}/workspace"

    @property
    def repository(self) -> str:
        return f"{self.home}/repo"

    @property
    def database(self) -> str:
        return f"{self.home}/workspace/app.db"

    def has(self, value: str) -> bool:
        """Whether a path, whole or from the workspace or the repository, is of something that is there from the beginning."""
        for folder in (self.home, self.workspace, self.repository):
            relative = value[len(folder) + 1 :] if value.startswith(folder + "/") else value if folder != self.home else ""
            if (
                relative
                and not relative.startswith("/")
                and os.path.exists(os.path.join(self.source, folder[len(self.home) + 1 :], relative))
            ):
                return True
        return value in (self.home, self.workspace, self.repository)

    def file(self, name: str) -> str:
        """A file of the workspace."""
        return f"{self.workspace}/{name}"


def build(source: str, home: str) -> Fixture:
    """Write the fixture to `source`, a folder that is not there yet, for a box in which it is `home`."""
    for name, text in _TEXT.items():
        path = os.path.join(source, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for folder in ("Maildir/new", "Maildir/tmp", "Desktop", "Documents", "Downloads"):
        os.makedirs(os.path.join(source, folder), exist_ok=True)
    for name, data in (
        ("picture.png", _picture()),
        ("book.xlsx", _workbook()),
        ("letter.docx", _document()),
        ("letter.pdf", _pdf()),
        ("bundle.zip", _bundle()),
    ):
        with open(os.path.join(source, "workspace", name), "wb") as binary:
            binary.write(data)
    database = sqlite3.connect(os.path.join(source, "workspace", "app.db"))
    with database:
        database.executescript(_TABLES)
    database.close()
    _repository(os.path.join(source, "repo"), source, home)
    return Fixture(source, home)


def _repository(folder: str, home: str, inside: str) -> None:
    """A repository with a branch to merge, a staged and an unstaged change, a file git does not know, and a remote beside it
    that lacks its last commit and has a branch that it lacks."""
    os.makedirs(folder)
    if shutil.which("git") is None:
        return
    environment = {**os.environ, **_GIT_ENV, "HOME": home}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)

    def git(*words: str, when: str = "2026-03-14T09:30:00Z") -> None:
        dated = {**environment, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        command = ["git", "-c", "gc.auto=0", *words]
        subprocess.run(command, cwd=folder, env=dated, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(name: str, text: str) -> None:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    git("init", "-q", "-b", "main")
    git("config", "user.name", "Ada Example")
    git("config", "user.email", "ada@example.com")
    write("alpha.txt", "alpha one\n")
    write("README.md", "# Repo\n")
    git("add", ".")
    git("commit", "-q", "-m", "First")
    git("init", "-q", "--bare", "-b", "main", os.path.join(home, "origin.git"))
    git("push", "-q", os.path.join(home, "origin.git"), "main")
    git("checkout", "-q", "-b", "feature")
    write("feature.txt", "a feature\n")
    git("add", "feature.txt")
    git("commit", "-q", "-m", "Feature", when="2026-03-14T10:30:00Z")
    git("push", "-q", os.path.join(home, "origin.git"), "feature:work")
    git("checkout", "-q", "main")
    write("alpha.txt", "alpha one\nalpha two\n")
    git("commit", "-q", "-a", "-m", "Second", when="2026-03-15T09:30:00Z")
    git("tag", "v1")
    git("remote", "add", "origin", f"{inside}/origin.git")
    git("config", "branch.main.remote", "origin")
    git("config", "branch.main.merge", "refs/heads/main")
    write("beta.txt", "beta, staged\n")
    git("add", "beta.txt")
    write("README.md", "# Repo\n\nChanged and not staged.\n")
    write("gamma.txt", "gamma, unknown to git\n")


def _zip(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 3, 14, 9, 30, 0)), text)
    return buffer.getvalue()


def _bundle() -> bytes:
    return _zip({"inside.txt": "alpha, in an archive\n", "more/data.csv": "id,name\n1,alpha\n"})


def _picture() -> bytes:
    """A PNG of 16 by 16 points (RFC 2083)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + bytes((16 * x, 16 * y, 128)[n] for x in range(16) for n in range(3)) for y in range(16))
    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'


def _relations(kind: str, target: str) -> str:
    inner = f'<Relationship Id="rId1" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _types(part: str, kind: str, more: str = "") -> str:
    base = "application/vnd.openxmlformats-officedocument"
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="{part}" ContentType="{base}.{kind}.main+xml"/>{more}</Types>'
    )


def _workbook() -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    # In no order and with one row twice, so that sorting and tidying have something to do.
    rows = [("id", "name", "amount"), (2, "beta", 20), (3, "gamma", 30), (1, "alpha", 10), (1, "alpha", 10)]
    body = ""
    for number, row in enumerate(rows, 1):
        cells = ""
        for column, value in zip("ABC", row, strict=True):
            if isinstance(value, int):
                cells += f'<c r="{column}{number}"><v>{value}</v></c>'
            else:
                cells += f'<c r="{column}{number}" t="inlineStr"><is><t>{value}</t></is></c>'
        body += f'<row r="{number}">{cells}</row>'
    sheet = (
        '<Override PartName="/xl/worksheets/sheet1.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    )
    return _zip(
        {
            "[Content_Types].xml": _types("/xl/workbook.xml", "spreadsheetml.sheet", sheet),
            "_rels/.rels": _relations("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{main}" xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": _relations("worksheet", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f'{_HEAD}<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
        }
    )


def _document() -> bytes:
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    text = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in ("Dear Ada,", "alpha went well.", "Yours, Bob"))
    return _zip(
        {
            "[Content_Types].xml": _types("/word/document.xml", "wordprocessingml.document"),
            "_rels/.rels": _relations("officeDocument", "word/document.xml"),
            "word/document.xml": f'{_HEAD}<w:document xmlns:w="{main}"><w:body>{text}</w:body></w:document>',
        }
    )


def _pdf() -> bytes:
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length 43 >>\nstream\nBT /F1 18 Tf 20 100 Td (alpha went well) Tj ET\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 6\n0000000000 65535 f \n%btrailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        table,
        len(out),
    )


def described(fixture: Fixture) -> str:
    """The fixture's files, one a line, for `earnest assay init`."""
    found = []
    for folder, folders, files in os.walk(fixture.source):
        folders[:] = sorted(name for name in folders if name != ".git")
        found += [os.path.relpath(os.path.join(folder, name), fixture.source) for name in sorted(files)]
    return json.dumps(sorted(found), indent=1)
