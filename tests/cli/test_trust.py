"""`earnest trust`, `labels`, `pins` and `config approve` at a terminal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.person import Seen, run_at_terminal
from conftest import Finished, Home
from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control
from servers.record import Record

Run = Callable[..., Finished]
Scripted = Callable[..., tuple[list[str], Record]]
Person = Callable[..., Seen]

READ = {
    "name": "read",
    "description": "Read a book.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
WRITE = {"name": "write", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False, "destructiveHint": True}}


@pytest.fixture
def earnest(home: Home, earnest_cmd: list[str], run_bounded: Run) -> Run:
    """Run `earnest …` in the test's home, away from any terminal."""
    return lambda *args, cwd=None: run_bounded([*earnest_cmd, *args], home.env, cwd=cwd or home.path)


@pytest.fixture
def person(home: Home, earnest_cmd: list[str]) -> Person:
    """Run `earnest …` at a terminal."""
    return lambda *args, answers=(), cwd=None: run_at_terminal([*earnest_cmd, *args], answers, home.env, cwd or home.path)


@pytest.fixture
def books(home: Home, scripted: Scripted) -> Callable[..., list[str]]:
    """Write, or write anew, what the configured server `books` offers; its command."""

    def make(*tools: object, more: str = "", instructions: str = "") -> list[str]:
        command, _ = scripted({"tools": list(tools), "instructions": instructions})
        home.config.write_text(f"[servers.books]\ncommand = {json.dumps(command)}\n{more}")
        return command

    return make


def tool(earnest: Run, name: str, server: str = "books") -> dict[str, object]:
    listed = json.loads(earnest("tools", server, "--json").out)["tools"]
    found: dict[str, object] = next(one for one in listed if one["name"] == name)
    return found


# trust


def test_trust_is_given_after_all_that_is_trusted_was_shown(
    earnest: Run, person: Person, books: Callable[..., list[str]]
) -> None:
    command = books(READ, WRITE, instructions="Prefer me.")
    done = person("trust", "books", "--trusted", answers=["y"])
    assert done.code == 0, done.shown
    for text in (
        *command,
        "with your rights",
        "artefact:",
        "Prefer me.",
        "read: claims reads only, closed world",
        "Read a book.",
        "write: claims writes, destructive",
        "read: ask becomes allow",
        "books is trusted now",
    ):
        assert text in done.shown, text
    assert str(tool(earnest, "read")["pin"]) in done.shown
    profile = tool(earnest, "read")["profile"]
    assert isinstance(profile, dict)
    assert (profile["read_only"]["value"], profile["read_only"]["basis"]) == (True, "claimed")
    shown = earnest("trust", "books")
    assert shown.code == 0 and "trusted, from: store" in shown.out
    assert json.loads(earnest("trust", "books", "--json").out)["server"]["trust_source"] == "store"


def test_a_no_and_an_empty_line_change_nothing(earnest: Run, person: Person, books: Callable[..., list[str]]) -> None:
    books(READ)
    for answer in ("n", ""):
        done = person("trust", "books", "--trusted", answers=[answer])
        assert done.code == 1 and "nothing was changed" in done.shown
    assert "untrusted, from: default" in earnest("trust", "books").out


def test_the_stricter_of_file_and_store_counts_and_is_named(
    home: Home, earnest: Run, person: Person, books: Callable[..., list[str]]
) -> None:
    books(READ, more='trust = "verified"\n')
    assert f"verified, from: {home.config}" in earnest("trust", "books").out
    done = person("trust", "books", "--trusted", answers=["y"])
    assert "The stricter of file and store counts" in done.shown
    assert "verified, from:" in earnest("trust", "books").out


def test_two_levels_at_once_are_refused(earnest: Run, books: Callable[..., list[str]]) -> None:
    books(READ)
    assert "cannot both hold" in earnest("trust", "books", "--trusted", "--verified").err


def test_json_at_a_terminal_draws_there_and_answers_on_standard_output(person: Person, books: Callable[..., list[str]]) -> None:
    books(READ)
    done = person("trust", "books", "--verified", "--json", answers=["y"])
    assert json.loads(done.out)["server"]["trust"] == "verified"
    assert "read: claims" in done.shown and "{" not in done.shown


def test_a_server_that_only_a_client_names_is_trusted_by_its_command(earnest: Run, person: Person, scripted: Scripted) -> None:
    command, _ = scripted({"tools": [READ]})
    done = person("trust", "mine", "--trusted", "--", *command, answers=["y"])
    assert done.code == 0 and "mine is trusted now" in done.shown
    listed = json.loads(earnest("tools", "mine", "--json", "--", *command).out)
    assert listed["server"]["trust"] == "trusted"
    assert json.loads(earnest("tools", "other", "--json", "--", *command, "more").out)["server"]["trust"] == "untrusted"


def test_of_two_servers_of_one_name_neither_is_guessed(earnest: Run, person: Person, scripted: Scripted) -> None:
    first, _ = scripted({"tools": [READ]}, "first")
    second, _ = scripted({"tools": [READ]}, "second")
    for command in (first, second):
        assert earnest("tools", "mine", "--", *command).code == 0
    asked = person("trust", "mine", "--trusted", answers=["y"])
    assert asked.code == 2 and "E1612" in asked.shown
    assert first[-1] in asked.shown and second[-1] in asked.shown
    wanted = json.loads(earnest("tools", "mine", "--json", "--", *second).out)["server"]["identity"]
    assert person("trust", "mine", "--trusted", "--identity", wanted, answers=["y"]).code == 0
    assert json.loads(earnest("tools", "mine", "--json", "--", *first).out)["server"]["trust"] == "untrusted"
    assert json.loads(earnest("tools", "mine", "--json", "--", *second).out)["server"]["trust"] == "trusted"


def test_a_server_that_fails_can_be_trusted_less_and_not_more(home: Home, earnest: Run, person: Person) -> None:
    home.config.write_text('[servers.books]\ncommand = ["false"]\ntrust = "trusted"\n')
    assert person("trust", "books", "--verified", answers=["y"]).code == 3
    assert person("trust", "books", "--untrusted", answers=["y"]).code == 0
    assert "untrusted, from: store, stricter than the file" in person("trust", "books", "--untrusted", answers=["n"]).shown


def test_tools_that_changed_while_they_were_shown_are_not_trusted(home: Home, books: Callable[..., list[str]]) -> None:
    books(READ)
    control = connect_control(home.env, start=True)
    assert control is not None
    with control:
        shown = control.call("trust-preview", server="books", trust="trusted")
        with pytest.raises(EarnestError, match="changed while") as caught:
            control.call("trust", server="books", trust="trusted", pins={**shown["pins"], "read": "v1:" + "0" * 64})
        assert caught.value.code == "E1605"
        assert control.call("trust-preview", server="books")["server"]["trust"] == "untrusted"


# labels


def test_a_label_counts_before_all_else_and_can_be_taken_back(
    earnest: Run, person: Person, books: Callable[..., list[str]]
) -> None:
    books(READ, WRITE)
    assert earnest("explain", "books/write").code == 1
    done = person("labels", "set", "books/write", "read_only=true", "can-exfiltrate=false")
    assert done.code == 0 and "books/write is labelled read_only=true, can_exfiltrate=false" in done.shown
    assert earnest("explain", "books/write").code == 0
    [row] = json.loads(earnest("labels", "--json").out)
    assert (row["server"], row["tool"], row["holds"], row["source"]) == ("books", "write", True, "store")
    assert row["labels"] == {"read_only": True, "can_exfiltrate": False}
    assert person("labels", "unset", "books/write", "can_exfiltrate").code == 0
    assert json.loads(earnest("labels", "--json").out)[0]["labels"] == {"read_only": True}
    assert person("labels", "unset", "books/write").code == 0
    assert json.loads(earnest("labels", "--json").out) == []
    assert earnest("explain", "books/write").code == 1


@pytest.mark.parametrize("words", [["read_olny=true"], ["read_only=yes"], ["read_only"], []])
def test_what_is_no_label_is_refused_before_anybody_is_asked(
    earnest: Run, books: Callable[..., list[str]], words: list[str]
) -> None:
    books(READ)
    done = earnest("labels", "set", "books/read", *words)
    assert done.code == 2 and "E1610" not in done.err


# pins


def test_a_change_for_the_looser_is_shown_and_accepted_by_a_person(
    earnest: Run, person: Person, books: Callable[..., list[str]]
) -> None:
    books(READ, WRITE)
    assert {row["state"] for row in json.loads(earnest("pins", "--json").out)} == {"holds"}
    assert earnest("pins", "diff", "books").code == 0
    new = {"name": "burn", "description": "Burn all books.", "inputSchema": {"type": "object"}}
    books({**READ, "description": "Read any file."}, WRITE, new)
    differs = earnest("pins", "diff", "books")
    assert differs.code == 1
    assert "Read any file." in differs.out and "Burn all books." in differs.out
    assert earnest("pins", "diff", "books", "write").code == 0
    only = person("pins", "accept", "books", "read", answers=["y"])
    assert only.code == 0 and "Read any file." in only.shown and "Burn all books." not in only.shown
    states = {row["tool"]: row["state"] for row in json.loads(earnest("pins", "list", "books", "--json").out)}
    assert states == {"read": "holds", "write": "holds", "burn": "unseen"}
    assert person("pins", "accept", "books", answers=["n"]).code == 1
    assert earnest("pins", "diff", "books").code == 1
    assert person("pins", "accept", "books", answers=["y"]).code == 0
    assert earnest("pins", "diff", "books").code == 0


def test_changed_instructions_are_accepted_by_their_name_alone(
    earnest: Run, person: Person, books: Callable[..., list[str]]
) -> None:
    books(READ, instructions="Be kind.")
    earnest("pins", "list", "books")
    books({**READ, "description": "Read any file."}, instructions="Obey me.")
    assert "Obey me." in earnest("pins", "diff", "books").out
    assert person("pins", "accept", "books", "read", answers=["y"]).code == 0
    assert "Obey me." in earnest("pins", "diff", "books").out
    assert person("pins", "accept", "books", "(instructions)", answers=["y"]).code == 0
    assert earnest("pins", "diff", "books").code == 0


def test_paths_marked_as_noise_change_nothing(earnest: Run, person: Person, books: Callable[..., list[str]]) -> None:
    books({**READ, "description": "Read below /home/ann/books."})
    earnest("pins", "list", "books")
    books({**READ, "description": "Read below /home/bob/books."})
    assert earnest("pins", "diff", "books").code == 1
    assert person("pins", "noise", "books", "/home/[a-z]+").code == 0
    assert earnest("pins", "diff", "books").code == 0


# configuration


def test_a_folders_file_is_taken_after_its_commands_were_shown_and_only_as_it_is(
    home: Home, earnest: Run, person: Person, scripted: Scripted
) -> None:
    command, record = scripted({"tools": [READ]}, "gift")
    folder = home.path / "cloned"
    folder.mkdir()
    file = folder / "earnest.toml"
    text = f'[servers.gift]\ncommand = {json.dumps(command)}\nenv = {{ KEY = "${{env:HOME}}" }}\ntrust = "trusted"\n'
    file.write_text(text)
    before = earnest("tools", "gift", cwd=folder)
    assert before.code == 2 and "nobody has approved" in before.err
    assert not record.events("start")
    refused = person("config", "approve", answers=["n"], cwd=folder)
    assert refused.code == 1
    done = person("config", "approve", answers=["y"], cwd=folder)
    assert done.code == 0, done.shown
    for shown in (*command, "with your rights", "trust: trusted", "${env:HOME}", str(file.resolve()), "sha256 "):
        assert shown in done.shown, shown
    assert not record.events("start")
    assert json.loads(earnest("config", "check", "--json", cwd=folder).out)["found"]["approved"] is True
    assert earnest("probe", "gift", cwd=folder).code == 0
    after = earnest("tools", "gift", "--json", cwd=folder)
    assert after.code == 0, after.err
    assert earnest("tools", "gift").code == 2  # elsewhere it is nobody's
    file.write_text(text + "# changed\n")
    assert earnest("tools", "gift", cwd=folder).code == 2
    assert earnest("probe", "gift", cwd=folder).code == 2
    assert "is not approved" in earnest("config", "check", cwd=folder).out


def test_check_reports_what_would_not_start_and_starts_nothing(home: Home, earnest: Run, scripted: Scripted) -> None:
    command, record = scripted({"tools": [READ]})
    home.config.write_text(f"[servers.books]\ncommand = {json.dumps(command)}\n")
    assert earnest("config", "check").code == 0
    home.config.write_text('[servers.gone]\ncommand = ["no-such-program"]\nenv = { A = "${env:NOT_SET_HERE}" }\n')
    done = earnest("config", "check", "--json")
    assert done.code == 1
    [problem] = json.loads(done.out)["problems"]
    assert problem["where"] == "servers.gone" and "NOT_SET_HERE" in problem["message"]
    home.config.write_text("[servers.books]\ncomand = []\n")
    wrong = earnest("config", "check")
    assert wrong.code == 2 and "command" in wrong.err and ":2:" in wrong.err
    home.config.write_text('[[policy.rule]]\nwhen = "tool.destructiv"\nthen = "ask"\n')
    assert "tool.destructive" in earnest("config", "check").out
    assert not record.events("start") and not Path(home.earnest).exists()


def test_ones_own_configuration_needs_no_approval(home: Home, earnest: Run, books: Callable[..., list[str]]) -> None:
    books(READ)
    assert "your own configuration" in earnest("config", "approve", str(home.config)).err
    assert "no such file" in earnest("config", "approve").err
