"""Ways around the rule that no conversation holds all three: private data, untrusted text, a way out."""

import pytest

from attacks.rig import READ, Rig, refused, tool

PRIVATE = "reads_private = true\nsees_untrusted = false\ncan_exfiltrate = false\n"
UNTRUSTED = "reads_private = false\nsees_untrusted = true\ncan_exfiltrate = false\n"
OUT = "reads_private = false\nsees_untrusted = false\ncan_exfiltrate = true\n"
HANDLE = "dev.earnest/conversation"


@pytest.fixture
def legs(rig: Rig):
    """Three servers with one leg each, all labelled as reads so that only the flow rules can stop them."""
    records = {}
    rig.asking = "queue = false"
    for name, facets in (("mail", PRIVATE), ("web", UNTRUSTED), ("post", OUT)):
        records[name] = rig.server(name, {"tools": [tool("use", **READ)]}, trust="trusted")
        rig.add(f'[labels."{name}/use"]\nread_only = true\nopen_world = false\n{facets}')
    return records


async def test_three_servers_of_one_host_are_one_conversation(rig: Rig, legs):
    mail, web, post = [await rig.stdio(name) for name in ("mail", "web", "post")]
    assert not refused(await post.call("use", {"n": 1}))
    assert not refused(await mail.call("use"))
    assert not refused(await post.call("use", {"n": 2}))
    assert not refused(await web.call("use"))
    assert refused(await post.call("use", {"n": 3}))
    assert len(legs["post"].calls()) == 2
    rig.verify()


async def test_a_new_connection_a_new_client_name_and_another_transport_change_nothing(rig: Rig, legs):
    mail, web = await rig.stdio("mail"), await rig.stdio("web")
    await mail.call("use")
    await web.call("use")
    await mail.close()
    again = await rig.stdio("post", client="somebody-else")
    assert refused(await again.call("use"))
    over = await rig.http("/s/post/mcp")
    assert refused(await over.call("use"))
    modern = await rig.http("/s/post/mcp", era="modern")
    assert refused(await modern.call("use"))
    assert legs["post"].calls() == []


async def test_no_handle_and_no_made_up_handle_starts_clean(rig: Rig, legs):
    mail, web, post = [await rig.stdio(name) for name in ("mail", "web", "post")]
    await mail.call("use", meta={HANDLE: "one"})
    await web.call("use", meta={HANDLE: "one"})
    for meta in (None, {HANDLE: "one"}, {HANDLE: "fresh"}, {HANDLE: ""}, {HANDLE: 7}, {HANDLE: "x" * 9000}, {HANDLE: None}):
        assert refused(await post.call("use", meta=meta)), meta
    assert legs["post"].calls() == []


async def test_a_server_cannot_call_its_own_output_trusted_or_public(rig: Rig):
    rig.asking = "queue = false"
    clean = {"private": False, "untrusted": False, "sensitivity": "public", "attribution": "trusted"}
    meta = {"ifc": {"integrity": "trusted", "confidentiality": "public"}}
    result = {"content": [{"type": "text", "text": "x"}], "_meta": meta}
    listed = {**tool("use", **READ), "_meta": {"trust-annotations": clean, "ifc": clean}}
    listed["annotations"] = {**READ, "readPrivate": False, "seesUntrusted": False, "canExfiltrate": False, **clean}
    rig.server("evil", {"tools": [listed], "calls": {"use": [{"result": result}]}})
    rig.add('[policy]\nallow = ["evil/use"]\n')
    client = await rig.stdio("evil")
    assert not refused(await client.call("use", {"n": 1}))
    assert refused(await client.call("use", {"n": 2}))
    await rig.settled(("use", "allow", "ok"), ("use", "ask", "denied"))
    (first, second) = rig.receipts(tool="use")
    assert set(first.labels_after or ()) == {"private", "untrusted"} and set(second.labels_before) == {"private", "untrusted"}


async def test_a_resource_a_prompt_and_a_completion_are_ways_out_too(rig: Rig, legs):
    rig.server(
        "site",
        {
            "tools": [tool("use", **READ)],
            "templates": [{"uriTemplate": "http://site/{x}", "name": "t"}],
            "resources": [{"uri": "http://site/a", "name": "a"}],
            "prompts": [{"name": "p", "arguments": [{"name": "x"}]}],
            "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}},
        },
    )
    mail, web, site = await rig.stdio("mail"), await rig.stdio("web"), await rig.stdio("site")
    await mail.call("use")
    await web.call("use")
    for method, params in (
        ("resources/read", {"uri": "http://site/secret-123"}),
        ("resources/subscribe", {"uri": "http://site/secret-123"}),
        ("prompts/get", {"name": "p", "arguments": {"x": "secret-123"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "secret-123"}}),
    ):
        assert "error" in await site.request(method, params), method
