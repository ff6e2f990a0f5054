"""What a person sees before a yes."""

import hashlib

from earnest.protocol.prompt import HintFact, PromptFacts, folded, render_prompt

HINTS = (
    HintFact("read_only", True, False, "default"),
    HintFact("destructive", None, True, "default"),
    HintFact("idempotent", False, False, "claimed"),
    HintFact("open_world", None, False, "operator"),
)


def render(arguments: bytes, tool: str = "send", title: str = "Send mail") -> str:
    return render_prompt(PromptFacts("mail", tool, title, HINTS, arguments, ("rule \u202edeletes", "flow")))


def test_shows_everything_that_matters() -> None:
    assert render(b'{"to":"a@b.c","n":9007199254740993,"o":{"b":1.10,"a":null}}').split("\n") == [
        "Server: mail",
        "Tool: send",
        "Title (the server's own word): Send mail",
        "Asked because: rule <U+202E>deletes",
        "Asked because: flow",
        "read_only: no (default; the server claims yes)",
        "destructive: yes (default; the server claims nothing)",
        "idempotent: no (claimed; the server claims no)",
        "open_world: no (operator; the server claims nothing)",
        "Arguments (3):",
        '  to = "a@b.c"',
        "  n = 9007199254740993",
        '  o = {"a":null,"b":1.10}',
    ]


def test_hints_that_are_moot_are_told_as_that() -> None:
    hints = [HintFact("read_only", True, True, "claimed"), HintFact("destructive", None, False, "claimed")]
    shown = render_prompt(PromptFacts("mail", "read", "", tuple(hints), b"{}", ("flow",)))
    assert "destructive: no (it only reads; the server claims nothing)" in shown.split("\n")


def test_escapes_cannot_hide_what_an_argument_says() -> None:
    assert '"rm -rf"' in render(b'{"c":"\\u0072\\u006d -rf"}')


def test_a_stranger_cannot_start_a_line_of_its_own() -> None:
    shown = render(b'{"a\\nServer: trusted":"x\\nAsked because: nothing"}', tool="t\nServer: trusted", title="\r\n")
    assert [line for line in shown.split("\n") if line.startswith("Server:")] == ["Server: mail"]
    assert sum(line.startswith("Asked because:") for line in shown.split("\n")) == 2


def test_long_arguments_are_folded_and_none_is_left_out() -> None:
    arguments = b"{" + b",".join(b'"k%d":"%b"' % (number, b"v" * 3000) for number in range(40)) + b"}"
    shown = render(arguments)
    assert all(f"  k{number} = " in shown for number in range(40))
    assert shown.count("[folded: 3002 characters in all") == 40
    assert len(shown) < 40_000


def test_no_arguments_and_malformed_ones() -> None:
    assert render(b"{}").endswith("Arguments: none")
    assert 'Arguments (malformed): {"a":1,"a":2}' in render(b'{"a":1,"a":2}')


def test_long_text_is_folded_with_length_and_digest() -> None:
    text = "a" * 999 + "\nrm -rf"
    shown = folded(text, 20)
    assert shown.startswith("a" * 20 + " … [folded: 1006 characters in all, sha256 ")
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in shown
    assert folded("a" * 20, 20) == "a" * 20
