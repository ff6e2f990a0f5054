"""What boxes are made of is taken away, and nothing around it is touched."""

import os
import stat

from earnest.sandbox import places


def test_what_it_lies_in_keeps_its_mode_also_where_something_cannot_be_taken_away(tmp_path, monkeypatch):
    around = tmp_path / "around"
    folder = around / "box"
    (folder / "closed" / "deep").mkdir(parents=True)
    (folder / "closed" / "deep" / "file").write_text("x")
    os.chmod(folder / "closed" / "deep", 0)
    os.chmod(folder / "closed", 0)
    os.chmod(around, 0o1777)
    real = os.rmdir

    def refused(path, **more):
        if str(path) == str(folder):
            raise OSError(39, "Directory not empty")
        real(path, **more)

    monkeypatch.setattr(os, "rmdir", refused)
    places.remove(str(folder))
    assert stat.S_IMODE(os.stat(around).st_mode) == 0o1777
    monkeypatch.undo()
    places.remove(str(folder))
    assert not folder.exists() and stat.S_IMODE(os.stat(around).st_mode) == 0o1777
