"""What a command needs of a machine to run, and what of a person's home is never shown for it."""

import os

import pytest

from earnest.sandbox.runtimes import needs


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    return folder


def program(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o755)
    return path


def found(home, *argv, **env):
    need = needs(argv, {"PATH": "/usr/bin:/bin", **env}, str(home), str(home))
    links = {os.path.relpath(path, home): text for path, text in need.links}
    return {os.path.relpath(path, home) for path in need.paths}, links


def test_a_virtual_environment_brings_its_interpreter_and_what_it_is_edited_with(home):
    base = program(home / ".versions" / "3" / "bin" / "python3.12", b"\x7fELF").parent
    (base / "python3").symlink_to("python3.12")
    venv = home / "project" / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.12\n")
    (venv / "bin" / "python").symlink_to(base / "python3")
    packages = venv / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (home / "elsewhere" / "src").mkdir(parents=True)
    (packages / "edited.pth").write_text(f"{home}/elsewhere/src\nimport os\n{home}\n")
    server = program(venv / "bin" / "server", f"#!{venv}/bin/python\n")
    paths, links = found(home, str(server))
    assert paths == {".versions/3", "project/.venv", "elsewhere/src"}
    assert links == {}


def test_a_node_package_brings_its_modules_and_the_links_to_it(home):
    program(home / "apps" / "node_modules" / "pkg" / "index.js", "#!/usr/bin/env node\n")
    (home / "apps" / "node_modules" / ".bin").mkdir()
    (home / "apps" / "node_modules" / ".bin" / "pkg").symlink_to("../pkg/index.js")
    (home / "bin").mkdir()
    (home / "bin" / "pkg").symlink_to("../apps/node_modules/.bin/pkg")
    paths, links = found(home, "pkg", PATH=f"{home}/bin:/usr/bin")
    assert paths == {"apps/node_modules"} and links == {"bin/pkg": "../apps/node_modules/.bin/pkg"}


@pytest.mark.parametrize(
    "place, shown",
    [
        ("server.py", "server.py"),
        ("tools/server.py", "tools/server.py"),
        ("code/tools/server.py", "code/tools"),
        ("bin/server.py", "bin/server.py"),
    ],
)
def test_a_script_brings_its_folder_but_never_the_home_or_what_lies_right_in_it(home, place, shown):
    program(home / place, "print(1)\n")
    assert found(home, "python3", str(home / place)) == ({shown}, {})


def test_a_script_of_a_project_brings_the_project(home):
    script = program(home / "code" / "app" / "src" / "deep" / "main.py", "print(1)\n")
    (home / "code" / "app" / "pyproject.toml").write_text("")
    assert found(home, "python3", "-u", str(script)) == ({"code/app"}, {})
    (home / "pyproject.toml").write_text("")  # a home is no project, whatever lies in it
    (home / "code" / "app" / "pyproject.toml").unlink()
    assert found(home, "python3", str(script)) == ({"code/app/src/deep"}, {})


def test_folders_that_a_command_works_on_are_not_guessed(home):
    (home / "documents").mkdir()
    assert found(home, "/usr/bin/env", str(home / "documents"), str(home / ".ssh")) == (set(), {})


def test_search_paths_of_the_environment_are_shown_unless_they_are_a_home(home):
    (home / "lib").mkdir()
    assert found(home, "/bin/true", PYTHONPATH=f"{home}/lib:{home}:relative:/none") == ({"lib"}, {})


def test_links_that_go_round_in_circles_end(home):
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    assert found(home, str(home / "a"))[0] <= {"a", "b"}
