"""Installing one server: real npm and real pip, against a registry and a folder of this test; nothing of a package runs."""

import base64
import functools
import hashlib
import http.server
import io
import json
import shutil
import sys
import tarfile
import threading
import zipfile

import pytest

from census_kit import FAST
from earnest.census import install as installing
from earnest.census.install import install
from earnest.census.record import tools_of
from earnest.census.spec import Spec
from earnest.census.task import record
from earnest.core.errors import EarnestError

SERVER = """
for line in IN:
    ask = json.loads(line)
    if "id" in ask:
        answers = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "n"}},
                   "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
        said = {"result": answers[ask["method"]]} if ask["method"] in answers else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **said}), flush=True)
"""


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder with one wheel, which is all that pip finds."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "probe_mcp-1.2.3-py3-none-any.whl", "w") as wheel:
        wheel.writestr("probe_mcp.py", "import json, sys\ndef main():\n    IN = sys.stdin\n" + SERVER.replace("\n", "\n    "))
        info = "probe_mcp-1.2.3.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.4\nName: probe-mcp\nVersion: 1.2.3\nLicense-Expression: MIT\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\nprobe-mcp = probe_mcp:main\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a sandbox is needed")
def test_a_package_of_pypi_is_installed_started_and_taken_away(wheels, tmp_path):
    spec = Spec(name="probe", source="pypi", package="probe-mcp==1.2.3", program="probe-mcp")
    found = record(spec, FAST)
    assert found.failure is None, found.failure
    assert (found.version, found.licence, found.package) == ("1.2.3", "MIT", "pypi:probe-mcp==1.2.3")
    assert (
        "{PREFIX}" not in str(found.legs) and found.install_s > 0 and found.install_bytes > 0 and len(tools_of(found.main)) == 1
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a sandbox is needed")
def test_where_it_was_installed_is_not_told(wheels, tmp_path):
    tell = ("-c", "import sys; sys.exit('I am at ' + sys.argv[1])", "{PREFIX}/x")
    found = record(Spec(name="probe", source="pypi", package="probe-mcp==1.2.3", program="python", args=tell), FAST)
    assert found.failure.code == "E1205" and "I am at {PREFIX}/x" in found.failure.message
    assert "/probe-" not in str(found.legs)


def test_what_cannot_be_installed_or_started_is_told_in_the_installers_words(wheels, tmp_path):
    with pytest.raises(EarnestError, match="nothing-of-that-name") as caught:
        install(Spec(name="x", source="pypi", package="nothing-of-that-name==1.0", program="x"), tmp_path / "p1", 60.0)
    assert caught.value.code == "E1911"
    with pytest.raises(EarnestError, match="has probe-mcp") as caught:
        install(Spec(name="x", source="pypi", package="probe-mcp==1.2.3", program="probe"), tmp_path / "p2", 60.0)
    assert caught.value.code == "E1912"
    with pytest.raises(EarnestError, match=r"within 0\.01 s") as caught:
        install(Spec(name="x", source="pypi", package="probe-mcp==1.2.3", program="probe"), tmp_path / "p3", 0.01)
    assert caught.value.code == "E1911"


def test_a_package_that_unpacks_without_end_is_stopped(wheels, tmp_path, monkeypatch):
    monkeypatch.setattr(installing, "MAX_INSTALLED", 100)
    monkeypatch.setattr(installing, "_LOOK_S", 0.01)
    with pytest.raises(EarnestError, match="are allowed") as caught:
        install(Spec(name="x", source="pypi", package="probe-mcp==1.2.3", program="probe-mcp"), tmp_path / "p", 60.0)
    assert caught.value.code == "E1911"


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A registry of one npm package, whose install script would leave a trace."""
    folder = tmp_path / "registry"
    folder.mkdir()
    manifest = {
        "name": "probe-mcp",
        "version": "4.5.6",
        "license": "ISC",
        "bin": {"probe-mcp": "server.js"},
        "scripts": {"postinstall": f"touch {tmp_path / 'ran'}"},
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in (("package.json", json.dumps(manifest)), ("server.js", "#!/usr/bin/env node\n")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    (folder / "probe.tgz").write_bytes(packed.getvalue())
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    base = f"http://127.0.0.1:{server.server_port}"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {**manifest, "dist": {"tarball": f"{base}/probe.tgz", "integrity": integrity}}
    whole = {"name": "probe-mcp", "dist-tags": {"latest": "4.5.6"}, "versions": {"4.5.6": version}}
    (folder / "probe-mcp").write_text(json.dumps(whole))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", base)
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    yield base
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_a_package_of_npm_is_installed_without_running_its_scripts(registry, tmp_path):
    spec = Spec(name="probe", source="npm", package="probe-mcp@4.5.6", program="probe-mcp")
    found = install(spec, tmp_path / "prefix", 120.0)
    assert (found.version, found.licence) == ("4.5.6", "ISC") and found.program.exists()
    assert not (tmp_path / "ran").exists(), "an install script ran"
