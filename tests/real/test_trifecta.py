"""`server-fetch` and `server-filesystem` in one conversation: a stranger's text, a way out, and private files."""

import pytest

from real.rig import bare, text, way_in, wire
from real.site import site

pytestmark = pytest.mark.real

NEWS = "http://news.invalid/today"
"""Nobody's address: the site below answers for it as a proxy. By its form it is a plain public one."""


@pytest.fixture
def page():
    with site("Nothing happened today.\n") as found:
        yield found


@pytest.fixture
def fetch(rig, page):
    server = rig._make("fetch")
    rig.configure("fetch", server, "--proxy-url", page.url, trust="trusted")
    return server


@pytest.fixture
def files(rig):
    server = rig.server("filesystem", trust="trusted")
    (server.folder / "diary.txt").write_text("dear diary")
    return server


def diary(files):
    return {"path": str(files.folder / "diary.txt")}


@pytest.mark.parametrize("way", ["stdio legacy", "http modern", "all legacy"])
async def test_fetching_first_and_reading_then_needs_nobody(rig, page, fetch, files, way):
    async with way_in(rig, way, "fetch", fetch) as web, way_in(rig, way, "filesystem", files) as disk:
        assert "Nothing happened" in text(await web.call("fetch", url=NEWS))
        assert "Nothing happened" in text(await web.call("fetch", url=NEWS + "?again"))
        assert text(await disk.call("read_text_file", **diary(files))) == "dear diary"
    assert page.visits == [NEWS, NEWS + "?again"]
    assert await rig.decided() == [("fetch", "allow", "ok"), ("fetch", "allow", "ok"), ("read_text_file", "allow", "ok")]
    before = [receipt.labels_before for receipt in await rig.receipts()]
    assert before == [[], ["untrusted"], ["untrusted"]]


@pytest.mark.parametrize("way", ["stdio modern", "http legacy"])
async def test_the_third_leg_asks_and_a_yes_is_for_that_call_alone(rig, page, fetch, files, way):
    """Two clients, one for each server: the conversation is the host's, not the session's."""
    async with way_in(rig, way, "fetch", fetch) as web, way_in(rig, way, "filesystem", files) as disk:
        await disk.call("read_text_file", **diary(files))
        refused, ask = await rig.answered(web.call("fetch", url=NEWS + "?dear=diary"), "no")
        assert refused.is_error and page.visits == []
        assert ask["reasons"][0][0] == "flow/confidentiality"
        went, _ = await rig.answered(web.call("fetch", url=NEWS))
        assert "Nothing happened" in text(went) and page.visits == [NEWS]
        for url in (NEWS, NEWS + "?dear=diary"):
            refused, _ = await rig.answered(web.call("fetch", url=url), "no")
            assert refused.is_error
        assert page.visits == [NEWS]
        # What cannot leave goes on unasked.
        assert text(await disk.call("read_text_file", **diary(files))) == "dear diary"
    assert [(tool, decision) for tool, decision, _ in await rig.decided()] == [
        ("read_text_file", "allow"),
        ("fetch", "ask"),
        ("fetch", "ask"),
        ("fetch", "allow"),
        ("fetch", "ask"),
        ("fetch", "ask"),
        ("read_text_file", "allow"),
    ]
    asked = [receipt for receipt in await rig.receipts() if receipt.decision == "ask"]
    assert {tuple(receipt.labels_before) for receipt in asked} == {("private", "untrusted")}
    (read,) = [receipt.id for receipt in await rig.receipts(tool="read_text_file")][:1]
    assert read in asked[0].reasons[0]["text"], "the reason names the receipt that gave the leg"


async def test_a_call_is_judged_by_what_was_there_before_it(rig, page, fetch, files):
    """With the files said to be the user's own words, the first fetch after them brings the stranger in, and may go."""
    rig.add('[labels."filesystem/read_text_file"]\nsees_untrusted = false')
    async with rig.stdio("fetch") as web, rig.stdio("filesystem") as disk:
        await disk.call_tool("read_text_file", diary(files))
        assert "Nothing happened" in text(await web.call_tool("fetch", {"url": NEWS}))
        await rig.answered(web.call_tool("fetch", {"url": NEWS}), "no")
    assert page.visits == [NEWS]
    before = [receipt.labels_before for receipt in await rig.receipts()]
    assert before == [[], ["private"], ["private", "untrusted"]]


async def test_a_conversation_that_ended_is_clean(rig, page, fetch, files):
    async with rig.stdio("fetch") as web, rig.stdio("filesystem") as disk:
        await disk.call_tool("read_text_file", diary(files))
        kept = [one["name"] for one in await rig.person("conversations") if one["causes"]]
        await rig.person("conversation-end", conversation=max(kept, key=len))
        assert "Nothing happened" in text(await web.call_tool("fetch", {"url": NEWS}))
    assert [decision for _, decision, _ in await rig.decided()] == ["allow", "allow"]


async def test_a_page_of_this_machine_counts_as_private(rig, page):
    server = rig._make("fetch")
    rig.configure("fetch", server, "--allow-private-ips", trust="trusted")
    local = type(server)("fetch", [*server.command, "--allow-private-ips"], server.env, server.folder, server.eras)
    async with bare(local) as client:
        plain = wire(await client.call_tool("fetch", {"url": page.url + "/a"}))
    async with rig.stdio("fetch") as web:
        assert wire(await web.call_tool("fetch", {"url": page.url + "/a"})) == plain
        refused, _ = await rig.answered(web.call_tool("fetch", {"url": page.url + "/b"}), "no")
    assert refused.is_error and page.visits == ["/a", "/a"]
    first = (await rig.receipts())[0]
    assert first.labels_after == ["private", "untrusted"] and first.profile["reads_private"] == {"value": True, "basis": "pack"}
