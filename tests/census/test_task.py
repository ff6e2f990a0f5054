"""The task of one server: contained, asked in both eras, kept as it spoke; whatever goes wrong is in the record."""

import sys
from pathlib import Path

import msgspec
import pytest

from census_kit import FAST, PYTHON, tool
from earnest.census import contain
from earnest.census.record import decoded, tools_of
from earnest.census.spec import Spec
from earnest.census.task import isolated, record

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a sandbox is needed")


def test_both_eras_and_all_pages_are_kept_as_they_came(scripted_spec):
    tools = [tool(f"t{number}", x_unknown=1.50) for number in range(5)]
    found = record(scripted_spec("paged", {"tools": tools, "page": 2, "instructions": "Be kind"}), FAST)
    assert found.failure is None and [leg.modern for leg in found.legs] == [False, True]
    for leg in found.legs:
        assert len(leg.pages) == 3 and [decoded(one)["name"] for one in tools_of(leg)] == [f"t{n}" for n in range(5)]
        assert b"nextCursor" in bytes(leg.pages[0]) and all(b'"x_unknown"' in one for one in tools_of(leg))
        assert 0 < leg.open_s <= leg.list_s
    assert found.legs[0].version == "2025-11-25" and found.legs[1].version == "2026-07-28"
    assert decoded(found.main.hello)["instructions"] == "Be kind"
    assert found.containment and found.recorded.endswith("Z")


def test_a_server_of_one_era_tells_how_it_refused_the_other(scripted_spec):
    legacy = record(scripted_spec("old", {"era": "legacy", "tools": [tool()]}), FAST)
    assert [leg.modern for leg in legacy.legs] == [False, False]
    assert decoded(legacy.legs[1].probe)["code"] == -32601
    modern = record(scripted_spec("new", {"era": "modern", "tools": [tool()]}), FAST)
    assert [leg.modern for leg in modern.legs] == [True, True] and len(tools_of(modern.main)) == 1


PRY = r"""
import json, os, re, socket, sys
def tried(act):
    try:
        return str(act())
    except Exception as error:
        return f"{type(error).__name__}"
found = {
    "rights": re.search(r"CapEff:\s*(\w+)", open("/proc/self/status").read())[1],
    "home": os.getcwd(), "environ": sorted(os.environ),
    "interfaces": [n for _, n in socket.if_nameindex()],
    "network": tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)), "root": tried(lambda: os.listdir("/root")),
    "outside": tried(lambda: open("OUTSIDE", "w")), "passwd": tried(lambda: open("/etc/shadow").read()),
    "own": tried(lambda: open("mine", "w").close()), "processes": len([n for n in os.listdir("/proc") if n.isdigit()]),
}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "pry", "version": "1"}}
    elif message.get("method") == "tools/list":
        result = {"tools": [{"name": "found", "description": json.dumps(found), "inputSchema": {"type": "object"}}]}
    else:
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_server_has_no_network_no_rights_no_credentials_and_nothing_of_the_person(tmp_path, monkeypatch):
    monkeypatch.setenv("A_REAL_TOKEN", "of the person")
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    script = tmp_path / "pry" / "pry.py"
    script.parent.mkdir()
    script.write_text(PRY.replace("OUTSIDE", str(outside / "escaped")))
    spec = Spec(
        name="pry", source="command", program=PYTHON, args=(str(script),), folders=(str(script.parent),), env={"KEY": "dummy"}
    )
    found = msgspec.json.decode(decoded(tools_of(isolated(spec, FAST).main)[0])["description"])
    assert set(found["rights"]) <= set("0") and found["home"] == contain.HOME and found["own"] == "None"
    assert found["interfaces"] == ["lo"] and found["network"] == "OSError"
    assert found["root"] in ("PermissionError", "FileNotFoundError", "[]", "['.pyenv']")
    assert found["passwd"] in ("PermissionError", "FileNotFoundError")
    assert not list(outside.iterdir()) and found["outside"] != "None"
    assert "KEY" in found["environ"] and "A_REAL_TOKEN" not in found["environ"] and found["processes"] < 5


@pytest.mark.parametrize(
    "script, code, step",
    [
        ({"start": {"exit": 3}, "methods": {"initialize": {"exit": 3}, "server/discover": {"exit": 3}}}, "E1205", "open"),
        ({"methods": {"tools/list": {"error": {"code": -32000, "message": "broken"}}}}, "E1208", "list"),
        ({"methods": {"tools/list": {"result": {"tools": [], "nextCursor": "again"}}}}, "E1208", "list"),
        ({"methods": {"tools/list": {"never": True}}}, "E1206", "list"),
    ],
    ids=["ends", "error", "circle", "silent"],
)
def test_what_goes_wrong_is_a_record_with_its_reason(scripted_spec, script, code, step):
    quick = msgspec.structs.replace(FAST, timeouts=msgspec.structs.replace(FAST.timeouts, page_s=0.6))
    found = record(scripted_spec("broken", script), quick)
    assert (found.failure.code, found.failure.step) == (code, step) and found.main is None


def test_a_server_that_ends_at_the_word_of_the_newer_era_is_asked_in_the_older_one(scripted_spec):
    script = {"era": "legacy", "tools": [tool()], "methods": {"server/discover": {"exit": 1}}}
    found = record(scripted_spec("touchy", script), FAST)
    assert found.failure is None and [leg.modern for leg in found.legs] == [False, False], found.legs[1].failure


def test_a_setup_line_prepares_the_home(scripted_spec):
    spec = scripted_spec("prepared", {"tools": [tool()]}, setup=("echo hello > note", "test -f note && test $(pwd) = {HOME}"))
    assert record(spec, FAST).failure is None
    failing = record(msgspec.structs.replace(spec, setup=("echo no such thing >&2; false",)), FAST)
    assert failing.failure.code == "E1205" and "no such thing" in failing.failure.message


def test_an_address_is_asked_without_containment(scripted_http):
    server = scripted_http({"tools": [tool()], "http": {"token": "dummy"}})
    spec = Spec(name="remote", source="url", url=server.url, headers={"Authorization": "Bearer dummy"})
    found = record(spec, FAST)
    assert found.failure is None and [leg.modern for leg in found.legs] == [False, True] and found.transport == "http"
    assert len(tools_of(found.main)) == 1
    gone = record(msgspec.structs.replace(spec, url="http://127.0.0.1:1/mcp"), FAST)
    assert gone.failure.code.startswith("E12") and gone.failure.step == "open"


def test_a_task_that_hangs_or_breaks_costs_one_record(scripted_spec):
    spec = scripted_spec("late", {"methods": {"initialize": {"sleep": 30}, "server/discover": {"sleep": 30}}})
    hurried = msgspec.structs.replace(FAST, install_s=-2 * FAST.timeouts.leg_s - 20 - 60 + 1.5)
    found = isolated(spec, hurried)
    assert found.failure.code == "E1913" and found.failure.step == "worker" and "1.5 s" in found.failure.message


def test_nothing_is_left_of_a_task(scripted_spec, tmp_path):
    work = tmp_path / "work"
    record(scripted_spec("one", {"tools": []}), msgspec.structs.replace(FAST, work=str(work)))
    assert list(work.iterdir()) == []
    marks = [p for p in Path("/proc").iterdir() if p.name.isdigit() and _mentions(p, str(tmp_path))]
    assert marks == []


def _mentions(process, text):
    try:
        return text.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False
