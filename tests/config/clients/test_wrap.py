"""Wrapping changes only the command, unwrapping gives back the very bytes, and nothing unsafe is touched."""

import json
import re
import tomllib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earnest.config import jsonc
from earnest.config.clients import changes
from earnest.config.clients.dialect import ClientFile, Dialect, Entry, entries, parsed
from earnest.config.clients.registry import CLIENTS, client
from earnest.config.clients.wrap import TOKEN_HEADER, Listener, unwrap, wrap
from earnest.config.document import apply
from earnest.core.errors import EarnestError
from properties import examples

LISTENER = Listener(address="http://127.0.0.1:7573", token="t0ken")
PROGRAM = "/opt/earnest/bin/earnest"
JSON_CLIENTS = [dialect for dialect in CLIENTS if dialect.name != "codex"]
REFERENCES = ["${env:TOK}", "${TOK}", "${TOK:-d}", "${input:k}", "${workspaceFolder}", "${A%x}", "$TOK"]
REFERENCES.append("C:\\Program Files\\x y\\n.cmd")


def file_of(dialect: Dialect, data: bytes) -> ClientFile:
    return parsed(dialect, "config.toml" if dialect.name == "codex" else "config.json", data)


def wrap_all(dialect: Dialect, data: bytes, config: str = "") -> changes.Change:
    file = file_of(dialect, data)
    chosen = {e.where: f"s{i}" for i, e in enumerate(entries(dialect, file)) if not e.leave and not e.wrapped}
    return changes.wrapping(dialect, file, chosen, PROGRAM, LISTENER, config)


def unwrap_all(dialect: Dialect, change: changes.Change, data: bytes | None = None) -> bytes:
    originals = {original.where: original for original in change.originals}
    back, left = changes.unwrapped(dialect, file_of(dialect, data or change.after), originals)
    assert not left
    return back


def container(dialect: Dialect) -> str:
    return dialect.containers[0][0]


JSON_TEXT = """// my servers
{
  "theme": "dark", /* keep */
  "%s": {
    // files
    "fs": {
      "command": "npx",
      "args": [
        "-y", // yes
        "@scope/files",
        "/data",
      ],
      "env": { "TOKEN": "${env:TOKEN}" },
      "x-unknown": [1, 2, ],
    },
    "bare": {"command":"run-me"},
    "empty": { "args": [], "command": "e\\u0078e" , },
    "spaced": { "args": [ ], "disabled": true, "command" : "C:\\\\Program Files\\\\x y\\\\n.cmd" },
  },
}
"""


@pytest.mark.parametrize("dialect", JSON_CLIENTS, ids=lambda d: d.name)
@pytest.mark.parametrize("change", [lambda t: t, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, json.dumps])
def test_wrap_then_unwrap_is_byte_identical(dialect: Dialect, change: Callable[[str], str]) -> None:
    text = JSON_TEXT % container(dialect)
    if change is json.dumps:  # a client that rewrites its file in one line
        data = json.dumps(jsonc.scan("f", text.encode()).plain()).encode()
    else:
        data = change(text).encode()
    wrapped = wrap_all(dialect, data)
    plain = jsonc.scan("f", wrapped.after).plain()
    assert isinstance(plain, dict)
    servers = plain[container(dialect)]
    head = ["--client", dialect.name, "--"]
    assert servers["fs"]["command"] == PROGRAM
    assert servers["fs"]["args"] == ["stdio", "s0", *head, "npx", "-y", "@scope/files", "/data"]
    assert servers["bare"]["args"] == ["stdio", "s1", *head, "run-me"]
    assert servers["empty"]["args"] == ["stdio", "s2", *head, "exe"]
    assert servers["spaced"]["args"][-1] == "C:\\Program Files\\x y\\n.cmd" and servers["spaced"]["disabled"] is True
    assert servers["fs"]["env"] == {"TOKEN": "${env:TOKEN}"} and servers["fs"]["x-unknown"] == [1, 2]
    if change is not json.dumps:
        assert all(comment in wrapped.after for comment in (b"// my servers", b"/* keep */", b"// yes"))
    assert unwrap_all(dialect, wrapped) == data


@pytest.mark.parametrize("dialect", CLIENTS, ids=lambda d: d.name)
def test_a_named_configuration_stands_in_the_entry_and_is_taken_out_with_it(dialect: Dialect) -> None:
    data = (TOML_TEXT if dialect.name == "codex" else JSON_TEXT % container(dialect)).encode()
    wrapped = wrap_all(dialect, data, "/srv/my team/earnest.toml")
    first = next(entry for entry in entries(dialect, file_of(dialect, wrapped.after)))
    assert first.args[:6] == ("stdio", "s0", "--client", dialect.name, "--config", "/srv/my team/earnest.toml")
    assert first.wrapped == "s0" and first.argv[0] == "npx" and first.argv[-1] != "--"
    assert unwrap_all(dialect, wrapped) == data


def test_a_configuration_whose_path_the_client_would_resolve_is_refused() -> None:
    with pytest.raises(EarnestError) as error:
        wrap_all(client("cursor"), b'{"mcpServers":{"a":{"command":"x"}}}', "/srv/${env:USER}/earnest.toml")
    assert error.value.code == "E1014" and "${env:USER}" in error.value.message


TOML_TEXT = """# mine
model = "x"

[mcp_servers.fs] # files
command = "npx" # the runner
args = [ # all
  "-y",
  'C:\\data', # literal
]
env = { TOKEN = "a" }
enabled = false

[mcp_servers.bare]
    command = 'run-me' # indented
startup_timeout_sec = 20

[mcp_servers."quo ted"]
"command" = "c"

[mcp_servers]
one = { command = "one", args = ["a"] }
two = { env = {}, command = "two" }
dotted.command = "three"
dotted.args = []
[other]
command = "not a server"
"""
TOML_INLINE = 'mcp_servers = { a = { command = "x" }, b.command = "y", c = { args = [], command = "z" } }\n'


@pytest.mark.parametrize("text", [TOML_TEXT, TOML_INLINE])
@pytest.mark.parametrize("change", [lambda t: t, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, str.rstrip])
def test_toml_wraps_and_unwraps_byte_identical(text: str, change: Callable[[str], str]) -> None:
    dialect = client("codex")
    data = change(text).encode()
    wrapped = wrap_all(dialect, data)
    before = tomllib.loads(text)["mcp_servers"]
    after = tomllib.loads(wrapped.after.decode().removeprefix("\ufeff"))["mcp_servers"]
    assert list(after) and set(after) == set(before)
    for name, server in before.items():
        assert after[name]["command"] == PROGRAM
        assert after[name]["args"][:1] == ["stdio"] and after[name]["args"][2:5] == [
            "--client",
            "codex",
            "--",
        ]
        assert after[name]["args"][5:] == [server["command"], *server.get("args", [])]
        rest = {key: value for key, value in server.items() if key not in ("command", "args")}
        assert rest.items() <= after[name].items()
    assert unwrap_all(dialect, wrapped) == data


def test_another_edit_in_between_is_kept_and_only_our_range_reverted() -> None:
    dialect = client("cursor")
    data = (JSON_TEXT % "mcpServers").encode()
    wrapped = wrap_all(dialect, data)
    edited = wrapped.after.replace(b'"dark"', b'"light"').replace(b'"/data"', b'"/more", "/data"')
    edited = edited.replace(b'"env": {', b'"note": 1, "env": {')
    expected = data.replace(b'"dark"', b'"light"').replace(b'"/data"', b'"/more", "/data"')
    assert unwrap_all(dialect, wrapped, edited) == expected.replace(b'"env": {', b'"note": 1, "env": {')


def test_a_file_the_client_has_rewritten_is_still_unwrapped() -> None:
    dialect = client("claude-code")
    text = '{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}}'
    wrapped = wrap_all(dialect, text.encode())
    rewritten = json.dumps(json.loads(wrapped.after), indent=2).encode()
    back = json.loads(unwrap_all(dialect, wrapped, rewritten))["mcpServers"]
    assert back["a"] == {"command": "x", "args": ["1"]}
    assert back["b"]["command"] == "y" and not back["b"].get("args")


names = st.text(max_size=5)
arguments = st.lists(names, max_size=3)
server = st.fixed_dictionaries(
    {"command": st.text(min_size=1, max_size=5).filter(lambda t: len(t.split()) == 1)},
    optional={"args": arguments, "env": st.dictionaries(names, names, max_size=2), "other": st.integers()},
)


@settings(max_examples=examples(50), deadline=None)
@given(
    st.dictionaries(names, server, max_size=3),
    st.sampled_from(JSON_CLIENTS),
    st.sampled_from([(None, (", ", ": ")), (None, (",", ":")), (2, (",", ": ")), ("\t", (",", ":"))]),
    st.booleans(),
)
def test_any_configuration_wraps_and_unwraps_exactly(
    servers: dict[str, object], dialect: Dialect, style: tuple[object, tuple[str, str]], ascii_only: bool
) -> None:
    indent, separators = style
    text = json.dumps(
        {"a": 1, container(dialect): servers},
        indent=indent,
        separators=separators,
        ensure_ascii=ascii_only,  # type: ignore[arg-type]
    )
    data = text.encode("utf-8", "surrogatepass")
    wrapped = wrap_all(dialect, data)
    assert len(wrapped.names) == sum(1 for s in servers.values() if s["command"] != "earnest")  # type: ignore[index]
    assert unwrap_all(dialect, wrapped) == data


def toml_text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


plain_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(lambda t: len(t.split()) == 1)
toml_server = st.tuples(
    plain_text, st.none() | st.lists(plain_text, max_size=3), st.sampled_from(["table", "inline", "dotted"])
)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(toml_server, max_size=4), st.sampled_from(["\n", "\r\n"]), st.sampled_from([", ", ",", " ,\n # c\n "]))
def test_any_toml_configuration_wraps_and_unwraps_exactly(
    servers: list[tuple[str, list[str] | None, str]], end: str, comma: str
) -> None:
    order = {"dotted": 0, "inline": 1, "table": 2}
    lines = ["model = 'x'", "[mcp_servers]"]
    for number, (command, args, form) in sorted(enumerate(servers), key=lambda item: order[item[1][2]]):
        pairs = [f"command = {toml_text(command)}"]
        if args is not None:
            pairs.insert(number % 2, f"args = [{comma.join(map(toml_text, args))}]")
        if form == "table":
            lines += [f"[mcp_servers.s{number}]", *(f"  {pair} # c" for pair in pairs)]
        elif form == "inline":
            lines.append(f"s{number} = {{ {', '.join(pairs)} }}")
        else:
            lines += [f"s{number}.{pair}" for pair in pairs]
    data = end.join("\n".join(lines).split("\n")).encode()
    wrapped = wrap_all(client("codex"), data)
    after = tomllib.loads(wrapped.after.decode())["mcp_servers"]
    for number, (command, args, _) in enumerate(servers):
        if command != "earnest":
            assert after[f"s{number}"]["args"][5:] == [command, *(args or [])]
    assert unwrap_all(client("codex"), wrapped) == data


@pytest.mark.parametrize("text", ['{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'])
def test_a_key_twice_is_refused(text: str) -> None:
    with pytest.raises(EarnestError) as caught:
        wrap_all(client("cursor"), text.encode())
    assert caught.value.code == "E1011"
    with pytest.raises(EarnestError) as caught:
        wrap_all(client("codex"), b'[mcp_servers.a]\ncommand = "x"\ncommand = "y"\n')
    assert caught.value.code == "E1010"


def resolve(dialect: Dialect, text: str) -> str:
    """A client that resolves each of its own references to something recognisable, and nothing else."""
    return re.sub(dialect.variable, lambda found: f"<{found.group()[::-1]}>", text) if dialect.variable else text


@pytest.mark.parametrize("dialect", CLIENTS, ids=lambda d: d.name)
@pytest.mark.parametrize("value", REFERENCES)
def test_the_server_gets_what_the_client_alone_would_have_given_it(dialect: Dialect, value: str) -> None:
    entry = {"command": value, "args": ["a", value], "env": {"T": value}}
    if dialect.name == "codex":
        table = f"command = {json.dumps(value)}\nargs = ['a', {json.dumps(value)}]\nenv = {{ T = {json.dumps(value)} }}\n"
        data = f"[mcp_servers.s]\n{table}".encode()
    else:
        data = json.dumps({container(dialect): {"s": entry}}).encode()
    found = entries(dialect, file_of(dialect, data))[0]
    wrapped = wrap_all(dialect, data)
    after = entries(dialect, file_of(dialect, wrapped.after))[0]
    assert wrapped.after.count(json.dumps(value).encode()) == data.count(json.dumps(value).encode())
    started = [resolve(dialect, part) for part in after.args]
    assert started[5:] == [resolve(dialect, part) for part in (found.command, *found.args)]
    env = after.node.get("env", "T")
    assert env is not None and env.value == value


def remote(dialect: Dialect, **keys: object) -> bytes:
    if dialect.name == "codex":
        lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
        return ("[mcp_servers.web]\n" + "\n".join(lines) + "\n").encode()
    return json.dumps({container(dialect): {"web": keys}}, indent=1).encode()


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{k}" = {_toml(v)}' for k, v in value.items()) + " }"
    return json.dumps(value)


@pytest.mark.parametrize("dialect", CLIENTS, ids=lambda d: d.name)
@pytest.mark.parametrize("headers", [None, {}, {"X-Key": "${env:TOK}"}, {"authorization": "Bearer ${input:k}", "B": "c"}])
def test_a_remote_server_goes_to_the_listener_with_its_headers_and_comes_back(
    dialect: Dialect, headers: dict[str, str] | None
) -> None:
    key = dialect.url_keys[0][0]
    extra = {} if headers is None else {dialect.headers_key: headers}
    data = remote(dialect, **{key: "https://x.example/mcp"}, **extra)
    wrapped = wrap_all(dialect, data)
    entry = entries(dialect, file_of(dialect, wrapped.after))[0]
    assert entry.url == "http://127.0.0.1:7573/s/s0/mcp" and entry.wrapped == "s0"
    node = entry.node.get(dialect.headers_key)
    assert node is not None
    after = node.plain()
    assert isinstance(after, dict)
    for name, value in (headers or {}).items():
        assert after.pop(name) == value
    occupied = "authorization" in (headers or {})
    assert after == ({TOKEN_HEADER: "t0ken"} if occupied else {"Authorization": "Bearer t0ken"})
    assert wrapped.forward_headers["s0"] == tuple(headers or {})
    assert unwrap_all(dialect, wrapped) == data


def test_an_older_transport_becomes_the_one_the_listener_speaks_and_comes_back() -> None:
    gemini, code = client("gemini-cli"), client("claude-code")
    data = remote(gemini, url="https://x.example/sse")
    wrapped = wrap_all(gemini, data)
    assert b'"httpUrl": "http://127.0.0.1:7573/s/s0/mcp"' in wrapped.after
    assert unwrap_all(gemini, wrapped) == data
    data = remote(code, type="sse", url="https://x.example/sse")
    wrapped = wrap_all(code, data)
    assert json.loads(wrapped.after)["mcpServers"]["web"]["type"] == "http"
    assert unwrap_all(code, wrapped) == data


def test_codex_keeps_the_header_that_it_takes_from_its_environment() -> None:
    codex = client("codex")
    text = b"""[mcp_servers.web]
url = "https://x.example"
bearer_token_env_var = "TOK"
[mcp_servers.web.http_headers]
"A" = "b"
[mcp_servers.web.env_http_headers]
"C" = "D"
"""
    wrapped = wrap_all(codex, text)
    after = tomllib.loads(wrapped.after.decode())["mcp_servers"]["web"]
    assert after["http_headers"] == {"A": "b", TOKEN_HEADER: "t0ken"}
    assert wrapped.forward_headers["s0"] == ("A", "C", "Authorization")
    assert unwrap_all(codex, wrapped) == text


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("claude-code", {"url": "https://x", "headersHelper": "sh"}, "headersHelper"),
        ("claude-code", {"url": "https://x", "oauth": {}}, "OAuth"),
        ("claude-code", {"url": "${URL:-https://x}"}, "only the client can resolve"),
        ("claude-code", {"url": "wss://x", "type": "ws"}, "transport ws"),
        ("cursor", {"command": "npx -y pkg"}, "several words"),
        ("cursor", {"command": "x", "args": ["a", 1]}, "no list of text"),
        ("cursor", {"command": "x", "args": "a b"}, "no list of text"),
        ("cursor", {"command": "/bin/earnest", "args": ["run"]}, "starts earnest itself"),
        ("cursor", {"nothing": 1}, "neither a command nor an address"),
    ],
)
def test_what_cannot_be_wrapped_is_named_and_left(name: str, entry: dict[str, object], why: str) -> None:
    dialect = client(name)
    found = entries(dialect, file_of(dialect, json.dumps({"mcpServers": {"s": entry}}).encode()))[0]
    assert why in found.leave
    with pytest.raises(EarnestError) as caught:
        wrap(dialect, found, "s", PROGRAM, LISTENER)
    assert caught.value.code == "E1014"


def first(dialect: Dialect, data: bytes) -> Entry:
    return entries(dialect, file_of(dialect, data))[0]


def test_wrapping_twice_is_refused_and_so_is_unwrapping_what_is_not_wrapped() -> None:
    cursor = client("cursor")
    data = b'{"mcpServers": {"s": {"command": "x"}}}'
    entry = first(cursor, data)
    with pytest.raises(EarnestError, match="not wrapped"):
        unwrap(entry)
    wrapped = apply(data, wrap(cursor, entry, "s", PROGRAM).edits)
    with pytest.raises(EarnestError, match="already"):
        wrap(cursor, first(cursor, wrapped), "s", PROGRAM)
    assert first(cursor, wrapped).argv == ("x",)
