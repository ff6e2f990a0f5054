"""How a server is launched, and which of what it is given is a secret."""

import pytest

from earnest.config.settings import parse
from earnest.gateway.launch import brought, launch_of

ENV = {"HOME": "/home/me", "PATH": "/bin", "T": "t-0123456789", "U": "u-0123456789"}


def launched(text: str):
    settings = parse("/c/earnest.toml", f"[servers.s]\n{text}".encode(), {}).servers["s"]
    return launch_of(settings, folder="/c", env={"PATH": "/bin"}, secrets=ENV)


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("command = ['x', '--token', '${env:T}']", {"t-0123456789"}),
        ("command = ['x']\nenv = { DSN = 'postgres://me:${env:T}@db/x', MODE = 'production' }",
         {"t-0123456789", "postgres://me:t-0123456789@db/x"}),
        ("command = ['x']\nenv = { API_TOKEN = 'typed', DATA = '${env:HOME}/data' }", {"typed", "/home/me/data"}),
        ("url = 'https://x/${env:U}/mcp'\nheaders = { Authorization = 'Bearer ${env:T}', X-Key = 'typed' }",
         {"Bearer t-0123456789", "t-0123456789", "u-0123456789", "typed"}),
    ],
)  # fmt: skip
def test_what_references_lead_to_is_secret_and_so_are_headers_and_variables_called_so(text, secrets):
    assert launched(text).secrets == secrets


def test_of_a_clients_own_environment_the_variables_called_so_are_secret():
    settings = parse("/c/earnest.toml", b"[servers.s]\nenv = { A = '${env:T}' }", {}).servers["s"]
    env = {"PATH": "/bin", "GITHUB_TOKEN": "gh", "MONKEYS": "3", "EDITOR": "vi"}
    launch = brought(["x"], "/w", settings, folder="/c", env=env, secrets=ENV)
    assert launch.secrets == {"t-0123456789", "gh"}
    assert launch.env == {**env, "A": "t-0123456789"} and (launch.argv, launch.cwd) == (("x",), "/w")
