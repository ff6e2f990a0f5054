"""`server-everything` through the gateway: each feature of the protocol once, as it comes from the bare server."""

import asyncio
import base64
import json
import re

import anyio
import pytest
from mcp import types

from real.rig import ERAS, WAYS, bare, text, way_in, wire

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]

READS = [
    ("echo", {"message": "a\u0000b ünï \U0001f600 \u202e"}),
    ("get-sum", {"a": 1.5, "b": -3}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-annotated-message", {"messageType": "debug", "includeImage": False}),
    ("get-tiny-image", {}),
    ("get-resource-links", {"count": 5}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-sum", {"a": "no number", "b": 1}),
]


@pytest.fixture
def server(rig):
    return rig.server("everything", trust="trusted")


def timeless(value):
    """The same without times of the day, and without what the modern era alone says of caching and kinds of results."""
    if isinstance(value, dict):
        return {name: timeless(v) for name, v in value.items() if name not in ("resultType", "ttlMs", "cacheScope")}
    if isinstance(value, list):
        return [timeless(v) for v in value]
    return re.sub(r"\d{1,2}:\d\d:\d\d [AP]M", "(time)", value) if isinstance(value, str) else value


async def everything_approved(rig, call):
    """The result of a call while a person says yes to all that asks, and what did."""
    task = asyncio.ensure_future(call)
    asks = []
    while not task.done():
        for ask in await rig.person("approvals"):
            asks.append(ask["tool"])
            await rig.person("approve", id=ask["id"], answer="once")
        await asyncio.wait({task}, timeout=0.02)
    return await task, asks


@pytest.mark.parametrize("way", WAYS)
async def test_results_are_those_of_the_bare_server(rig, server, way):
    async with bare(server) as client:
        plain = [wire(await client.call_tool(name, arguments)) for name, arguments in READS]
    async with way_in(rig, way, "everything", server) as through:
        seen = [wire(await through.call(name, **arguments)) for name, arguments in READS]
    assert [timeless(one) for one in seen] == plain
    (image,) = [block for block in seen[4]["content"] if block["type"] == "image"]
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG\r\n\x1a\n")
    outcomes = [outcome for _, decision, outcome in await rig.decided() if decision == "allow"]
    assert outcomes == ["ok"] * 7 + ["error"]


@pytest.mark.parametrize("way", ["stdio legacy", "http modern"])
async def test_resources_templates_prompts_and_completion(rig, server, way):
    async def look(client):
        resources = await client.list_resources()
        prompt = types.PromptReference(type="ref/prompt", name="completable-prompt")
        template = types.ResourceTemplateReference(type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}")
        return [
            wire(resources),
            wire(await client.list_resource_templates()),
            wire(await client.list_prompts()),
            wire(await client.read_resource(resources.resources[0].uri)),
            wire(await client.read_resource("demo://resource/dynamic/text/7")),
            wire(await client.get_prompt("simple-prompt")),
            wire(await client.get_prompt("args-prompt", {"city": "Graz", "state": "Styria"})),
            wire(await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"})),
            wire(await client.complete(prompt, {"name": "department", "value": "S"})),
            wire(await client.complete(prompt, {"name": "name", "value": "E"}, {"department": "Sales"})),
            wire(await client.complete(template, {"name": "resourceId", "value": "4"})),
        ]

    async with bare(server) as client:
        plain = await look(client)
    # Each of these reads and may leave (a URI or an argument that the model made up), so the second would ask: here it is
    # what passes that is at stake.
    rig.first('preset = "observe"')
    async with way_in(rig, way, "everything", server) as through:
        seen = await look(through.client)
    for one, wanted in zip(seen, plain, strict=True):
        assert timeless(one) == timeless(wanted)
    methods = [receipt.method for receipt in await rig.receipts()]
    assert methods == ["resources/read"] * 2 + ["prompts/get"] * 3 + ["completion/complete"] * 3


@pytest.mark.parametrize("way", ["stdio legacy", "stdio modern", "http legacy", "http modern"])
async def test_progress_arrives_in_order_and_a_cancelled_operation_ends(rig, server, way):
    seen = []

    async def progress(done, total, message):
        seen.append((done, total))

    async with way_in(rig, way, "everything", server) as through:
        call = through.client.call_tool
        result = await call("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, progress_callback=progress)
        assert "completed" in text(result)
        assert seen == [(1.0, 4.0), (2.0, 4.0), (3.0, 4.0), (4.0, 4.0)]

        started = asyncio.Event()

        async def begun(done, total, message):
            started.set()

        async with anyio.create_task_group() as group:
            arguments = {"duration": 30, "steps": 300}
            group.start_soon(lambda: call("trigger-long-running-operation", arguments, progress_callback=begun))
            await started.wait()
            group.cancel_scope.cancel()
        after = await through.call("echo", message="still here")
        assert text(after) == "Echo: still here"
    assert await rig.decided() == [
        ("trigger-long-running-operation", "allow", "ok"),
        ("trigger-long-running-operation", "allow", "cancelled"),
        ("echo", "allow", "ok"),
    ]


async def test_log_messages_pass_at_the_level_the_client_set(rig, server):
    heard = []
    arrived = asyncio.Event()

    async def log(params):
        heard.append(params)
        arrived.set()

    async with rig.stdio("everything", logging_callback=log) as client:
        await client.set_logging_level("debug")
        await client.call_tool("toggle-simulated-logging", {})
        async with asyncio.timeout(60):
            await arrived.wait()
    assert heard and heard[0].level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    assert [decision for _, decision, _ in await rig.decided()] == ["allow"]


@pytest.mark.parametrize("way", ["stdio legacy", "http legacy", "stdio modern", "http modern"])
async def test_a_servers_questions_reach_the_client_inside_the_call(rig, server, way):
    asked = []

    async def elicit(context, params):
        asked.append(params)
        return types.ElicitResult(action="accept", content={"name": "Ada", "integer": 7})

    async def sample(context, params):
        asked.append(params)
        said = types.TextContent(type="text", text="as you wish")
        return types.CreateMessageResult(role="assistant", content=said, model="parrot")

    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/books", name="books")])

    able = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with way_in(rig, way, "everything", server, **able) as through:
        listed = await through.call("get-roots-list")
        assert "file:///srv/books" in text(listed)
        told, asks = await everything_approved(rig, through.call("trigger-elicitation-request"))
        assert asks == ["elicitation/create"], "an answer carries data to a server that may pass it on"
        raw = json.loads(told.content[-1].text.partition("Raw result: ")[2])
        assert raw == {"action": "accept", "content": {"name": "Ada", "integer": 7}}
        assert asked.pop().requested_schema["properties"]["integer"]["maximum"] == 100
        sung, asks = await everything_approved(rig, through.call("trigger-sampling-request", prompt="sing", maxTokens=5))
        assert asks == ["trigger-sampling-request", "sampling/createMessage"]
        assert json.loads(text(sung).partition("\n")[2])["content"] == {"type": "text", "text": "as you wish"}
        assert asked.pop().messages[0].content.text.endswith("sing")
    went = [receipt.method for receipt in await rig.receipts() if receipt.outcome == "ok"]
    assert sorted(went) == [
        "elicitation/create",
        "roots/list",
        "sampling/createMessage",
        "tools/call",
        "tools/call",
        "tools/call",
    ]


async def test_a_tool_that_needs_a_task_and_asks_in_it_is_one_call_for_a_modern_client(rig, server):
    async def elicit(context, params):
        return types.ElicitResult(action="accept", content={"interpretation": "technical"})

    async with rig.http("/s/everything/mcp", mode="2026-07-28", elicitation_callback=elicit) as client:
        call = client.call_tool("simulate-research-query", {"topic": "birds", "ambiguous": True})
        told, asks = await everything_approved(rig, call)
    assert "birds" in text(told) and not told.is_error
    assert asks == ["elicitation/create"]
    assert sorted(r.method for r in await rig.receipts() if r.outcome == "ok") == ["elicitation/create", "tools/call"]


async def test_a_client_is_offered_what_it_can_answer_in_either_era(rig, server):
    async def elicit(context, params):
        raise AssertionError("nobody asks")

    for mode in ERAS:
        for able in ({}, {"elicitation_callback": elicit}):
            async with rig.stdio("everything", mode=mode, **able) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
            assert "echo" in names and ("trigger-elicitation-request" in names) is bool(able)


async def test_what_was_declined_is_declined_to_the_server(rig, server):
    async def elicit(context, params):
        return types.ElicitResult(action="decline")

    async with rig.stdio("everything", elicitation_callback=elicit) as client:
        told = await client.call_tool("trigger-elicitation-request", {})
    assert "declined" in text(told)
    assert [receipt.decision for receipt in await rig.receipts()] == ["allow"], (
        "a no alone gives nothing away, so nobody is asked"
    )
