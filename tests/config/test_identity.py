"""Who a server is: stable where it must be, different where somebody else could be behind the same words."""

import json
import os
import shutil
from pathlib import Path

import pytest

from earnest.config.identity import Identity, installed, of_command, of_url
from earnest.core.errors import EarnestError


class Machine:
    """A home, a project and a PATH with the usual runners, none of which is ever started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.project, self.bin = root / "home", root / "project", root / "bin"
        for folder in (self.home, self.project, self.bin):
            folder.mkdir()
        for name in ("npx", "npm", "uvx", "uv", "pipx", "node", "python3", "plain"):
            self.program(self.bin / name)
        self.env = {"PATH": str(self.bin), "HOME": str(self.home)}

    @staticmethod
    def program(path: Path, text: str = "#!/bin/false\n") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def of(self, *argv: str, **env: str) -> Identity:
        return of_command(argv, {**self.env, **env}, str(self.project))

    def npm(self, modules: Path, name: str, version: str, code: str = "1") -> Path:
        root = modules / name
        self.program(root / "dist" / "index.js", code)
        (root / "package.json").write_text(json.dumps({"name": name, "version": version}))
        return root

    def npx_cache(self, spec: str, name: str, version: str) -> None:
        folder = self.home / ".npm" / "_npx" / version
        self.npm(folder / "node_modules", name, version)
        (folder / "package.json").write_text(json.dumps({"_npx": {"packages": [spec]}}))

    def bins(self, root: Path, **programs: str) -> None:
        manifest = json.loads((root / "package.json").read_text())
        (root / "package.json").write_text(json.dumps({**manifest, "bin": programs}))

    def venv(self, prefix: Path, name: str, version: str, script: str, digest: str = "sha256=abc") -> None:
        info = prefix / "lib" / "python3.11" / "site-packages" / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not-this\n")
        module = name.replace("-", "_")
        (info / "RECORD").write_text(
            f"../../../bin/{script},sha256=differs{prefix},1\n{module}/__main__.py,{digest},2\n"
            f"{info.name}/RECORD,,\n{info.name}/INSTALLER,sha256={prefix.name},3\n"
        )
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{script} = {module}:main\n")
        self.program(prefix / "bin" / script)
        self.program(prefix / "bin" / "python")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_new_version_alone_keeps_the_key_and_changes_the_version(machine: Machine) -> None:
    one = machine.of("npx", "-y", "@scope/files@1.0.0", "/data")
    two = machine.of("npx", "--yes", "@scope/files@1.1.0", "/data")
    assert (one.package, one.version, two.version) == ("npm:@scope/files", "1.0.0", "1.1.0")
    assert one.key == two.key and one.key.startswith("npm:@scope/files#")
    assert machine.of("npm", "exec", "@scope/files@2.0.0", "/data").key == one.key


@pytest.mark.parametrize(
    "other",
    [
        ("npx", "-y", "@scope/files", "/other"),
        ("npx", "-y", "@scope/filez", "/data"),
        ("npx", "-y", "--registry", "https://evil.example", "@scope/files", "/data"),
        ("npx", "-y", "-p", "@scope/files", "another-command", "/data"),
        ("npx", "-y", "./files", "/data"),
        ("npx", "-y", "someone/files", "/data"),
        ("npx", "-y", "https://evil.example/files.tgz", "/data"),
        ("npx", "-y", "@scope/files@npm:evil", "/data"),
        ("npx", "-y", "-p", "@scope/files", "-p", "evil", "files", "/data"),
        ("npx", "-y", "-c", "evil", "@scope/files", "/data"),
    ],
)
def test_whatever_else_could_be_behind_it_has_another_key(machine: Machine, other: tuple[str, ...]) -> None:
    assert machine.of(*other).key != machine.of("npx", "-y", "@scope/files", "/data").key


def test_a_registry_of_the_environment_or_project_changes_the_key(machine: Machine) -> None:
    argv = ("npx", "-y", "@scope/files")
    plain = machine.of(*argv)
    assert machine.of(*argv, npm_config_registry="https://evil.example").key != plain.key
    assert machine.of(*argv, NPM_CONFIG_REGISTRY="https://evil.example").key != plain.key
    assert "evil" not in machine.of(*argv, npm_config_registry="https://evil.example").key
    assert machine.of("uvx", "x", UV_INDEX_URL="https://evil.example").key != machine.of("uvx", "x").key
    (machine.project / ".npmrc").write_text("registry=https://evil.example")
    assert machine.of(*argv).key != plain.key


def test_a_copy_in_the_project_is_not_the_published_package(machine: Machine) -> None:
    argv = ("npx", "-y", "@scope/files")
    published = machine.of(*argv)
    root = machine.npm(machine.project / "node_modules", "@scope/files", "6.6.6")
    planted = machine.of(*argv)
    assert planted.key != published.key and str(root) in planted.key and planted.version == "6.6.6"
    assert machine.of("npx", "-y", "@scope/files@1.0.0").key == published.key


def test_a_runner_that_lies_in_the_project_is_the_projects_program(machine: Machine) -> None:
    machine.program(machine.project / "npx")
    found = machine.of("./npx", "-y", "@scope/files")
    assert found.package == "" and found.key.startswith(f"exec:{machine.project}/npx#")


def test_the_cache_of_npx_tells_version_and_artefact(machine: Machine) -> None:
    machine.npx_cache("@scope/files", "@scope/files", "3.2.1")
    found = machine.of("npx", "-y", "@scope/files")
    assert found.version == "3.2.1" and found.artefact.startswith("sha256:")
    assert found.key == machine.of("npx", "-y", "@scope/files@9.9.9").key


def test_the_artefact_changes_with_any_file_of_the_package(machine: Machine) -> None:
    root = machine.npm(machine.home / "node_modules", "files", "1.0.0")
    argv = ("node", str(root / "dist" / "index.js"), "x")
    before = machine.of(*argv)
    assert (before.package, before.version) == ("npm:files", "1.0.0")
    (root / "dist" / "helper.js").write_text("evil")
    after = machine.of(*argv)
    assert after.key == before.key and after.artefact != before.artefact


def test_a_link_in_node_modules_bin_leads_to_its_package(machine: Machine) -> None:
    root = machine.npm(machine.home / "node_modules", "@scope/files", "1.0.0")
    link = machine.home / "node_modules" / ".bin" / "files"
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(root / "dist" / "index.js", link.parent))
    found = machine.of(str(link), "/data")
    assert (found.package, found.version) == ("npm:@scope/files", "1.0.0")


def test_uvx_and_its_other_spelling_are_one(machine: Machine) -> None:
    one = machine.of("uvx", "mcp-server-git@1.0", "--repository", "r")
    assert one.package == "pypi:mcp-server-git" and one.version == "1.0"
    for argv in (
        ("uv", "tool", "run", "mcp-server-git", "--repository", "r"),
        ("uvx", "mcp_server.git==2.0", "--repository", "r"),
        ("pipx", "run", "mcp-server-git", "--repository", "r"),
    ):
        assert machine.of(*argv).key == one.key
    assert machine.of("uvx", "--from", "evil", "mcp-server-git", "--repository", "r").key != one.key
    assert machine.of("uvx", "--from", "git+https://x.example/y", "mcp-server-git").package == ""
    named = machine.of("uvx", "--from", "tool==1.0", "cmd")
    assert named.package == "pypi:tool"
    assert named.key == machine.of("uvx", "--from", "tool==2.0", "cmd").key
    assert named.key != machine.of("uvx", "--from", "tool", "other").key


def test_an_installed_tool_tells_version_and_artefact(machine: Machine) -> None:
    tools = machine.home / ".local" / "share" / "uv" / "tools"
    machine.venv(tools / "mcp-server-git", "mcp-server-git", "2.5.0", "mcp-server-git")
    found = machine.of("uvx", "mcp-server-git")
    assert found.version == "2.5.0" and found.artefact.startswith("sha256:")


def test_a_script_and_a_module_of_an_environment_are_its_package(machine: Machine) -> None:
    one, two = machine.root / "one", machine.root / "two"
    machine.venv(one, "mcp-server-git", "2.5.0", "mcp-server-git")
    machine.venv(two, "mcp-server-git", "2.5.0", "mcp-server-git")
    script, module = (
        machine.of(f"{one}/bin/mcp-server-git"),
        machine.of(f"{one}/bin/python", "-m", "mcp_server_git"),
    )
    assert script.package == module.package == "pypi:mcp-server-git" and script.version == module.version == "2.5.0"
    other = machine.of(f"{two}/bin/mcp-server-git")
    assert other.artefact == script.artefact != "" and other.key != script.key
    assert machine.of(f"{one}/bin/python", "-m", "http.server").package == ""


def test_an_upgrade_in_an_environment_keeps_the_key(machine: Machine) -> None:
    machine.venv(machine.root / "v", "tool", "1.0", "tool")
    before = machine.of(f"{machine.root}/v/bin/tool")
    shutil.rmtree(machine.root / "v")
    machine.venv(machine.root / "v", "tool", "1.1", "tool", digest="sha256=new")
    after = machine.of(f"{machine.root}/v/bin/tool")
    assert (before.version, after.version) == ("1.0", "1.1")
    assert after.key == before.key and after.artefact != before.artefact


def test_a_plain_program_and_a_script_are_known_by_their_bytes(machine: Machine) -> None:
    script = machine.project / "server.py"
    script.write_text("1")
    before, program = machine.of("python3", "server.py"), machine.of("plain", "a")
    assert before.key.startswith(f"exec:{machine.bin}/python3#") and program.artefact.startswith("sha256:")
    script.write_text("2")
    assert machine.of("python3", "server.py").artefact != before.artefact
    assert machine.of("plain", "a b").key != machine.of("plain", "a", "b").key
    assert machine.of("plain", "a b").display == "plain 'a b'"


def test_a_missing_program_is_told_with_the_path_that_was_searched(machine: Machine) -> None:
    with pytest.raises(EarnestError) as caught:
        of_command(["npx", "-y", "x"], {"PATH": "/nowhere:/else"}, "/")
    assert caught.value.code == "E1201" and caught.value.exit_code == 3
    assert '"npx"' in caught.value.message and "/nowhere:/else" in caught.value.message
    assert "Node.js" in caught.value.remedy
    with pytest.raises(EarnestError, match="does not exist"):
        machine.of("./no")
    (machine.project / "no").write_text("")
    with pytest.raises(EarnestError, match="cannot be executed"):
        machine.of("./no")
    with pytest.raises(EarnestError, match="empty command"):
        machine.of()


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("HTTPS://API.Example.com:443/mcp?token=x#y", "https://api.example.com/mcp"),
        ("http://localhost:8080", "http://localhost:8080/"),
        ("https://[2001:DB8::1]/a", "https://[2001:db8::1]/a"),
        ("http://h:443/A", "http://h:443/A"),
    ],
)
def test_an_http_server_is_its_origin_and_path(url: str, key: str) -> None:
    found = of_url(url)
    assert (found.kind, found.key, found.display) == ("http", key, key)


@pytest.mark.parametrize("url", ["ftp://x/", "https://", "https://me@x/", "x", "http://h:99999/"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(EarnestError) as caught:
        of_url(url)
    assert caught.value.code == "E1005"


def test_what_a_runner_would_fetch_is_found_where_it_lies_here(machine: Machine) -> None:
    def found(*argv: str) -> tuple[str, ...] | None:
        return installed(argv, machine.env, str(machine.project))

    assert found("npx", "-y", "@scope/files", "/data") is None and found("node", "x.js") is None and found() is None
    machine.npx_cache("@scope/files", "@scope/files", "1.0.0")
    root = machine.home / ".npm" / "_npx" / "1.0.0" / "node_modules" / "@scope" / "files"
    assert found("npx", "-y", "@scope/files", "/data") is None, "it names no program"
    machine.bins(root, files="dist/index.js")
    program = str(root / "dist" / "index.js")
    assert found("npx", "-y", "@scope/files", "/data", "-v") == (program, "/data", "-v")
    machine.bins(root, other="dist/other.js", files="dist/index.js", third="../../../../escape")
    assert found("npx", "-y", "@scope/files") == (program,)
    assert found("npx", "-p", "@scope/files", "third") == (program,), "what is not there is not taken"
    assert found("npx", "-y", "@scope/files@2.0.0") is None
    tools = machine.home / ".local" / "share" / "uv" / "tools" / "mcp-files"
    assert found("uvx", "mcp-files", "--db", "x") is None
    machine.venv(tools, "mcp-files", "1.0", "mcp-files")
    assert found("uvx", "mcp-files", "--db", "x") == (str(tools / "bin" / "mcp-files"), "--db", "x")
