"""Where an instance lives, and which folders are refused."""

import hashlib
import os

import pytest

from earnest.shim import paths
from earnest.shim.paths import ShimError


def test_what_a_client_passes_on_decides_alone():
    """A terminal has XDG variables that a client's server does not see; both must find one daemon."""
    few = {"HOME": "/home/a"}
    many = {**few, "XDG_STATE_HOME": "/x", "XDG_RUNTIME_DIR": "/run/user/1"}
    assert paths.instance(few) == paths.instance(many) == "/home/a/.local/state/earnest/default"


def test_each_configuration_has_its_own_instance():
    env = {"HOME": "/home/a"}
    digest = hashlib.sha256(b"/etc/e.toml").hexdigest()[:16]
    assert paths.instance(env, "/etc/e.toml") == f"/home/a/.local/state/earnest/c-{digest}"
    assert paths.instance({**env, "EARNEST_CONFIG": "/etc/e.toml"}) == paths.instance(env, "/etc/e.toml")
    assert paths.instance({**env, "EARNEST_HOME": "/e"}, "/etc/e.toml") == f"/e/c-{digest}"
    assert paths.instance(env, "/home/a/.config/earnest/earnest.toml") == paths.instance(env)


def test_one_file_by_two_names_is_one_instance(tmp_path):
    (tmp_path / "real.toml").touch()
    (tmp_path / "link.toml").symlink_to("real.toml")
    env = {"HOME": str(tmp_path)}
    assert paths.instance(env, str(tmp_path / "link.toml")) == paths.instance(env, str(tmp_path / "real.toml"))


def test_named_configurations_are_the_operators():
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}
    assert paths.config_path(env) == ("/x/earnest/earnest.toml", False)
    assert paths.config_path({**env, "EARNEST_CONFIG": "/c"}) == ("/c", True)
    assert paths.config_path({**env, "EARNEST_CONFIG": "/c"}, "/f") == ("/f", True)
    assert paths.config_path({"HOME": "/h", "XDG_CONFIG_HOME": "rel"}) == ("/h/.config/earnest/earnest.toml", False)


def test_without_home_the_users_entry_counts():
    import pwd

    assert paths.home({}).startswith(pwd.getpwuid(os.getuid()).pw_dir)


def test_the_folder_is_made_for_us_alone(tmp_path):
    path = str(tmp_path / "a/b/c/default")
    tmp_path.chmod(0o700)
    os.close(paths.open_folder(path))
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "a/b/c").st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o770, 0o755, 0o777])
def test_a_folder_that_others_reach_is_refused(tmp_path, mode):
    (tmp_path / "i").mkdir()
    (tmp_path / "i").chmod(mode)
    with pytest.raises(ShimError, match="open to others"):
        paths.open_folder(str(tmp_path / "i"))


def test_a_folder_that_others_could_replace_is_refused(tmp_path):
    (tmp_path / "h").mkdir()
    (tmp_path / "h/i").mkdir(mode=0o700)
    (tmp_path / "h").chmod(0o777)
    with pytest.raises(ShimError, match="others may write"):
        paths.open_folder(str(tmp_path / "h/i"))


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    with pytest.raises(ShimError, match="symbolic link"):
        paths.open_folder(str(tmp_path / "link"))
    with pytest.raises(ShimError, match="not a folder"):
        paths.open_folder(str(tmp_path / "file"))


def test_another_users_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "i").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ShimError, match="belongs to user"):
        paths.open_folder(str(tmp_path / "i"))


def test_nothing_is_made_unless_asked(tmp_path):
    with pytest.raises(ShimError, match="no folder"):
        paths.open_folder(str(tmp_path / "i"), create=False)
    assert list(tmp_path.iterdir()) == []
