"""Where paths lead, by the compiled way and by the other: the same, and nothing that changed since is missed."""

import os
import shutil
import sys

import pytest

from earnest.net.tracks import AVAILABLE
from earnest.pdp import leads

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asked of Linux alone")


@pytest.fixture(params=["compiled", "plain"])
def ask(request, monkeypatch):
    """`led` and `still_lead` together, by either way: whether a path that led to a place still does."""
    if request.param == "plain":
        monkeypatch.setattr(leads, "compiled", None)
    elif leads.compiled is None:
        pytest.skip("nothing compiled here, or a kernel before 5.6")
    return lambda path, place: leads.still_lead(leads.led({str(path): str(place)}))


@pytest.fixture
def tree(tmp_path):
    """A folder with a file, deep enough to have parts exchanged."""
    at = tmp_path.resolve() / "one" / "two"
    at.mkdir(parents=True)
    (at / "notes.md").write_text("notes")
    return tmp_path.resolve()


def test_where_one_piece_was_compiled_the_other_was_too():
    if AVAILABLE and leads.compiled is None:
        with pytest.raises(OSError):  # then it is the kernel that does not know the question
            os.open("/", 1 << 62)
        pytest.fail("missing, or made of another source than lies here: run `python hatch_build.py`")


def test_a_path_without_links_is_straight(ask, tree):
    path = tree / "one/two/notes.md"
    assert ask(path, path) and ask(tree / "one", tree / "one") and ask("/", "/")


def test_a_path_through_a_link_leads_where_the_link_does(ask, tree):
    (tree / "short").symlink_to(tree / "one/two")
    assert ask(tree / "short/notes.md", tree / "one/two/notes.md")
    assert not ask(tree / "short/notes.md", tree / "one/notes.md")


def test_a_path_that_is_not_there_leads_nowhere(ask, tree):
    gone = tree / "one/three"
    assert not ask(gone, gone) and not ask(tree / "one/two/notes.md/x", tree / "one/two/notes.md/x")


def test_a_file_of_several_names_counts_as_changed(ask, tree):
    path = tree / "one/two/notes.md"
    os.link(path, tree / "other")
    assert not ask(path, path)


@pytest.mark.parametrize("part", ["one/two/notes.md", "one/two", "one"])
def test_a_part_that_was_exchanged_for_a_link_is_seen(ask, tree, part):
    path = tree / "one/two/notes.md"
    known = leads.led({str(path): str(path)})
    assert leads.still_lead(known)
    # The very file, moved, and a link in its place: all that a look at the file itself would tell is as it was.
    shutil.move(tree / part, tree / "moved")
    (tree / part).symlink_to(tree / "moved")
    assert path.read_text() == "notes" and not leads.still_lead(known)


def test_several_paths_all_have_to_lead_there(ask, tree):
    path = tree / "one/two/notes.md"
    (tree / "short").symlink_to(path)
    known = leads.led({str(path): str(path), str(tree / "short"): str(path), str(tree): str(tree)})
    assert leads.still_lead(known)
    (tree / "short").unlink()
    assert not leads.still_lead(known)


def test_names_that_are_no_utf_8_are_asked_about_too(ask, tree):
    odd = os.fsdecode(os.fsencode(tree) + b"/\xff")
    assert not ask(odd, odd)
    with open(odd, "w"):
        assert ask(odd, odd)
