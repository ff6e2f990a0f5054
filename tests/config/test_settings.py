"""earnest.toml: what is read, and that every mistake is told with its place and the nearest right word."""

from pathlib import Path

import pytest

from earnest.config.containing import Containment
from earnest.config.sections import Asking, Condition, Limits, Listen, Receipts
from earnest.config.settings import Settings, load, parse
from earnest.core.dispatch import DispatchSpec
from earnest.core.errors import EarnestError
from earnest.core.profile import Trust
from earnest.refine.address import AddressRule
from earnest.refine.enumeration import EnumerationRule
from earnest.refine.http import HttpRule
from earnest.refine.sql import SqlRule

FULL = b"""
preset = "cautious"
policy = { deny = ["fs/delete_*"] }

[servers.fs]
command = ["npx", "-y", "@scope/files@1.2.3", "${env:HOME}/notes"]
env = { TOKEN = "${keyring:files/me}", MODE = "x" }
cwd = "/srv"
timeout = 2.5
trust = "verified"
contain = true

[servers.web]
url = "https://mcp.example.org/mcp"
headers = { Authorization = "Bearer ${file:token}" }
forward_headers = ["X-Api-Key"]
shared = true
ca = "ca.pem"
client_cert = "me.pem"
client_key = "me.key"

[labels."fs/read"]
read_only = true
can_exfiltrate = false
arg_roles = { path = "selector" }
dispatcher = { name = "tool", arguments = "args" }
[[labels."fs/read".refine]]
when = "args.mode == 'list'"
read_only = true
[[labels."fs/read".refine]]
argument = "action"
values = ["list", 7, true]
read_only = true
[[labels."fs/read".refine]]
argument = "query"
as = "sql"
dialect = "postgres"
functions = ["lower"]
[[labels."fs/read".refine]]
argument = "method"
as = "http"
default = "GET"
[[labels."fs/read".refine]]
argument = "url"
as = "address"

[clients.cursor]
asks = "person"
ask = "host"
conversation = "session"
idle_s = 3600

[asking]
queue = false
hold_s = 5
valid_s = 60
floor_s = 0.4
[limits]
body_bytes = 1048576
depth = 64
restarts = 2
[listen]
port = 0
hosts = ["gate.example"]
origins = ["https://gate.example"]
[receipts]
strict = true
payload_days = 1
payloads = false
redact = ["password"]
[flow]
integrity = "always"
[views.reads]
when = "tool.read_only"
servers = ["fs"]
"""


def read(text: str | bytes) -> Settings:
    return parse("earnest.toml", text.encode() if isinstance(text, str) else text, {"HOME": "/home/me"})


def test_every_section_is_read() -> None:
    s = read(FULL)
    fs, web = s.servers["fs"], s.servers["web"]
    assert s.flow.integrity == "always" and read("").flow.integrity == "words"
    assert [part.shown() for part in fs.command][:3] == ["npx", "-y", "@scope/files@1.2.3"]
    assert (fs.timeout, fs.trust, fs.contain, fs.shared) == (2.5, Trust.VERIFIED, Containment(), False)
    assert web.url is not None and web.url.shown() == "https://mcp.example.org/mcp"
    assert (web.ca, web.client_cert, web.client_key, web.shared) == ("ca.pem", "me.pem", "me.key", True)
    labels = s.labels[0]
    assert (labels.server, labels.tool) == ("fs", "read")
    assert labels.labels.read_only is True and labels.labels.destructive is None
    condition, listed, statement, method, address = labels.refine
    assert isinstance(condition, Condition) and condition.when == "args.mode == 'list'" and condition.labels.read_only
    assert isinstance(listed, EnumerationRule) and listed.argument == "action"
    assert [(case.value, case.labels.read_only) for case in listed.cases] == [("list", True), (7, True), (True, True)]
    assert isinstance(statement, SqlRule) and (statement.dialect, statement.functions) == ("postgres", ("lower",))
    assert isinstance(method, HttpRule) and method.default == "GET"
    assert isinstance(address, AddressRule) and address.argument == "url"
    assert labels.dispatcher == DispatchSpec("read", "tool", "args")
    assert s.client("cursor").asks_person and s.client("cursor").conversation == "session"
    assert not s.client("other").asks_person
    assert s.asking == Asking(queue=False, hold_s=5, valid_s=60, floor_s=0.4)
    assert s.limits == Limits(body_bytes=1048576, depth=64, restarts=2)
    assert s.listen == Listen(port=0, hosts=("gate.example",), origins=("https://gate.example",))
    assert s.receipts == Receipts(strict=True, payload_days=1, payloads=False, redact=("password",))
    assert s.views["reads"].servers == ("fs",)
    assert s.preset == "cautious"
    assert s.policies[0].node.plain() == {"deny": ["fs/delete_*"]}


def test_an_empty_file_is_the_defaults() -> None:
    s = read("")
    assert s.preset == "balanced" and s.asking == Asking() and s.limits.body_bytes == 4 * 1024 * 1024
    assert (s.asking.hold_s, s.asking.valid_s, s.receipts.payload_days) == (45, 600, 7)
    assert s.listen.host == "127.0.0.1" and not s.servers


@pytest.mark.parametrize(
    ("text", "code", "where", "says"),
    [
        ("preset = 'balancd'", "E1005", ":1:10:", 'did you mean "balanced"?'),
        ("\n\n  prest = 'x'", "E1003", ":3:3:", 'did you mean "preset"?'),
        ("[servers.a]\ncomand = ['x']", "E1003", ":2:1:", 'did you mean "command"?'),
        ("[servers.a]\ncommand = 'x'", "E1004", ":2:11:", "a list of text"),
        ("[servers.a]\ncommand = ['x', 1]", "E1004", ":2:17:", "servers.a.command[1]"),
        ("[servers.a]\ncommand = []", "E1005", ":2:11:", "names no program"),
        ("[servers.a]\ncommand = ['x']\nurl = 'http://x'", "E1005", ":3:7:", "both a command and a url"),
        ("[servers.a]\nurl = 'ftp://x'", "E1005", ":2:7:", "https://"),
        ("[servers.a]\nurl = 'https://me:pw@x/'", "E1005", ":2:7:", "no user"),
        ("[servers.a]\nurl = 'https://x'\nenv = { A = 'b' }", "E1005", ":3:7:", "belongs to a command"),
        ("[servers.a]\ncommand = ['x']\nheaders = { A = 'b' }", "E1005", ":3:11:", "belongs to a url"),
        ("[servers.a]\ncommand = ['x']\ntrust = 'Trusted'", "E1005", ":3:9:", 'did you mean "trusted"?'),
        ("[servers.a]\ncommand = ['x']\ntrust = true", "E1004", ":3:9:", "but is true"),
        ("[servers.a]\ncommand = ['x', '${file:t}']", "E1005", ":2:11:", "seen by every process"),
        ("[servers.a]\ncommand = ['x']\nenv = { T = '${evn:X}' }", "E1007", ":3:13:", "servers.a.env.T"),
        ("[servers.a]\nurl = 'https://x'\nheaders = { Host = 'b' }", "E1005", ":3:20:", "written by earnest"),
        ("[servers.a]\nurl = 'https://x'\nheaders = { A = 'b', a = 'c' }", "E1005", ":3:26:", "twice"),
        ("[servers.A]\ncommand = ['x']", "E1006", ":1:1:", "cannot name a server"),
        ("[servers.a]\n[servers.a]", "E1002", ":2:", "twice"),
        ("servers = 3", "E1004", ":1:11:", "must be a table"),
        ("[labels.fs]\nread_only = true", "E1006", ":1:1:", "SERVER/TOOL"),
        ("[labels.'fs/x']\nreadonly = true", "E1003", ":2:1:", 'did you mean "read_only"?'),
        ("[labels.'fs/x']\nread_only = 'true'", "E1004", ":2:13:", "true or false"),
        ("[labels.'fs/x']\narg_roles = { a = 'amout' }", "E1005", ":2:19:", 'did you mean "amount"?'),
        ("[[labels.'fs/x'.refine]]\nwhen = 'x'", "E1005", ":1:1:", "at least one hint"),
        ("[[labels.'fs/x'.refine]]\nargument = 'a'\nvalues = [1.5]\nread_only = true", "E1004", ":3:11:", "whole numbers"),
        ("[[labels.'fs/x'.refine]]\nargument = 'a'\nvalues = 'b'\nread_only = true", "E1004", ":3:10:", "a list of"),
        ("[[labels.'fs/x'.refine]]\nargument = 'a'\nas = 'sql'\ndefault = 'GET'", "E1005", ":4:11:", 'goes with as = "http"'),
        ("[[labels.'fs/x'.refine]]\nargument = 'a'\nas = 'address'\nread_only = true", "E1005", ":1:1:", "nothing of its own"),
        ("[labels.'fs/x']\nread_only = true\ndestructive = true", "E1005", ":3:15:", "at once"),
        (
            "[[labels.'fs/x'.refine]]\nwhen = 'true'\nread_only = true\ndestructive = true",
            "E1005",
            ":4:15:",
            "at once",
        ),
        ("[[labels.'fs/x'.refine]]\nread_only = true", "E1005", ":1:1:", "either when or argument"),
        ("[labels.'fs/x']\npin = 'abc'", "E1005", ":2:7:", "64 hex digits"),
        ("[clients.c]\nconversation = 'proces'", "E1005", ":2:16:", 'did you mean "process"?'),
        ("[asking]\nhold_s = -1", "E1005", ":2:10:", "from 0 to 3600"),
        ("[asking]\nhold_s = inf", "E1005", ":2:10:", "from 0"),
        ("[asking]\nfloor_s = nan", "E1005", ":2:11:", "from 0"),
        ("[limits]\nbody_bytes = 1e9", "E1004", ":2:14:", "a whole number"),
        ("[limits]\nrestarts = true", "E1004", ":2:12:", "a number"),
        ("[limits]\ncall_timeout_s = 700", "E1005", "", "call_hard_timeout_s"),
        ("[listen]\nport = 70000", "E1005", ":2:8:", "65535"),
        ("[listen]\norigins = ['gate.example']", "E1005", ":2:11:", "no origin"),
        ("[views.v]", "E1005", ":1:1:", "says nothing"),
        (
            "[servers.files]\ncommand=['x']\n[views.v]\nservers = ['file']",
            "E1005",
            "",
            'did you mean "files"?',
        ),
        ("a = [1,", "E1002", "", "not TOML"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_nearest_word(text: str, code: str, where: str, says: str) -> None:
    with pytest.raises(EarnestError) as caught:
        read(text)
    assert caught.value.code == code
    assert f"earnest.toml{where}" in caught.value.message
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_named_file_must_exist_and_an_unnamed_one_need_not(tmp_path: Path) -> None:
    path = str(tmp_path / "earnest.toml")
    assert load(path, False, {}).servers == {}
    with pytest.raises(EarnestError, match="there is no such file") as caught:
        load(path, True, {})
    assert caught.value.code == "E1001"


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(EarnestError, match="regular") as caught:
        load(str(tmp_path), True, {})
    assert caught.value.code == "E1001"


def test_a_file_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "earnest.toml"
    path.write_text("preset = 'observe'")
    path.chmod(0o666)
    with pytest.raises(EarnestError, match="every user") as caught:
        load(str(path), True, {})
    assert caught.value.code == "E1008"
    path.chmod(0o664)
    assert load(str(path), True, {}).preset == "observe"


def test_policy_and_includes_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("deny = ['x/y']")
    (tmp_path / "more.toml").write_text("[servers.b]\nurl = 'https://b.example/mcp'")
    path = tmp_path / "earnest.toml"
    path.write_text("policy = 'p.toml'\ninclude = ['more.toml']\n[servers.a]\ncommand = ['a']")
    s = load(str(path), True, {})
    assert s.policies[0].path == str(tmp_path / "p.toml") and set(s.servers) == {"a", "b"}
    (tmp_path / "more.toml").write_text("[servers.a]\ncommand = ['evil']")
    with pytest.raises(EarnestError, match="written twice") as caught:
        load(str(path), True, {})
    assert caught.value.code == "E1006"
    (tmp_path / "more.toml").write_text("preset = 'observe'")
    with pytest.raises(EarnestError, match="servers only"):
        load(str(path), True, {})


def test_the_digest_changes_with_every_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "earnest.toml"
    path.write_text('include = ["servers.toml"]\npolicy = "policy.toml"\n')
    seen = set()
    for servers in ("", "[servers.a]\ncommand = ['x']\n"):
        for policy in ("", "deny = ['a/*']\n"):
            (tmp_path / "servers.toml").write_text(servers)
            (tmp_path / "policy.toml").write_text(policy)
            seen.add(load(str(path), True, {}).sha256)
            assert load(str(path), True, {}).sha256 in seen
    assert len(seen) == 4


def test_reading_leaves_no_secret_in_representations() -> None:
    text = repr(read("[servers.a]\ncommand=['x']\nenv = { T = 'hunter2' }\n"))
    assert "hunter2" not in text


def test_a_byte_order_mark_and_crlf_are_read() -> None:
    assert read(b"\xef\xbb\xbfpreset = 'observe'\r\n").preset == "observe"
