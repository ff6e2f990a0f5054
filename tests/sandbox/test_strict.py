"""A strict box: changes outside of its own folders fail, and are told as what they were, in each tier."""

import fcntl
import os
import sqlite3
import sys

from earnest.sandbox.box import Folder, Limits

SCRIPT = """
import ctypes, fcntl, os, platform, sqlite3
def attempt(name, do):
    try:
        do()
        print(name, "done")
    except (OSError, sqlite3.Error):
        print(name, "failed")

given, kept = {given!r}, {kept!r}
attempt("read", lambda: open(given + "/file").read())
attempt("both", lambda: open(given + "/file", "r+"))
attempt("append", lambda: open(given + "/file", "a"))
attempt("make", lambda: open(given + "/new", "w"))
attempt("remove", lambda: os.unlink(given + "/file"))
attempt("system", lambda: open("/usr/share/earnest-test", "w"))
attempt("nowhere", lambda: open("/usr/no-such-folder/file", "w"))
attempt("made before", lambda: os.makedirs(given + "/folder", exist_ok=True))
attempt("folder", lambda: os.mkdir(given + "/folder"))
attempt("none to remove", lambda: os.unlink(given + "/no-such"))
attempt("none to open", lambda: open(given + "/no-such", "r+"))
attempt("none to move", lambda: os.rename(given + "/no-such", given + "/other"))
attempt("home", lambda: open(os.environ["HOME"] + "/mine", "w"))
attempt("temporary", lambda: open((os.environ.get("TMPDIR") or "/tmp") + "/mine", "w"))
attempt("output", lambda: open("/proc/self/fd/1", "a"))
attempt("errors", lambda: open("/dev/stderr", "a"))
attempt("null", lambda: open("/dev/null", "w"))
attempt("granted", lambda: open(kept + "/new", "w"))
attempt("link", lambda: os.symlink(given, kept + "/link"))
attempt("through", lambda: open(kept + "/link/through", "w"))
attempt("locked", lambda: fcntl.lockf(open(given + "/locked"), fcntl.LOCK_SH | fcntl.LOCK_NB))
attempt("unlocked", lambda: fcntl.lockf(open(given + "/file"), fcntl.LOCK_SH | fcntl.LOCK_NB))
attempt("make a pipe", lambda: os.mkfifo(kept + "/pipe"))
libc, mknodat = ctypes.CDLL(None, use_errno=True), 33 if platform.machine() == "aarch64" else 259
def pipe_by_more_bits():
    if libc.syscall(mknodat, -100, (kept + "/more").encode(), ctypes.c_long(1 << 32 | 0o10600), 0) < 0:
        raise OSError(ctypes.get_errno(), "mknodat")
attempt("make a pipe by more bits", pipe_by_more_bits)
pipe = os.open(given + "/pipe", os.O_RDONLY | os.O_NONBLOCK)
attempt("pipe", lambda: os.open(given + "/pipe", os.O_WRONLY | os.O_NONBLOCK))
attempt("pipe by descriptor", lambda: os.write(os.open(f"/proc/self/fd/{{pipe}}", os.O_WRONLY | os.O_NONBLOCK), b"x"))
attempt("database", lambda: print(sqlite3.connect(given + "/base.db").execute("SELECT * FROM t").fetchall()))
"""


def test_what_is_not_its_own_cannot_be_changed_and_the_try_is_told(rig):
    given, kept = rig.folder / "given", rig.folder / "kept"
    for folder in (given, kept):
        folder.mkdir()
    (given / "file").write_text("text")
    with sqlite3.connect(given / "base.db") as base:
        base.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
    (given / "locked").write_text("")
    (given / "folder").mkdir()
    os.mkfifo(given / "pipe")
    folders = (Folder(str(given), str(given), "read"), Folder(str(kept), str(kept), "write"))
    for path in (given, kept, *given.iterdir()):
        os.chown(path, 64321 if rig.user == "ordinary" else -1, -1)
    with open(given / "locked", "w") as writer:
        fcntl.lockf(writer, fcntl.LOCK_EX)
        done = rig.python(SCRIPT.format(given=str(given), kept=str(kept)), folders=folders, strict=True, cwd=rig.home)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    if rig.tier == "confined":  # there who may only read a folder cannot write to a pipe in it, by any name
        lines.remove("make a pipe done")
        lines.remove("make a pipe by more bits done")
    said = dict(line.rsplit(" ", 1) for line in lines if " " in line)
    assert [name for name, what in said.items() if what == "done"] == [
        "read", "made before", "home", "temporary", "output", "errors", "null", "granted", "link", "unlocked", "database"
    ]  # fmt: skip
    assert "[(7,)]" in done.out
    told = {(event.subject, event.method) for event in done.did("refused")}
    assert told >= {
        (f"{given}/file", "open"), (f"{given}/file", "change"), (f"{given}/new", "change"),
        ("/usr/share/earnest-test", "change"),
    }  # fmt: skip
    assert {how for path, how in told if path == f"{given}/base.db"} == {"open"}, "opened both ways by habit, and only read"
    assert not any("no-such" in path or path in (f"{given}/folder", f"{given}/other") for path, _ in told)
    assert not any(path.startswith((rig.home, "/dev")) for path, _ in told)
    assert (
        sorted(os.listdir(given)) == ["base.db", "file", "folder", "locked", "pipe"] and (given / "file").read_text() == "text"
    )
    assert not os.path.exists("/usr/share/earnest-test")


def test_a_box_may_be_meant_to_last_for_years(mine):
    done = mine.run(sys.executable, "-c", "print('there')", limits=Limits(wall_s=1e9, cpu_s=1 << 30))
    assert (done.out, done.ended.limit) == ("there\n", "")
