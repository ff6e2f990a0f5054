"""The script `earnest`, however it was installed and is called."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def prefix(tmp_path):
    """A prefix as pip makes one: bin/ with interpreter and script, site-packages beside it."""
    made = tmp_path / "pre fix"
    (made / "bin").mkdir(parents=True)
    (made / "lib/python3.11/site-packages").mkdir(parents=True)
    (made / "bin/python3").symlink_to(sys.executable)
    script = made / "bin/earnest"
    script.write_bytes((ROOT / "bin/earnest").read_bytes())
    script.chmod(0o755)
    (made / "lib/python3.11/site-packages/earnest").symlink_to(ROOT / "src/earnest")
    return made


def _run(*command: str, path: str = "/usr/bin:/bin", **more) -> subprocess.CompletedProcess:
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, timeout=60, **more)


def _works(*command: str, **more) -> bool:
    out = _run(*command, "stdio", "--help", **more)
    return out.returncode == 0 and out.stdout.startswith("Usage: earnest stdio") and "Examples" in out.stdout


def test_installed(prefix):
    assert _works(str(prefix / "bin/earnest"))
    assert _works("./earnest", cwd=prefix / "bin")
    assert _works("earnest", path=f"{prefix}/bin:/usr/bin:/bin")


def test_through_links_absolute_and_relative(prefix, tmp_path):
    (tmp_path / "one").symlink_to(prefix / "bin/earnest")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "three").symlink_to("pre fix/bin/earnest")
    for name in ("one", "two", "three"):
        assert _works(str(tmp_path / name)), name
        assert _works(f"./{name}", cwd=tmp_path), name


@pytest.mark.parametrize("name", ["_editable_impl_earnest.pth", "_earnest.pth"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_an_editable_install_is_found_without_asking_python(prefix, name, end):
    packages = prefix / "lib/python3.11/site-packages"
    (packages / "earnest").unlink()
    (packages / name).write_text(str(ROOT / "src") + end)
    trace = _run("sh", "-x", str(prefix / "bin/earnest"), "stdio", "--help")
    assert trace.stdout.startswith("Usage") and "import earnest" not in trace.stderr


def test_an_unusual_place_is_asked_of_python(prefix):
    packages = prefix / "lib/python3.11/site-packages"
    (packages / "earnest").unlink()
    where = prefix / "bin/python3"
    where.unlink()
    where.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/src" exec {sys.executable} "$@"\n')
    where.chmod(0o755)
    assert _works(str(prefix / "bin/earnest"))


def test_without_python_beside_it_the_path_is_searched(prefix, tmp_path):
    (prefix / "bin/python3").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/python3.11").symlink_to(sys.executable)
    assert _works(str(prefix / "bin/earnest"), path=f"{tmp_path}/elsewhere:/usr/bin:/bin")


def test_without_any_python_it_says_so(prefix, tmp_path):
    (prefix / "bin/python3").unlink()
    (tmp_path / "few").mkdir()
    for tool in ("readlink",):
        (tmp_path / "few" / tool).symlink_to(f"/usr/bin/{tool}")
    out = _run("/bin/sh", str(prefix / "bin/earnest"), "stdio", "x", path=str(tmp_path / "few"))
    assert out.returncode == 2 and out.stderr.startswith("earnest: E1500: there is no Python")


def test_without_the_package_it_says_so(prefix):
    (prefix / "lib/python3.11/site-packages/earnest").unlink()
    (prefix / "bin/python3").unlink()
    (prefix / "bin/python3").write_text("#!/bin/sh\nexit 1\n")
    (prefix / "bin/python3").chmod(0o755)
    out = _run(str(prefix / "bin/earnest"), "stdio", "x")
    assert out.returncode == 2 and "is not installed" in out.stderr


def test_modules_of_the_working_directory_are_not_taken_for_ours(prefix, tmp_path):
    for name in ("earnest", "os", "typer"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the working directory was run')\n")
    assert _works(str(prefix / "bin/earnest"), cwd=tmp_path)
    fake = prefix / "bin/python3"
    fake.unlink()
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    out = _run(str(prefix / "bin/earnest"), "tools", "--json", cwd=tmp_path) if fake.chmod(0o755) is None else None
    assert out is not None and out.stdout.split() == ["-P", "-m", "earnest", "tools", "--json"]


def test_python_m_earnest_stdio_is_the_shim_too(tmp_path):
    out = subprocess.run(
        [sys.executable, "-m", "earnest", "stdio", "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout.startswith("Usage: earnest stdio")
