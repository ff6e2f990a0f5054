"""Views: what a route shows, why the rest is not shown, and that what is hidden cannot be called."""

from typing import Any

import pytest

from earnest.core.compile import Compiled
from gateway.live import Live, names, reader, text_of, tool

VIEWS = """
[views.readers]
when = "tool.read_only"
[views.home]
when = "!tool.open_world && server.trust == 'trusted'"
[views.picked]
tools = ["files/*", "web/get"]
[views.one]
servers = ["web"]
when = "tool.read_only"
"""
SHOWN = {
    "readers": ["files__look", "web__get"],
    "home": ["files__look", "files__save"],
    "picked": ["files__look", "files__save", "web__get"],
    "one": ["web__get"],
}


@pytest.fixture
async def live(gateway: Any, scripted: Any) -> Live:
    files, _ = scripted({"tools": [reader("look"), tool("save", readOnlyHint=False, openWorldHint=False)]}, "files")
    web, _ = scripted({"tools": [tool("get", readOnlyHint=True), tool("put", readOnlyHint=False)]}, "web")
    servers = {name: {"command": command, "trust": "trusted"} for name, command in (("files", files), ("web", web))}
    live: Live = await gateway(servers, more=VIEWS)
    return live


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("view", sorted(SHOWN))
async def test_a_view_shows_what_its_words_say_and_counts_the_rest(live, view, era):
    client = await live.opened(f"/v/{view}/mcp", era)
    answer = await client.request("tools/list")
    assert names(answer) == SHOWN[view]
    hidden = answer["result"]["_meta"]["dev.earnest/hidden"]
    of_route = 2 if view == "one" else 4
    assert hidden["count"] == of_route - len(SHOWN[view]) == sum(hidden["reasons"].values())
    # No name of what is hidden is told.
    assert not any(name in str(hidden) for name in ("save", "put", "look", "get"))


@pytest.mark.parametrize("view", sorted(SHOWN))
async def test_a_hidden_tool_cannot_be_called_and_a_shown_one_needs_no_list(live, view):
    client = await live.opened(f"/v/{view}/mcp", "modern")
    for name in ("files__look", "files__save", "web__get", "web__put"):
        answer = await client.call(name, {"n": 1})
        if name in SHOWN[view]:
            assert text_of(answer) == '{"n":1}'
        else:
            assert answer.get("error") or answer["result"]["isError"]


async def test_names_are_the_same_in_every_view(live):
    every = set(names(await (await live.opened()).request("tools/list")))
    for view, shown in SHOWN.items():
        assert set(shown) <= every, view


async def test_the_header_narrows_a_view_further_and_says_so(live):
    narrowed = live.client("/v/picked/mcp", headers={"X-MCP-Readonly": "true"})
    await narrowed.open("modern")
    answer = await narrowed.request("tools/list")
    assert names(answer) == ["files__look", "web__get"]
    assert answer["result"]["_meta"]["dev.earnest/hidden"]["count"] == 2
    denied = await narrowed.call("files__save", {})
    assert denied.get("error") or denied["result"]["isError"]


async def test_a_view_that_does_not_exist_is_not_found(live):
    assert (await live.raw(b"{}", {"Content-Type": "application/json"}, "/v/nothing/mcp")).status == 404


async def test_a_view_follows_what_is_resolved_now(live):
    client = await live.opened("/v/readers/mcp")
    await client.listen()
    assert names(await client.request("tools/list")) == SHOWN["readers"]
    catalogs = live.app.world.catalogs
    (web,) = (served for served in catalogs.served() if served.name == "web")
    identity = catalogs.identity(web.server)
    assert identity is not None
    from earnest.core.profile import Trust

    live.app.world.catalogs.set_trust(identity.key, Trust.UNTRUSTED)
    live.app.gateway.resolved_again()
    await client.notification("notifications/tools/list_changed")
    assert names(await client.request("tools/list")) == ["files__look"]
    denied = await client.call("web__get", {})
    assert denied.get("error") or denied["result"]["isError"]


async def test_a_views_condition_is_worked_out_once_for_a_tool(live, monkeypatch):
    rows: list[str] = []
    row = Compiled.row

    def counted(self: Compiled, facts: Any) -> Any:
        if self.policy.rules and self.policy.rules[0].name == "view":
            rows.append(facts.name)
        return row(self, facts)

    monkeypatch.setattr(Compiled, "row", counted)
    client = await live.opened("/v/readers/mcp", "modern")
    for n in range(5):
        assert text_of(await client.call("files__look", {"n": n})) == f'{{"n":{n}}}'
        answer = await client.call("files__save", {"n": n})
        assert answer.get("error") or answer["result"]["isError"]
    assert rows.count("look") == rows.count("save") == 1
