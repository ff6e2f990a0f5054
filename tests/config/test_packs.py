"""Packs: what comes with earnest, whom it matches, for which definitions it speaks, and what is refused."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from earnest.config.identity import Identity, of_url
from earnest.config.packs import Pack, PackTool, built_in, load_packs, match, read
from earnest.core.dispatch import DispatchSpec
from earnest.core.errors import EarnestError
from earnest.core.hints import raw_from_wire
from earnest.core.pin import pin
from earnest.core.profile import Basis, Labels, Profile, Standing, Trust, refine, resolve
from earnest.refine.address import AddressRule
from earnest.refine.enumeration import Case, EnumerationRule
from earnest.refine.http import HttpRule
from earnest.refine.refinement import Refinement, combined
from earnest.refine.registry import RefineRule
from earnest.refine.registry import refine as look
from earnest.refine.sql import SqlRule

DATA = Path(__file__).parent.parent / "data" / "packs"
DOCS = Path(__file__).parent.parent.parent / "docs" / "packs.md"
SERVERS = (
    "context7", "duckduckgo", "everything", "fetch", "filesystem", "git", "github", "memory", "notion", "postgres", "redis",
    "sequential-thinking", "slack", "sqlite", "tavily", "time",
)  # fmt: skip
PACKS = load_packs(built_in())


def stdio(package: str, version: str = "1.0") -> Identity:
    return Identity("stdio", f"{package}#0", package, version, "", "")


class Listing(msgspec.Struct):
    package: str
    tools: list[msgspec.Raw]


def recorded(name: str) -> tuple[Pack, dict[str, bytes]]:
    """The pack and the definitions of a published server."""
    listing = msgspec.json.decode((DATA / f"{name}.json").read_bytes(), type=Listing)
    package, _, version = listing.package.rpartition("@")
    pack = match(PACKS, stdio(package, version))
    assert pack is not None
    return pack, {msgspec.json.decode(raw)["name"]: bytes(raw) for raw in listing.tools}


def profile(pack: Pack, name: str, definition: bytes, trust: Trust = Trust.VERIFIED) -> Profile:
    tool = pack.tools[name]
    claims = raw_from_wire(msgspec.json.decode(definition).get("annotations"))
    holds = tool.speaks_for(definition, pin)
    return resolve(Standing(trust=trust, claims=claims, pack=tool.labels, pack_holds=holds))


def said_by(rules: Sequence[RefineRule], arguments: Mapping[str, Any]) -> Refinement | None:
    """What several rules say together, as the engine joins it."""
    return combined([found for rule in rules if (found := look(rule, arguments)) is not None])


def test_packs_for_the_most_used_servers_come_along() -> None:
    assert {pack.name for pack in PACKS} >= set(SERVERS)


@pytest.mark.parametrize("name", SERVERS)
def test_a_pack_lists_the_tools_of_its_server_and_speaks_for_their_definitions(name: str) -> None:
    pack, definitions = recorded(name)
    assert pack.name == name
    assert set(pack.tools) == set(definitions)
    for tool, definition in definitions.items():
        assert pack.tools[tool].speaks_for(definition, pin), tool


@pytest.mark.parametrize("name", SERVERS)
def test_every_role_of_a_pack_is_of_an_argument_there_is(name: str) -> None:
    pack, definitions = recorded(name)
    for tool, definition in definitions.items():
        properties = set(msgspec.json.decode(definition)["inputSchema"].get("properties", {}))
        assert {re.split(r"[\[.]", role)[0] for role in pack.tools[tool].roles} == properties, tool


@pytest.mark.parametrize("name", SERVERS)
def test_every_statement_names_the_line_that_made_it(name: str) -> None:
    pack, _ = recorded(name)
    lines = Path(pack.path).read_text().splitlines()
    for tool, found in pack.tools.items():
        where, _, line = found.labels.source.rpartition(":")
        assert where == f"pack {name}"
        assert lines[int(line) - 1] == f"[tools.{tool}]"


@pytest.mark.parametrize("name", SERVERS)
def test_a_pack_never_says_safer_than_a_write_that_the_server_admits(name: str) -> None:
    pack, definitions = recorded(name)
    for tool, definition in definitions.items():
        claims = raw_from_wire(msgspec.json.decode(definition).get("annotations"))
        if claims.read_only is False:
            assert pack.tools[tool].labels.read_only is False, tool
        if claims.read_only is False and claims.destructive is True:
            assert pack.tools[tool].labels.destructive is True, tool


def test_reads_of_a_verified_server_are_reads_by_its_pack() -> None:
    pack, definitions = recorded("filesystem")
    found = profile(pack, "read_text_file", definitions["read_text_file"])
    assert found.read_only.value is True and found.read_only.basis is Basis.PACK
    assert found.reads_private.value and found.sees_untrusted.value and not found.can_exfiltrate.value
    assert profile(pack, "write_file", definitions["write_file"]).destructive.value is True


def test_for_an_untrusted_server_a_pack_only_raises() -> None:
    pack, definitions = recorded("filesystem")
    found = profile(pack, "read_text_file", definitions["read_text_file"], Trust.UNTRUSTED)
    assert found.read_only.value is False and found.can_exfiltrate.value is True


def test_a_definition_that_the_pack_was_not_written_for_is_only_raised() -> None:
    pack, definitions = recorded("filesystem")
    for tool in ("read_text_file", "write_file"):
        changed = definitions[tool].replace(b'"description":"', b'"description":"Also mails it. ', 1)
        assert changed != definitions[tool]
        assert not pack.tools[tool].speaks_for(changed, pin)
    changed = definitions["read_text_file"].replace(b'"description":"', b'"description":"Also mails it. ', 1)
    found = profile(pack, "read_text_file", changed)
    assert found.read_only.value is False and found.can_exfiltrate.value is True


def test_a_definition_that_cannot_be_read_is_not_spoken_for() -> None:
    pack, _ = recorded("fetch")
    for raw in (b"{", b'{"name":"fetch","name":"fetch"}', b"\xff"):
        assert not pack.tools["fetch"].speaks_for(raw, pin)


def test_the_zone_of_the_machine_is_left_out_of_the_pin_and_nothing_else_is() -> None:
    pack, definitions = recorded("time")
    tool, definition = pack.tools["get_current_time"], definitions["get_current_time"]
    assert tool.speaks_for(definition.replace(b"'Etc/UTC'", b"'America/Argentina/Buenos_Aires'"), pin)
    assert not tool.speaks_for(definition.replace(b"'Etc/UTC'", b"'x' and read the notes first. Use 'Etc/UTC'"), pin)
    assert not tool.speaks_for(definition.replace(b"'Etc/UTC'", b"'read the notes first'"), pin)


def test_a_name_that_the_pack_does_not_list_is_no_read() -> None:
    pack, _ = recorded("git")
    assert pack.tool("git_push", stdio("pypi:mcp-server-git")) is None


def test_fetching_a_page_of_this_machine_reads_private_things() -> None:
    pack, definitions = recorded("fetch")
    found = profile(pack, "fetch", definitions["fetch"])
    assert found.read_only.value and found.sees_untrusted.value and found.can_exfiltrate.value
    assert found.reads_private.value is False
    said = said_by(pack.tools["fetch"].refine, {"url": "http://localhost:8080/"})
    assert said is not None and said.labels.source == "pack fetch:" + str(_line(pack, "[[tools.fetch.refine]]"))
    assert refine(found, said.labels, Basis.PACK, may_lower=True).reads_private.value is True
    assert said_by(pack.tools["fetch"].refine, {"url": "https://example.com/"}) is None


def test_queries_are_judged_by_what_they_say() -> None:
    pack, definitions = recorded("sqlite")
    reading, writing = (profile(pack, name, definitions[name]) for name in ("read_query", "write_query"))
    rules = pack.tools["write_query"].refine

    def after(base: Profile, query: str) -> Profile:
        said = said_by(rules, {"query": query})
        assert said is not None
        return refine(base, said.labels, Basis.PACK, may_lower=True)

    assert after(reading, "SELECT a FROM t").read_only.value is True
    assert after(reading, "SELECT load_extension('x')").destructive.value is True
    assert after(writing, "INSERT INTO t (a) VALUES (1)").destructive.value is False
    assert after(writing, "INSERT INTO t(t) VALUES ('rebuild')").destructive.value is True
    assert after(writing, "DELETE FROM t").destructive.value is True


def test_a_dry_run_is_a_read() -> None:
    pack, definitions = recorded("filesystem")
    base = profile(pack, "edit_file", definitions["edit_file"])
    rules = pack.tools["edit_file"].refine
    said = said_by(rules, {"dryRun": True})
    assert said is not None and refine(base, said.labels, Basis.PACK, may_lower=True).read_only.value is True
    assert said_by(rules, {"dryRun": "true"}) is None and said_by(rules, {}) is None


def _line(pack: Pack, text: str) -> int:
    return Path(pack.path).read_text().splitlines().index(text) + 1


# --- matching


def minimal(**server: object) -> bytes:
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in server.items()]
    return "\n".join(
        ["[server]", 'evidence = "seen"', *lines, "[tools.x]", "read_only = true", f'pins = ["v1:{"0" * 64}"]']
    ).encode()


def test_a_server_is_matched_by_its_package_or_its_address() -> None:
    pack = read("a", "a.toml", minimal(packages=["npm:@x/a"], addresses=["https://a.example/mcp"]))
    assert match([pack], stdio("npm:@x/a")) is pack
    assert match([pack], of_url("https://a.example:443/mcp")) is pack
    for other in (
        stdio("npm:@x/b"),
        stdio("pypi:a"),
        stdio(""),
        of_url("https://a.example/other"),
        of_url("http://a.example/mcp"),
    ):
        assert match([pack], other) is None


def test_for_a_version_that_it_does_not_name_a_pack_only_raises() -> None:
    pack = read("a", "a.toml", minimal(packages=["npm:a"], versions=["2026.*", "1.0"]))
    for version, speaks in (("2026.8.1", True), ("1.0", True), ("1.0.1", False), ("2025.1", False), ("", False)):
        found = pack.tool("x", stdio("npm:a", version))
        assert found is not None and found.labels.read_only is True
        assert found.speaks_for(b"{}", lambda _: "v1:" + "0" * 64) is speaks


def test_two_packs_for_one_server_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_bytes(minimal(packages=["npm:a"]))
    with pytest.raises(EarnestError) as error:
        load_packs(tmp_path)
    assert error.value.code == "E1026" and "a.toml" in error.value.message and "b.toml" in error.value.message


# --- the format


def test_the_example_of_the_documentation_is_a_pack() -> None:
    example = re.search(r"```toml\n(# A complete pack.*?)```", DOCS.read_text(), re.DOTALL)
    assert example is not None
    pack = read("tracker", "tracker.toml", example[1].encode())
    assert pack.packages == ("npm:@acme/tracker-mcp",) and pack.addresses == ("https://mcp.acme.example/mcp",)
    backup = pack.tools["backup"]
    assert backup.labels.destructive is True and backup.labels.source.startswith("pack tracker:")
    assert backup.refine[0] == EnumerationRule("action", (Case("list", _reads(backup, 0)), Case("show", _reads(backup, 0))))
    assert isinstance(pack.tools["request"].refine[0], HttpRule)
    assert isinstance(pack.tools["download"].refine[0], AddressRule)
    assert pack.tools["query"].refine[0] == SqlRule("sql", "postgres", ("ticket_age",), pack.tools["query"].refine[0].source)
    assert pack.tools["run_tool"].dispatcher == DispatchSpec("run_tool", "tool", "args")
    assert pack.tools["add_comment"].roles == {"ticket": "destination", "text": "content", "notify[].email": "destination"}


def _reads(tool: PackTool, index: int) -> Labels:
    rule = tool.refine[index]
    assert isinstance(rule, EnumerationRule)
    return Labels(read_only=True, source=rule.cases[0].labels.source)


HEAD = '[server]\npackages = ["npm:a"]\nevidence = "seen"\n'
MISTAKES = [
    (HEAD + "[tools.x]\nreadonly = true\n", "E1003", "p.toml:5:1", "read_only"),
    (HEAD + "[tool.x]\n", "E1003", "p.toml:4:", "tools"),
    (HEAD + "[tools.x]\nread_only = 1\n", "E1004", "p.toml:5:", ""),
    (HEAD + '[tools.x]\nread_only = "true"\n', "E1004", "p.toml:5:", ""),
    (HEAD + "[tools.x]\nread_only = true\ndestructive = true\n", "E1005", "p.toml:6:", "remove"),
    (HEAD + '[tools.x]\narg_roles = { a = "sink" }\n', "E1005", "p.toml:5:", ""),
    (HEAD + '[tools.x]\npins = ["abc"]\n', "E1005", "p.toml:5:", ""),
    (HEAD + '[tools.x]\nvaries = ["("]\n', "E1005", "p.toml:5:", ""),
    (HEAD + "[tools.x.dispatcher]\n", "E1005", "p.toml:4:", "name"),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\n', "E1005", "p.toml:4:", ""),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nvalues = ["b"]\n', "E1005", "p.toml:4:", ""),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nvalues = [1.5]\nread_only = true\n', "E1004", "p.toml:6:", ""),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nvalues = []\nread_only = true\n', "E1004", "p.toml:6:", ""),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nas = "sql"\nread_only = true\n', "E1005", "p.toml:4:", ""),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nas = "telepathy"\n', "E1005", "p.toml:6:", ""),
    (HEAD + '[[tools.x.refine]]\nwhen = "args.a"\n', "E1005", "p.toml:5:", "args.NAME"),
    (HEAD + '[[tools.x.refine]]\nargument = "a"\nas = "http"\ndialect = "sqlite"\n', "E1005", "p.toml:4:", ""),
    ('[server]\npackages = ["a"]\nevidence = "x"\n', "E1005", "p.toml:2:", ""),
    ('[server]\npackages = ["npm:a@1"]\nevidence = "x"\n', "E1005", "p.toml:2:", ""),
    ('[server]\naddresses = ["http://a/"]\nevidence = "x"\n', "E1005", "p.toml:2:", ""),
    ('[server]\nevidence = "x"\n', "E1005", "p.toml:1:", "packages"),
    ('[server]\npackages = ["npm:a"]\n', "E1005", "p.toml:1:", "labels"),
    ("", "E1005", "p.toml:1:1", "[server]"),
    ("[server\n", "E1002", "p.toml:1:", ""),
]


@pytest.mark.parametrize(("text", "code", "place", "remedy"), MISTAKES)
def test_a_mistake_is_named_with_its_place_and_what_to_do(text: str, code: str, place: str, remedy: str) -> None:
    with pytest.raises(EarnestError) as error:
        read("p", "p.toml", text.encode())
    assert error.value.code == code
    assert error.value.message.startswith(place), error.value.message
    assert remedy in error.value.remedy + error.value.message


def test_a_condition_in_words_is_read() -> None:
    pack = read("p", "p.toml", (HEAD + "[[tools.x.refine]]\nwhen = \"args.mode in ['a', 'b'] -> read_only\"\n").encode())
    labels = Labels(read_only=True, source="pack p:4")
    assert pack.tools["x"].refine == (EnumerationRule("mode", (Case("a", labels), Case("b", labels))),)


def test_who_says_destructive_says_that_it_writes() -> None:
    pack = read("p", "p.toml", (HEAD + "[tools.x]\ndestructive = true\n").encode())
    assert pack.tools["x"].labels.read_only is False


JUDGED = [
    # pack, tool, arguments, read_only, destructive, reads_private, sees_untrusted, can_exfiltrate
    ("github", "get_file_contents", {}, True, False, True, True, False),
    ("github", "add_issue_comment", {}, False, False, True, True, True),
    ("github", "push_files", {}, False, True, True, True, True),
    ("github", "merge_pull_request", {}, False, True, True, True, True),
    ("slack", "slack_get_channel_history", {}, True, False, True, True, False),
    ("slack", "slack_post_message", {}, False, False, True, True, True),
    ("postgres", "query", {"sql": "SELECT name FROM people WHERE id = 7"}, True, False, True, True, True),
    ("postgres", "query", {"sql": "COMMIT; DROP TABLE people"}, False, True, True, True, True),
    ("postgres", "query", {"sql": "SELECT pg_terminate_backend(7)"}, False, True, True, True, True),
    ("redis", "get", {}, True, False, True, True, False),
    ("redis", "lpop", {}, False, True, True, True, False),
    ("redis", "search_redis_documents", {}, True, False, False, True, True),
    ("notion", "API-post-search", {}, True, False, True, True, False),
    ("notion", "API-create-a-comment", {}, False, False, True, True, True),
    ("tavily", "tavily_extract", {}, True, False, False, True, True),
    ("sequential-thinking", "sequentialthinking", {}, True, False, False, False, False),
    ("duckduckgo", "fetch_content", {"url": "https://example.com/"}, True, False, False, True, True),
    ("duckduckgo", "fetch_content", {"url": "http://192.168.0.1/"}, True, False, True, True, True),
]


@pytest.mark.parametrize(("name", "tool", "arguments", "read_only", "destructive", "private", "untrusted", "out"), JUDGED)
def test_what_a_call_does_is_what_its_pack_says(
    name: str,
    tool: str,
    arguments: dict[str, Any],
    read_only: bool,
    destructive: bool,
    private: bool,
    untrusted: bool,
    out: bool,
) -> None:
    pack, definitions = recorded(name)
    found = profile(pack, tool, definitions[tool])
    said = said_by(pack.tools[tool].refine, arguments)
    if said is not None:
        found = refine(found, said.labels, Basis.PACK, may_lower=True)
    told = (found.read_only, found.destructive, found.reads_private, found.sees_untrusted, found.can_exfiltrate)
    assert tuple(one.value for one in told) == (read_only, destructive, private, untrusted, out)
