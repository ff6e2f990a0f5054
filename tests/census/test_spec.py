"""Lists of servers: what they may say, what is refused, and with which words."""

import json
import tomllib
from pathlib import Path

import pytest

from earnest.census.spec import load
from earnest.core.errors import EarnestError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "census" / "servers.toml"


def write(tmp_path, text, name="list.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_example_names_forty_pinned_servers_with_dummy_values_only():
    listing = load(EXAMPLE)
    assert len(listing.servers) == 40 and len({spec.name for spec in listing.servers}) == 40
    assert {spec.source for spec in listing.servers} == {"npm", "pypi"} and {spec.cohort for spec in listing.servers} == {
        "live"
    }
    assert all(spec.program and spec.package for spec in listing.servers)


def test_an_entry_says_where_it_comes_from_and_how_it_starts(tmp_path):
    listing = load(
        write(
            tmp_path,
            """
cohort = "mine"
[servers.notes]
npm = "@scope/notes-mcp@1.2.3"
args = ["{HOME}"]
[servers.old]
pypi = "old-mcp==0.1"
requires = ["mcp<2"]
program = "old"
env = { KEY = "dummy" }
[servers.local]
command = ["bin/server", "--stdio"]
folders = ["bin"]
[servers.far]
url = "http://127.0.0.1:9/mcp"
headers = { Authorization = "Bearer dummy" }
cohort = "far"
[[recordings]]
path = "old/"
cohort = "2025-07"
licence = "MIT"
""",
        )
    )
    notes, old, local, far = listing.servers
    assert (notes.source, notes.program, notes.args, notes.cohort) == ("npm", "notes-mcp", ("{HOME}",), "mine")
    assert (old.requires, old.program, old.env) == (("mcp<2",), "old", {"KEY": "dummy"})
    assert (local.program, local.args) == (str(tmp_path / "bin" / "server"), ("--stdio",))
    assert local.folders == (str(tmp_path / "bin"),) and far.cohort == "far"
    assert listing.recordings[0].path == str(tmp_path / "old") and listing.recordings[0].licence == "MIT"
    assert len({spec.digest for spec in listing.servers}) == 4


def test_the_file_that_tells_how_recordings_were_made_is_a_list_too(tmp_path):
    value = {
        "note": "…",
        "servers": {
            "sqlite": {
                "package": "pypi:mcp-server-sqlite==2025.4.25",
                "install": "uv pip install --only-binary :all: mcp-server-sqlite==2025.4.25 mcp<2",
                "command": "{PREFIX}/py/sqlite/bin/mcp-server-sqlite",
                "args": ["--db-path", "{HOME}/t.db"],
                "env": {},
                "setup": [],
                "tools": 6,
            }
        },
    }
    (spec,) = load(write(tmp_path, json.dumps(value), "launch.json")).servers
    assert (spec.source, spec.package, spec.requires) == ("pypi", "mcp-server-sqlite==2025.4.25", ("mcp<2",))
    assert (spec.program, spec.args) == ("mcp-server-sqlite", ("--db-path", "{HOME}/t.db"))


@pytest.mark.parametrize(
    "text, code, words",
    [
        ("cohort = 1", "E1900", "cohort"),
        ("", "E1900", "names no server"),
        ("[servers.a]\nnpm = 'x@1'\npypi = 'x==1'", "E1900", "exactly one"),
        ("[servers.a]\nargs = ['x']", "E1900", "exactly one"),
        ("[servers.a]\nnpm = 'x'", "E1900", "one version"),
        ("[servers.a]\nnpm = 'x@latest'", "E1900", "one version"),
        ("[servers.a]\nnpm = 'git+https://example.com/x@1'", "E1900", "one version"),
        ("[servers.a]\npypi = '--index-url=http://x y==1'", "E1900", "one version"),
        ("[servers.a]\npypi = 'x==1'\nrequires = ['-r /etc/passwd']", "E1900", "requirement"),
        ("[servers.a]\nnpm = 'x@1'\nprogram = '../../bin/sh'", "E1900", "not a path"),
        ("[servers.'a/../b']\nnpm = 'x@1'", "E1900", "no name"),
        ("[servers.a]\nnpm = 'x@1'\nenvironment = {}", "E1900", "environment"),
        ("[servers.a]\nnpm = 'x@1'\nenv = { T = 'ghp_" + "a1" * 18 + "' }", "E1901", "credential"),
        ("[servers.a]\nnpm = 'x@1'\nargs = ['--key=AKIA" + "ABCD1234" * 2 + "']", "E1901", "credential"),
        ("[servers.a]\nurl = 'https://x.invalid/?key=AIza" + "A1b2c" * 7 + "'", "E1901", "credential"),
        ("[servers.a]\nurl = 'https://me:word@x.invalid/mcp'", "E1901", "password"),
        ("[servers.a]\nurl = 'ftp://x.invalid/mcp'", "E1900", "no address"),
        ("[servers.a]\nurl = 'https://[x/mcp'", "E1900", "no address"),
        ("[servers.a]\nurl = 'https://x.invalid'\nheaders = { 'A B' = 'x' }", "E1900", "no header"),
        ('[servers.a]\nurl = "https://x.invalid"\nheaders = { A = "x\\ny" }', "E1900", "no header"),
        ("[servers.a]\nurl = 'https://x.invalid'\nenv = { A = 'x' }", "E1900", "means nothing beside `url`"),
        ("[servers.a]\nnpm = 'x@1'\nheaders = { A = 'x' }", "E1900", "means nothing beside `npm`"),
        ("[servers.a]\nnpm = 'x@1'\nprogram = '..'", "E1900", "not a path"),
        ("[servers.a]\ncommand = ['']", "E1900", "empty"),
        ("[servers.a]\ncommand = ['x']\nenv = { 'A=B' = 'x' }", "E1900", "variable"),
        ('[servers.a]\ncommand = ["x", "a\\u0000b"]', "E1900", "null"),
        ("[[recordings]]\npath = 'x'\ncohort = 'a/../b'", "E1900", "no name of a cohort"),
        ("a = " + "[" * 5000 + "]" * 5000, "E1900", "no list"),
        ("[servers", "E1900", "no list"),
    ],
)
def test_a_bad_list_is_refused_with_the_entry_named(tmp_path, text, code, words):
    with pytest.raises(EarnestError, match=words) as caught:
        load(write(tmp_path, text))
    assert caught.value.code == code


@pytest.mark.parametrize("text", ["[" * 100_000, '{"servers": {"a": {"package": "npm:x@1", "command": "x", "install": "\'"}}}'])
def test_a_bad_list_in_json_is_refused_too(tmp_path, text):
    with pytest.raises(EarnestError) as caught:
        load(write(tmp_path, text, "list.json"))
    assert caught.value.code == "E1900"


def test_a_recording_in_place_of_a_list_is_known(tmp_path):
    with pytest.raises(EarnestError, match="is a recording") as caught:
        load(write(tmp_path, '{"tools": []}', "tools.json"))
    assert "--cohort" in caught.value.remedy


def test_nothing_is_taken_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "of the person")
    (spec,) = load(write(tmp_path, "[servers.a]\nnpm = 'x@1'\nenv = { T = '${env:TOKEN} $TOKEN' }")).servers
    assert spec.env == {"T": "${env:TOKEN} $TOKEN"}


def test_a_list_that_is_not_there_is_told(tmp_path):
    with pytest.raises(EarnestError) as caught:
        load(tmp_path / "none.toml")
    assert caught.value.code == "E1019"
    assert tomllib.loads(EXAMPLE.read_text())["cohort"] == "live"


def test_the_example_of_recordings_keeps_their_cohorts_apart():
    listing = load(EXAMPLE.with_name("recordings.toml"))
    assert not listing.servers and len({one.cohort for one in listing.recordings}) == len(listing.recordings) == 4
    assert all(Path(one.path).is_relative_to(EXAMPLE.parent / "recordings") and one.licence for one in listing.recordings)
