"""A change made for real is exactly what the box saw; taken back, everything is as it was; and nothing else ever moves."""

import itertools
import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from earnest.core.errors import EarnestError
from earnest.sandbox import commit, undo
from earnest.sandbox.commit import Work
from earnest.sandbox.difference import as_json, told
from earnest.sandbox.journalled import STAGING, Conflict
from earnest.sandbox.undo import Undos
from sandbox import tree

NOW = 1_800_000_000.0
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Place:
    """A tree, and where commits of it are kept."""

    def __init__(self, folder: Path) -> None:
        self.base, self.aside, self.state = folder / "base", folder / "aside", folder / "state"
        self.base.mkdir()
        self.aside.mkdir()
        self.undos = Undos(str(self.state), lambda: NOW)
        self.made = 0

    def change(self, act, umask=0o022):
        self.made += 1
        aside = self.aside / str(self.made)
        aside.mkdir()
        return tree.changed(self.base, aside, act, umask)

    def commit(self, changes, begun, id="w.1"):
        return self.undos.commit(changes, begun, id, "files", "write_file")

    def now(self):
        return tree.picture(self.base)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def changed(folder, first, then):
    """A place with a history, how it looks, and what another one would change in it."""
    place = Place(Path(folder))
    for doing in first:
        tree.do(place.base, *doing)
    tree.settle(place.base)
    before = place.now()
    changes, begun = place.change(lambda copy: [tree.do(copy, *doing) for doing in then])
    return place, before, changes, begun


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree.histories, tree.histories)
def test_a_commit_is_the_boxs_view_and_an_undo_the_base(first, then):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place, before, changes, begun = changed(folder, first, then)
        assert not changes.refused
        wanted = tree.picture(place.aside / "1" / "copy", folder_times=False)
        place.commit(changes, begun)
        assert tree.picture(place.base, folder_times=False) == wanted
        place.undos.undo("w.1", look_only=True)
        assert tree.picture(place.base, folder_times=False) == wanted
        place.undos.undo("w.1")
        assert place.now() == before


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree.histories, tree.histories)
def test_a_commit_that_fails_anywhere_leaves_what_there_was(first, then):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place, before, changes, begun = changed(folder, first, then)
        real = Work.settle

        def fails(work):
            real(work)
            raise OSError(5, "Input/output error")

        Work.settle = fails
        try:
            with pytest.raises(EarnestError, match="Input/output"):
                place.commit(changes, begun)
        finally:
            Work.settle = real
        assert place.now() == before
        assert not os.listdir(place.state)


def killed(count, work):
    """Whether a process that does `work` is killed at the `count`-th step that moves something, as by SIGKILL."""
    child = os.fork()
    if child == 0:
        left = [count]

        def counted(real):
            def run(*args, **named):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return real(*args, **named)

            return run

        for name in ("move", "exchange", "set_status"):
            setattr(commit.beneath, name, counted(getattr(commit.beneath, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def rich(copy):
    (copy / "fresh").mkdir()
    (copy / "fresh" / "file").write_bytes(b"new")
    (copy / "changed").write_bytes(b"after")
    (copy / "gone" / "one").unlink()
    (copy / "gone").rmdir()
    (copy / "moved").rename(copy / "elsewhere")
    (copy / "swapped").unlink()
    (copy / "swapped").mkdir()
    (copy / "swapped" / "in").write_bytes(b"in")
    (copy / "flat" / "one").unlink()
    (copy / "flat").rmdir()
    (copy / "flat").write_bytes(b"flat")
    (copy / "moded").chmod(0o600)


def fill(base):
    (base / "gone").mkdir()
    (base / "flat").mkdir()
    for name in ("changed", "gone/one", "flat/one", "moved", "swapped", "moded"):
        (base / name).write_bytes(name.encode())
        (base / name).chmod(0o644)
    tree.settle(base)


@pytest.mark.parametrize("count", range(10))
def test_a_commit_that_is_killed_is_rolled_back_at_the_next_start(place, count):
    fill(place.base)
    before = place.now()
    changes, begun = place.change(rich)
    assert killed(count, lambda: place.commit(changes, begun))
    assert Undos(str(place.state), lambda: NOW).recover() == ["the change of w.1 was under way and was rolled back"]
    assert place.now() == before
    assert place.undos.listed() == []


@pytest.mark.parametrize("count", range(10))
def test_an_undo_that_is_killed_is_rolled_back_and_can_be_done_again(place, count):
    fill(place.base)
    before = place.now()
    place.commit(*place.change(rich))
    made = place.now()
    assert killed(count, lambda: place.undos.undo("w.1"))
    assert place.undos.recover() == ["the undo of w.1 was under way and was rolled back"]
    assert place.now() == made
    place.undos.undo("w.1")
    assert place.now() == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(tree.histories, tree.histories, st.integers(0, 25))
def test_whatever_it_was_at_a_kill_rolls_back(first, then, count):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place, before, changes, begun = changed(folder, first, then)
        assert not changes.refused
        wanted = tree.picture(place.aside / "1" / "copy", folder_times=False)
        if killed(count, lambda: place.commit(changes, begun)):
            place.undos.recover()
            assert place.now() == before and place.undos.listed() == []
        else:
            assert tree.picture(place.base, folder_times=False) == wanted
            if killed(count, lambda: place.undos.undo("w.1")):
                place.undos.recover()
                assert tree.picture(place.base, folder_times=False) == wanted
                place.undos.undo("w.1")
            assert place.now() == before


def test_killed_after_all_stands_it_stands(place):
    fill(place.base)
    changes, begun = place.change(rich)
    child = os.fork()
    if child == 0:
        Work.clear = lambda work: os.kill(os.getpid(), signal.SIGKILL)
        place.commit(changes, begun)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert place.undos.recover() == []
    assert not [name for name in os.listdir(place.base) if name.startswith(STAGING)]
    assert (place.base / "changed").read_bytes() == b"after"
    assert [done.meta.tool for done in place.undos.listed()] == ["write_file"]


def test_what_stands_is_left_alone_at_a_start_wherever_its_folder_went(place):
    fill(place.base)
    place.commit(*place.change(rich))
    place.base.rename(place.aside / "elsewhere")
    assert place.undos.recover() == [] and len(place.undos.listed()) == 1


# what moved meanwhile


def write(name, data=b"after"):
    def act(copy):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes(data)

    return act


def replaced_by_fifo(place):
    (place.base / "file").unlink()
    os.mkfifo(place.base / "file")


def replaced_by_link(place):
    (place.base / "file").unlink()
    (place.base / "file").symlink_to(place.aside / "victim")


@pytest.mark.parametrize(
    "meddle",
    [
        lambda place: (place.base / "file").write_bytes(b"mine!!"),
        lambda place: (place.base / "file").write_bytes(b"before"),  # the same bytes, and yet somebody was there
        lambda place: (place.base / "file").unlink(),
        lambda place: (place.base / "file").chmod(0o755),
        replaced_by_fifo,
        replaced_by_link,
    ],
)
def test_nothing_happens_where_the_base_has_moved(place, meddle):
    (place.base / "file").write_bytes(b"before")
    (place.base / "other").write_bytes(b"before")
    (place.aside / "victim").write_bytes(b"victim")

    def both(copy):
        write("file")(copy)
        write("other")(copy)

    changes, begun = place.change(both)
    meddle(place)
    with pytest.raises(Conflict) as caught:
        place.commit(changes, begun)
    assert caught.value.code == "E1840" and caught.value.paths == (str(place.base / "file"),)
    assert (place.base / "other").read_bytes() == b"before"
    assert (place.aside / "victim").read_bytes() == b"victim"
    assert place.undos.listed() == [] and not os.listdir(place.state)


def test_what_changed_while_the_box_ran_is_told_as_moved(place):
    (place.base / "file").write_bytes(b"before")

    def act(copy):
        write("file")(copy)
        (place.base / "file").write_bytes(b"mine!!")

    changes, _ = place.change(act)
    assert [(refused.path, refused.moved) for refused in changes.refused] == [(str(place.base / "file"), True)]


def test_a_file_that_appears_is_not_overwritten(place):
    changes, begun = place.change(write("fresh"))
    (place.base / "fresh").write_bytes(b"mine")
    with pytest.raises(Conflict, match="fresh"):
        place.commit(changes, begun)
    assert (place.base / "fresh").read_bytes() == b"mine"


def test_a_folder_swapped_for_a_link_leads_nowhere(place):
    (place.base / "sub").mkdir()
    (place.base / "sub" / "file").write_bytes(b"before")
    outside = place.aside / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"before")
    changes, begun = place.change(write("sub/fresh"))
    (place.base / "sub").rename(place.base / "was")
    (place.base / "sub").symlink_to(outside)
    with pytest.raises(Conflict):
        place.commit(changes, begun)
    assert os.listdir(outside) == ["file"] and os.listdir(place.base / "was") == ["file"]


@pytest.mark.parametrize("by", ["link", "folder"])
def test_a_folder_swapped_in_the_midst_of_it_leads_nowhere(place, monkeypatch, by):
    (place.base / "sub").mkdir()
    (place.base / "sub" / "file").write_bytes(b"before")
    outside = place.aside / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"victim")
    changes, begun = place.change(write("sub/file"))
    real = Work.stage

    def swapped(work):
        real(work)
        (place.base / "sub").rename(outside / "sub")
        if by == "link":
            (place.base / "sub").symlink_to(outside)
        else:
            (place.base / "sub").mkdir()

    monkeypatch.setattr(Work, "stage", swapped)
    with pytest.raises(Conflict):
        place.commit(changes, begun)
    assert (outside / "file").read_bytes() == b"victim"
    assert (outside / "sub" / "file").read_bytes() == b"before"


def test_whoever_swaps_a_folder_for_a_link_all_the_while_leads_nowhere(place):
    sub, was, outside = place.base / "sub", place.base / "was", place.aside / "outside"
    sub.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(b"victim")
    over = threading.Event()

    def swap():
        while not over.is_set():
            sub.rename(was)
            sub.symlink_to(outside)
            sub.unlink()
            was.rename(sub)

    for number in range(40):
        (sub / "file").write_bytes(b"before")
        changes, begun = place.change(write("sub/file", b"%d" % number))
        over.clear()
        swapping = threading.Thread(target=swap)
        swapping.start()
        try:
            place.commit(changes, begun, f"w.{number}")
        except EarnestError as error:
            assert error.code in ("E1840", "E1843"), error
        finally:
            over.set()
            swapping.join()
        assert (outside / "file").read_bytes() == b"victim" and os.listdir(outside) == ["file"]
        assert (sub / "file").read_bytes() in (b"before", b"%d" % number)
        assert sorted(os.listdir(place.base)) == ["sub"]


@pytest.mark.parametrize("meddle", [replaced_by_fifo, replaced_by_link, lambda place: (place.base / "file").write_bytes(b"!")])
def test_a_file_swapped_in_the_midst_of_it_stays_as_it_was_put(place, monkeypatch, meddle):
    (place.base / "file").write_bytes(b"before")
    (place.aside / "victim").write_bytes(b"victim")
    changes, begun = place.change(write("file"))
    real = Work.stage

    def swapped(work):
        real(work)
        meddle(place)
        swapped.kind = (place.base / "file").lstat().st_mode

    monkeypatch.setattr(Work, "stage", swapped)
    with pytest.raises(Conflict):
        place.commit(changes, begun)
    assert (place.base / "file").lstat().st_mode == swapped.kind
    assert (place.aside / "victim").read_bytes() == b"victim"
    assert sorted(os.listdir(place.base)) == ["file"]


def test_another_folder_at_the_grants_path_is_none(place):
    changes, begun = place.change(write("fresh"))
    place.base.rename(place.aside / "was")
    place.base.mkdir()
    with pytest.raises(Conflict, match="another folder"):
        place.commit(changes, begun)
    assert os.listdir(place.base) == []


# what can never be made for real


def test_only_files_and_folders_can_be_made_real(place):
    (place.base / "twice").write_bytes(b"1")
    os.link(place.base / "twice", place.base / "also")
    (place.base / "setid").write_bytes(b"1")
    (place.base / "setid").chmod(0o4755)

    def act(copy):
        (copy / "link").symlink_to("/etc/passwd")
        os.mkfifo(copy / "fifo")
        (copy / "twice").write_bytes(b"2")
        (copy / "setid").write_bytes(b"2")
        (copy / "large").write_bytes(bytes(9 << 20))
        (copy / "fine").write_bytes(b"fine")

    changes, _ = place.change(act)
    assert {os.path.basename(refused.path): refused.why for refused in changes.refused} == {
        "link": "it is a link",
        "fifo": "it is neither a file nor a folder",
        "twice": "it has several names (hard links)",
        "setid": "it is a set-id file",
        "large": "it is larger than 8 MiB",
    }
    assert [os.path.basename(item.shown) for item in changes.items] == ["fine"]
    assert not changes.whole


def test_what_a_program_has_open_for_writing_is_left_alone(place):
    (place.base / "file").write_bytes(b"before")
    changes, begun = place.change(write("file"))
    with (place.base / "file").open("rb"):
        pass
    with (place.base / "file").open("ab"):
        again, _ = place.change(write("file"))
        assert [refused.why for refused in again.refused] == ["a program has it open for writing"]
        with pytest.raises(Conflict):
            place.commit(changes, begun)
    place.commit(changes, begun)
    with (place.base / "file").open("ab"), pytest.raises(Conflict):
        place.undos.undo("w.1")
    place.undos.undo("w.1")
    assert (place.base / "file").read_bytes() == b"before"


@pytest.mark.parametrize(("umask", "given"), [(0o022, 0o755), (0o077, 0o700), (0o002, 0o775)])
def test_no_bit_of_a_mode_is_given_that_the_umask_takes(place, umask, given):
    def act(copy):
        write("open")(copy)
        (copy / "open").chmod(0o6777)

    place.commit(*place.change(act, umask))
    assert (place.base / "open").stat().st_mode & 0o7777 == given


@pytest.mark.parametrize("act", [write("file"), lambda copy: (copy / "file").unlink()])
def test_who_opens_a_file_to_write_before_it_is_moved_stops_it(place, monkeypatch, act):
    (place.base / "file").write_bytes(b"before")
    changes, begun = place.change(act)
    held, stage = [], Work.stage

    def staged(work):
        stage(work)
        held.append((place.base / "file").open("ab"))

    monkeypatch.setattr(Work, "stage", staged)
    with pytest.raises(Conflict):
        place.commit(changes, begun)
    with held[0] as file:
        file.write(b", and theirs")
    assert (place.base / "file").read_bytes() == b"before, and theirs" and os.listdir(place.base) == ["file"]


def test_what_is_moved_keeps_its_mode_whatever_the_umask(place):
    (place.base / "deep" / "er").mkdir(parents=True)
    for name in ("page", "one", "other", "deep/er/file"):
        (place.base / name).write_text("same" if name == "other" else name)
        (place.base / name).chmod(0o664)
    (place.base / "deep").chmod(0o2775)
    (place.base / "deep" / "er").chmod(0o755)
    (place.base / "empty").mkdir(0o755)
    tree.settle(place.base)

    def act(copy):
        (copy / "page").rename(copy / "page.html")
        (copy / "one").rename(copy / "other")
        (copy / "deep").rename(copy / "there")
        (copy / "empty").rename(copy / "bare")
        (copy / "new").mkdir()
        (copy / "new" / "file").write_text("page, and more")

    def modes(root):
        return {str(path.relative_to(root)): path.stat().st_mode & 0o7777 for path in root.rglob("*")}

    changes, begun = place.change(act, 0o077)
    place.commit(changes, begun)
    wanted = modes(place.aside / "1" / "copy") | {"new": 0o700, "new/file": 0o600}
    assert modes(place.base) == wanted and wanted["page.html"] == wanted["other"] == 0o664
    assert "mode" not in "".join(told(changes))


def test_attributes_stay_with_what_is_replaced_and_moved(place):
    for name in ("file", "moved"):
        (place.base / name).write_bytes(name.encode())
        os.setxattr(place.base / name, "user.note", name.encode())

    def act(copy):
        write("file")(copy)
        (copy / "moved").rename(copy / "there")

    changes, begun = place.change(act)
    assert [(item.word, os.path.basename(item.moved_from)) for item in changes.items if item.after] == [
        ("changed", ""), ("moved", "moved"),
    ]  # fmt: skip
    place.commit(changes, begun)
    assert os.getxattr(place.base / "file", "user.note") == b"file"
    assert os.getxattr(place.base / "there", "user.note") == b"moved"
    place.undos.undo("w.1")
    assert os.getxattr(place.base / "moved", "user.note") == b"moved"


def test_attributes_that_change_are_refused(place):
    for name in ("set", "gone", "kept", "replaced"):
        (place.base / name).write_bytes(name.encode())
        os.setxattr(place.base / name, "user.note", b"note")
    (place.base / "folder").mkdir()

    def act(copy):
        os.setxattr(copy / "set", "user.note", b"other")
        os.removexattr(copy / "gone", "user.note")
        os.setxattr(copy / "folder", "user.more", b"more")
        (copy / "kept").write_bytes(b"new")
        (copy / "other").write_bytes(b"new")
        (copy / "other").rename(copy / "replaced")
        write("fresh")(copy)
        os.setxattr(copy / "fresh", "user.more", b"more")

    changes, _ = place.change(act)
    assert {os.path.basename(one.path): one.why for one in changes.refused} == dict.fromkeys(
        ("set", "gone", "folder", "fresh"), "its extended attributes or its access list change"
    )
    assert {os.path.basename(item.shown) for item in changes.items} == {"kept", "replaced"}


# undo


def test_a_later_change_is_not_undone_away(place):
    fill(place.base)
    place.commit(*place.change(rich))
    (place.base / "changed").write_bytes(b"later")
    (place.base / "fresh" / "more").write_bytes(b"later")
    (place.base / "moved").write_bytes(b"later")
    now = place.now()
    with pytest.raises(Conflict) as caught:
        place.undos.undo("w.1")
    assert caught.value.code == "E1841"
    assert {os.path.relpath(path, place.base) for path in caught.value.paths} == {"changed", "fresh", "moved"}
    assert place.now() == now


def test_what_only_was_touched_since_is_undone(place):
    fill(place.base)
    before = place.now()
    place.commit(*place.change(rich))
    os.utime(place.base / "changed")
    place.undos.undo("w.1")
    assert place.now() == before


def test_a_folder_somebody_used_since_keeps_its_time(place):
    fill(place.base)
    place.commit(*place.change(write("changed")))
    (place.base / "theirs").write_bytes(b"theirs")
    os.utime(place.base, ns=(5 * 10**17, 5 * 10**17))
    place.undos.undo("w.1")
    assert (place.base / "changed").read_bytes() == b"changed"
    assert place.base.stat().st_mtime_ns != 1_600_000_000_000_000_000


def test_an_undo_is_done_once_and_a_commit_too(place):
    fill(place.base)
    changes, begun = place.change(rich)
    place.commit(changes, begun)
    with pytest.raises(EarnestError, match="E1844"):
        place.commit(changes, begun)
    place.undos.undo("w.1")
    with pytest.raises(EarnestError, match="E1846"):
        place.undos.undo("w.1")
    with pytest.raises(EarnestError, match="E1845"):
        place.undos.undo("../base")


def test_what_is_kept_is_nobody_elses_and_goes_in_time(place):
    fill(place.base)
    place.commit(*place.change(rich))
    modes = {os.stat(os.path.join(folder, name)).st_mode & 0o077
             for folder, folders, files in os.walk(place.state) for name in (*folders, *files)}  # fmt: skip
    assert modes == {0}
    Undos(str(place.state), lambda: NOW + 6 * 86400).prune()
    assert place.undos.listed()
    Undos(str(place.state), lambda: NOW + 8 * 86400).prune()
    assert os.listdir(place.state) == []


def test_what_nobody_was_asked_about_is_not_pushed_out(place, monkeypatch):
    monkeypatch.setattr(undo, "KEEP_BYTES", 7100)
    clock = itertools.count(NOW)
    undos = Undos(str(place.state), lambda: next(clock))
    for number, unasked in enumerate((True, False, True, True)):
        (place.base / str(number)).write_bytes(bytes(3000))
        changes, begun = place.change(write(str(number)))
        assert undos.has_room(changes) == (number == 0)
        undos.commit(changes, begun, f"w.{number}", "files", "write_file", (), unasked)
    undos.prune()
    assert [done.meta.id for done in undos.listed()] == ["w.3", "w.2", "w.0"]


def test_the_digest_is_of_what_changes_and_of_no_time(place):
    fill(place.base)
    one, _ = place.change(rich)
    other, _ = place.change(rich)
    third, _ = place.change(write("changed", b"otherwise"))
    assert one.digest == other.digest != third.digest


# shown


def test_a_change_is_shown_by_what_differs_with_nothing_that_hides(place):
    fill(place.base)
    (place.base / "text").write_text("one\ntwo\nthree\n")

    def act(copy):
        rich(copy)
        (copy / "text").write_text("one\nt\u202ewo\nthree\n")
        (copy / "data").write_bytes(b"\0\1")
        (copy / "tall").write_text("x\n" * 500)
        (copy / "bad\x1b[2Jname").write_text("")

    changes, _ = place.change(act)
    text = "\n".join(told(changes)).replace(f"{place.base}/", "")
    assert "\u202e" not in text and "\x1b" not in text
    for line in (
        "change text (14 → 17 bytes)", "    -two", "    +t<U+202E>wo", "create folder fresh", "create fresh/file (3 bytes)",
        "    +new [no line feed at the end]", "delete gone/one (8 bytes)", "delete folder gone", "move moved → elsewhere",
        "replace file swapped by a folder", "change moded, mode 644 → 600", "    + sha256 b413f47d13ee2fe6, no text",
        "    … [folded: 441 more lines]", "create bad<U+001B>[2Jname (0 bytes)",
    ):  # fmt: skip
        assert line in text.split("\n"), line
    shown = as_json(changes)
    assert {each["change"] for each in shown["changes"]} == {"created", "changed", "deleted", "moved", "touched"}


def test_one_line_of_a_long_file_is_shown_where_it_is(place):
    lines = [f"line {number}\n" for number in range(1, 9001)]
    (place.base / "long").write_text("".join(lines))
    (place.base / "other").write_text("".join(lines))

    def act(copy):
        (copy / "long").write_text("".join([*lines[:4999], "rm -rf\n", *lines[5000:]]))
        (copy / "other").write_text("".join(f"{line[:-1]}!\n" for line in lines))

    changes, _ = place.change(act)
    text = told(changes)
    assert text[1:7] == ["    @@ -4998,5 +4998,5 @@", *(f"    {line}" for line in (
        " line 4998", " line 4999", "-line 5000", "+rm -rf", " line 5001"))]  # fmt: skip
    assert "    +line 1!" in text


def test_a_byte_that_is_no_text_hides_no_text(place):
    def act(copy):
        (copy / "script").write_bytes(b"#!/bin/sh\nrm -rf ~\n" + bytes(200))
        (copy / "rc").write_bytes(b"\xff\nrm -rf ~ # \0\n")
        (copy / "image").write_bytes(bytes(range(256)))

    changes, _ = place.change(act)
    text = "\n".join(told(changes))
    assert text.count("+rm -rf ~") == 2 and "+<U+DCFF>" in text and "# <U+0000>" in text
    assert text.count("no text") == 1


def test_nothing_pushes_what_else_changes_out_of_sight(place):
    def act(copy):
        (copy / "a1").write_text(f"{'z' * 200}\n" * 1900)
        for number in range(260):
            (copy / f"b{number:03}").write_text("x\n" * 3)
        (copy / "zz_evil").write_text("rm -rf ~\n")
        (copy / "zz_run").write_text("#!/bin/sh\n")
        (copy / "zz_run").chmod(0o755)

    changes, _ = place.change(act)
    text = "\n".join(told(changes, lambda path: path.endswith("evil"))).replace(f"{place.base}/", "")
    assert text.startswith("create zz_evil (9 bytes)\n") and text.count("create ") == 263
    shown = as_json(changes, lambda path: path.endswith("evil"))
    assert [os.path.basename(each["path"]) for each in shown["changes"][:3]] == ["zz_evil", "zz_run", "a1"]
    assert all(each["diff"] for each in shown["changes"]) and shown["more"] == 0
    assert [os.path.basename(each["path"]) for each in shown["changes"] if each["cut"]] == ["a1"]


def test_a_mode_is_shown_with_whatever_else_happens(place):
    for name in ("run", "same", "put"):
        (place.base / name).write_text(f"#!/bin/sh\n# {name}\n")
    (place.base / "folder").mkdir()
    tree.settle(place.base)

    def act(copy):
        (copy / "run").rename(copy / "moved")
        (copy / "moved").chmod(0o755)
        (copy / "same").rename(copy / "there")
        (copy / "folder").rmdir()
        (copy / "folder").write_text("#!/bin/sh\n")
        (copy / "folder").chmod(0o755)
        (copy / "put").write_text("other")
        (copy / "put").chmod(0o755)

    changes, _ = place.change(act)
    lines = "\n".join(told(changes)).replace(f"{place.base}/", "").split("\n")
    for line in ("move run → moved, mode 644 → 755", "move same → there", "change put, mode 644 → 755 (16 → 5 bytes)",
                 "replace folder folder by a file (10 bytes), mode 755"):  # fmt: skip
        assert line in lines, lines


def test_a_name_that_is_no_text_is_refused(place):
    changes, _ = place.change(lambda copy: (copy / os.fsdecode(b"\xff")).write_bytes(b""))
    assert [refused.why for refused in changes.refused] == ["its name is no text"] and told(changes)
