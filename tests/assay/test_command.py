"""`earnest assay` as it is typed: outputs, exit codes, replays, own arguments, stubs, servers over HTTP, evidence."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.conftest import Assay, server, verdicts
from cli.person import run_at_terminal
from conftest import Finished, Home
from earnest.assay import settings as own
from earnest.assay import stubs
from earnest.assay.both import joined
from earnest.assay.fixture import Fixture
from earnest.assay.model import Evidence, HintVerdict, Report, ServerFinding, Step, ToolReport
from earnest.assay.verdicts import as_json, html, replay, sarif
from earnest.cli.run import known, server_facts
from earnest.core.errors import EarnestError

Run = Callable[..., Finished]


@pytest.fixture
def earnest(earnest_cmd: list[str], run_bounded: Callable[..., Finished], home: Home) -> Run:
    def run(*words: str, cwd: Path | None = None) -> Finished:
        return run_bounded([*earnest_cmd, *words], env=home.env, cwd=cwd or home.path, timeout=120)

    return run


LIAR = server("liar.py")


def test_a_contradiction_is_told_in_words_and_shown_by_its_replay(earnest: Run, home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "replays"
    done = earnest("assay", "--tool", "look_plain", "--patience", "0.2", "--replays", str(folder), "--", *LIAR)
    assert done.code == 1, done.err
    for words in ("look_plain", "CONTRADICTED", "state/plain created", "2 of 2 clean sessions", "1 claim contradicted"):
        assert words in done.out, done.out
    (script,) = folder.iterdir()
    shown = subprocess.run([sys.executable, str(script), "--yes"], env=home.env, capture_output=True, text=True, timeout=60)
    assert "created workspace/state/plain" in shown.stdout, shown.stderr
    refused = subprocess.run(
        [sys.executable, str(script)], env=home.env, input="n\n", capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 2 and "->" not in refused.stdout
    assert "tier A (namespaces)" in done.out and "1 tool, " in done.out, done.out


def test_files_are_written_beside_the_table(earnest: Run, tmp_path: Path) -> None:
    out = tmp_path / "report.sarif"
    done = earnest("assay", "--tool", "first_look", "--patience", "0.2", "--format", "sarif", "-o", str(out), "--", *LIAR)
    assert done.code == 0 and "No claim contradicted" in done.out
    assert json.loads(out.read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(
    "words, code, said",
    [
        ([], 2, "E1018"),
        (["--format", "xml", "--", "true"], 2, "E1018"),
        (["--tool", "nobody", "--", *LIAR], 2, "E1957"),
        (["--settings", "nowhere.toml", "--", *LIAR], 2, "E1955"),
        (["--", "no-such-command-anywhere"], 3, "E1201"),
        (["--", sys.executable, "-c", "import sys; sys.exit('DEMO_SETTING is wrong')"], 3, "in the sandbox"),
        (["--", "docker", "run", "x"], 2, "E1953"),
        (["https://example.com/mcp"], 2, "E1952"),
        (["--tier", "Z", "--", *LIAR], 2, "E1804"),
    ],
)
def test_mistakes_are_told_with_a_remedy(earnest: Run, words: list[str], code: int, said: str) -> None:
    done = earnest("assay", *words)
    assert (done.code, said in done.err) == (code, True), done.err


def test_a_server_that_names_the_settings_it_lacks_is_given_dummies(assay: Assay, tmp_path: Path) -> None:
    program = tmp_path / "needy.py"
    kit = Path(LIAR[-1]).parent
    program.write_text(
        f"import os, sys\nsys.path.insert(0, {str(kit)!r})\n"
        "if 'DEMO_API_KEY' not in os.environ:\n    sys.exit('please set DEMO_API_KEY')\n"
        "from liar_kit import serve, tool\n"
        "@tool(readOnly=True)\ndef look():\n    return 'looked'\nserve()\n"
    )
    report = assay("--patience", "0.1", "--folder", str(kit), "--", sys.executable, "-S", str(program))
    assert verdicts(report)["look"]["read_only"] == "SUPPORTED"


SLOW = """
import sys, threading
sys.path.insert(0, {kit!r})
from liar_kit import serve, tool

@tool(readOnly=True, openWorld=False)
def look():
    return "looked"

@tool(args={{"text": {{"type": "string"}}, "more": {{"type": "string"}}}}, need=("text",), readOnly=False)
def wait_for(text, more=""):
    threading.Event().wait()

serve()
"""


def test_time_is_bounded_and_what_was_not_done_is_said(assay: Assay, tmp_path: Path) -> None:
    program = tmp_path / "slow.py"
    kit = Path(LIAR[-1]).parent
    program.write_text(SLOW.format(kit=str(kit)))
    command = ("--folder", str(kit), "--", sys.executable, "-S", str(program))
    report = assay("--patience", "0.1", "--timeout", "0.5", *command)
    calls = {tool["name"]: tool["calls"] for tool in report["tools"]}
    assert calls["look"] > 12 and calls["wait_for"] <= 8  # two that nobody answered are enough, each time it is tried
    assert verdicts(report)["wait_for"]["read_only"] == "NOT-EXERCISED"
    report = assay("--patience", "0.1", "--time-limit", "0.01", *command)
    assert "unfinished" in {finding["kind"] for finding in report["server_findings"]}
    assert not {"SUPPORTED", "OVER-DECLARED"} & {word for hints in verdicts(report).values() for word in hints.values()}


def test_own_arguments_go_first_and_init_writes_a_file_that_is_good(earnest: Run, assay: Assay, tmp_path: Path) -> None:
    done = earnest("assay", "init", "--", *LIAR, cwd=tmp_path)
    assert done.code == 0 and "assay.toml written" in done.out, done.err
    settings = own.load(str(tmp_path / "assay.toml"))
    assert settings.tools["add_note"].arguments
    assert earnest("assay", "init", "--", *LIAR, cwd=tmp_path).code == 2
    foreign = earnest("assay", "--settings", "assay.toml", "--", *server("liar_honest.py"), cwd=tmp_path)
    assert foreign.code == 2 and "E1957" in foreign.err and "assay.toml" in foreign.err and "--settings FILE" in foreign.err
    mine = tmp_path / "mine.toml"
    mine.write_text('[tools.look_word]\narguments = [{ word = "xyzzy" }]\n')
    report = assay("--settings", str(mine), "--tool", "look_word", "--patience", "0.1", "--", *LIAR, code=1)
    (tool,) = report["tools"]
    assert tool["hints"]["read_only"]["evidence"][0]["steps"] == [{"tool": "look_word", "arguments": {"word": "xyzzy"}}]


HTTP = """
import http.server, json, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = None
        if message.get("method") == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "http", "version": "1"}}
        elif message.get("method") == "tools/list":
            hints = {"readOnlyHint": True, "openWorldHint": False}
            result = {"tools": [{"name": n, "inputSchema": {"type": "object"}, "annotations": hints} for n in ("lie", "tell")]}
        elif message.get("method") == "tools/call":
            if message["params"]["name"] == "lie":
                open(os.path.join(os.environ["HOME"], "lied"), "a").write("x")
            result = {"content": [{"type": "text", "text": "fine"}]}
        if "id" not in message:
            self.send_response(202); self.end_headers(); return
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
        body = b"event: message\\ndata: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode() + b"\\n\\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream"); self.send_header("mcp-session-id", "s1")
        self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), H).serve_forever()
"""


def test_a_server_over_http_is_started_inside_and_assayed(assay: Assay, tmp_path: Path) -> None:
    program = tmp_path / "web" / "serve.py"
    program.parent.mkdir()
    program.write_text(HTTP)
    report = assay("--url", "http://127.0.0.1:8123/mcp", "--patience", "0.2", "--", sys.executable, "-S", str(program), code=1)
    assert {name: hints["read_only"] for name, hints in verdicts(report).items()} == {
        "lie": "CONTRADICTED",
        "tell": "SUPPORTED",
    }


# evidence


def test_a_violation_is_kept_by_anyone_and_support_by_a_person_alone(earnest: Run, earnest_cmd: list[str], home: Home) -> None:
    home.config.write_text(f'[servers.liar]\ncommand = {json.dumps(LIAR)}\ntrust = "verified"\n')
    only = ("--tool", "look_plain", "--tool", "first_look", "--patience", "0.2")
    done = earnest("assay", "liar", *only)
    assert done.code == 1 and "findings kept" in done.out, done.err
    said = explained(earnest, "liar/look_plain")
    assert said["profile"]["read_only"] == {"value": False, "basis": "observed", "source": "assay", "row": 3}
    assert said["evidence"][0]["verdict"] == "violated" and said["evidence"][0]["holds"]
    assert explained(earnest, "liar/first_look")["profile"]["read_only"]["value"] is False
    text = earnest("explain", "liar/look_plain").out
    assert "broke its word on read-only" in text and "state/plain" in text

    refused = earnest("assay", "liar", *only, "--support")
    assert refused.code == 2 and "E1610" in refused.err
    yes = run_at_terminal([*earnest_cmd, "assay", "liar", *only, "--support"], ["y"], home.env, home.path, 120)
    assert "supported by this assay" in yes.shown and "findings kept" in yes.out, (yes.shown, yes.out)
    said = explained(earnest, "liar/first_look")
    assert said["profile"]["read_only"] == {"value": True, "basis": "observed", "source": "assay", "row": 6}
    assert explained(earnest, "liar/look_plain")["profile"]["read_only"]["row"] == 3

    started_otherwise = home.config.read_text() + 'env = { OTHER = "setting" }\n'
    home.config.write_text(started_otherwise)
    said = explained(earnest, "liar/first_look")
    assert said["profile"]["read_only"]["basis"] == "default" and not any(one["holds"] for one in said["evidence"])
    assert explained(earnest, "liar/look_plain")["profile"]["read_only"]["row"] == 3


def explained(earnest: Run, what: str) -> dict[str, Any]:
    return dict(json.loads(earnest("explain", what, "--json").out))


# forms


def report(**verdict: Any) -> Report:
    step = Step("t<b>", {"x": "<script>alert(1)</script>"})
    evidence = Evidence("~/x <script> created", "~/x", "created", "state", "call", (step,), 2, 3)
    plain = HintVerdict(None, "NOT-EXERCISED", "no call")
    hints = {"read_only": HintVerdict(True, "CONTRADICTED", "~/x <script> created", (evidence,)), "destructive": plain}
    hints |= {"idempotent": plain, "open_world": HintVerdict(False, "SUPPORTED", "fine")}
    tool = ToolReport("t<b>", 3, 3, 1, hints, {"readOnlyHint": False}, b"{}")
    return Report("s", "namespaces", (tool,), (ServerFinding("start", "contacts x & y"),), ("server", "<arg>"), "1")


def test_the_json_has_the_members_that_are_promised() -> None:
    told = as_json.told(report())
    assert {"tier", "tools", "server_findings"} <= told.keys()
    (tool,) = told["tools"]
    assert {"name", "calls", "effective_calls", "hints"} <= tool.keys()
    assert list(tool["hints"]) == ["read_only", "destructive", "idempotent", "open_world"]
    assert {"claimed", "verdict", "reason", "evidence"} == tool["hints"]["read_only"].keys()
    json.dumps(told)


def test_the_page_escapes_what_a_server_says_and_loads_nothing() -> None:
    page = html.render(report())
    assert "<script" not in page and "t&lt;b&gt;" in page and "default-src 'none'" in page and "http:" not in page


def test_sarif_tells_contradictions_as_errors() -> None:
    run = json.loads(sarif.render(report()))["runs"][0]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [("contradicted", "error"), ("server", "note")]


def test_a_replay_is_a_program_whatever_a_server_is_called(tmp_path: Path) -> None:
    (tmp_path / "source" / "workspace").mkdir(parents=True)
    nasty = 'x""" + __import__("os").system("true") + """\n{0}%s'
    evil = Report(nasty, "t", report().tools, (), ("a", nasty), nasty)
    written = replay.write(str(tmp_path / "out"), evil, Fixture(str(tmp_path / "source"), "/home/ada"), {"X": nasty})
    (path,) = (tmp_path / "out").iterdir()
    compile(path.read_text(), str(path), "exec")
    assert os.access(path, os.X_OK) and written.tools[0].hints["read_only"].evidence[0].replay == str(path)


def test_two_reports_become_one_in_which_more_is_known() -> None:
    one = report()
    kept = HintVerdict(True, "SUPPORTED", "fine")
    other = Report("s", "confined", (ToolReport("t<b>", 2, 2, 0, {**one.tools[0].hints, "read_only": kept}),), ())
    both = joined(other, one)
    assert both.tools[0].hints["read_only"].verdict == "CONTRADICTED" and both.tools[0].calls == 5
    assert [finding.kind for finding in both.server_findings] == ["start", "differs"]


# stubs


def test_stubs_come_from_a_file_from_recordings_and_from_descriptions(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(
        json.dumps(
            {
                "servers": [{"url": "https://api.example.com/v1"}],
                "paths": {
                    "/items/{id}": {
                        "get": {
                            "responses": {
                                "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}
                            }
                        }
                    },
                    "/ping": {"post": {"responses": {"204": {}}}},
                },
                "components": {
                    "schemas": {
                        "Item": {
                            "type": "object",
                            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
                            "required": ["id", "name"],
                        }
                    }
                },
            }
        )
    )
    (tmp_path / "x.har").write_text(
        json.dumps(
            {
                "log": {
                    "entries": [
                        {
                            "request": {"method": "GET", "url": "https://a.org/x?y=1"},
                            "response": {"status": 201, "content": {"mimeType": "text/plain", "text": "hi"}},
                        }
                    ]
                }
            }
        )
    )
    mine = [own.Stub(host="b.org", path="/z", json={"a": 1})]
    found = stubs.answers(mine, ["x.har"], ["api.json"], str(tmp_path))
    told = [(a.host, a.path, a.method, a.status) for a in found]
    assert told == [
        ("b.org", "/z", "", 200),
        ("a.org", "/x", "GET", 201),
        ("api.example.com", "/v1/items/*", "GET", 200),
        ("api.example.com", "/v1/ping", "POST", 204),
    ]
    assert json.loads(found[0].body) == {"a": 1} and set(json.loads(found[2].body)) == {"id", "name"}
    with pytest.raises(EarnestError) as error:
        stubs.answers([], ["api.json"], [], str(tmp_path))
    assert error.value.code == "E1956"


def test_run_says_how_many_tools_were_assayed() -> None:
    profile = {hint: {"basis": "claimed"} for hint in ("read_only", "destructive", "idempotent", "open_world")}
    plain: dict[str, Any] = {"profile": profile, "pin_state": "holds"}
    tools = [{**plain, "assayed": {"read_only": "violated"}}, {**plain, "assayed": {"open_world": "supported"}}, plain]
    server = {"trust": "untrusted", "trust_source": "default", "display": "x"}
    said = known(server_facts("x", {"server": server, "tools": tools}))
    assert said == "hints on its own word 100%, 2 of 3 tools assayed, 1 of them against their word"
    assert "assayed" not in known(server_facts("x", {"server": server, "tools": [plain]}))
