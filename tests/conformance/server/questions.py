"""What asks the client: requests inside a call (2025-11-25), and results that need input (2026-07-28)."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Schema = dict[str, Any]


def object_of(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _titled(*pairs: str) -> list[Schema]:
    return [{"const": pair, "title": pair.title()} for pair in pairs]


DEFAULTS: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
"""A default of each primitive type (SEP-1034)."""

CHOICES: Schema = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled("value1", "value2", "value3")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("value1", "value2", "value3")}},
    },
}
"""Each way to write a choice (SEP-1330)."""


def sample(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def ask(message: str, **properties: Schema) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=object_of(**properties)))


STRING: Schema = {"type": "string"}


def said(answer: object, field: str) -> str:
    return str((answer.content or {}).get(field, "")) if isinstance(answer, ElicitResult) else ""


def sampled(answer: object) -> str:
    if isinstance(answer, CreateMessageResult) and isinstance(answer.content, TextContent):
        return answer.content.text
    return ""


def inside_calls(server: MCPServer) -> None:
    """What asks with requests of its own (2025-11-25)."""

    async def elicit(ctx: Context[Any, Any], message: str, schema: Schema) -> str:
        answer = await ctx.session.elicit(message, schema, related_request_id=ctx.request_id)
        return f"action={answer.action}, content={answer.content}"

    @server.tool()
    async def test_sampling(prompt: str, ctx: Context[Any, Any]) -> str:
        """Asks the client's model."""
        message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
        return f"LLM response: {sampled(answer)}"

    @server.tool()
    async def test_elicitation(message: str, ctx: Context[Any, Any]) -> str:
        """Asks the client's user."""
        return "User response: " + await elicit(ctx, message, object_of(username=STRING, email=STRING))

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context[Any, Any]) -> str:
        """Asks with defaults."""
        return "Elicitation completed: " + await elicit(ctx, "Please look through these values", DEFAULTS)

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Context[Any, Any]) -> str:
        """Asks with choices."""
        return "Elicitation completed: " + await elicit(ctx, "Please choose", CHOICES)


def as_results(server: MCPServer) -> None:
    """What asks with its result (2026-07-28)."""
    _at_once(server)
    _in_rounds(server)


def _at_once(server: MCPServer) -> None:
    @server.tool()
    async def test_missing_capability(ctx: Context[Any, Any]) -> str:
        """Needs a client that declared sampling with this very request (SEP-2575)."""
        declared = ctx.client_capabilities
        if declared is None or declared.sampling is None:
            data = {"requiredCapabilities": ClientCapabilities.model_validate({"sampling": {}}).model_dump(exclude_none=True)}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", data)
        return "the client can sample"

    @server.tool()
    async def test_streaming_elicitation(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks in its result; its stream carries no request of its own."""
        if ctx.input_responses:
            return "answered"
        return InputRequiredResult(input_requests={"confirm": ask("Go on?", ok={"type": "boolean"})})

    @server.tool()
    async def test_input_required_result_elicitation(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks for a name."""
        given = ctx.input_responses or {}
        if "user_name" not in given:
            return InputRequiredResult(input_requests={"user_name": ask("What is your name?", name=STRING)})
        return f"Hello, {said(given['user_name'], 'name')}!"

    @server.tool()
    async def test_input_required_result_sampling(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks the client's model."""
        given = ctx.input_responses or {}
        if "capital_question" not in given:
            return InputRequiredResult(input_requests={"capital_question": sample("What is the capital of France?")})
        return f"The model said: {sampled(given['capital_question'])}"

    @server.tool()
    async def test_input_required_result_list_roots(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks for the client's roots."""
        given = ctx.input_responses or {}
        if "client_roots" not in given:
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        answer = given["client_roots"]
        return "Roots: " + ", ".join(str(root.uri) for root in answer.roots if isinstance(answer, ListRootsResult))

    @server.tool()
    async def test_input_required_result_capabilities(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks only for what this request's client declared."""
        if ctx.input_responses:
            return f"{len(ctx.input_responses)} answers"
        declared = ctx.client_capabilities or ClientCapabilities()
        wanted: dict[str, Any] = {}
        if declared.sampling is not None:
            wanted["capital_question"] = sample("What is the capital of France?")
        if declared.elicitation is not None:
            wanted["user_name"] = ask("What is your name?", name=STRING)
        if declared.roots is not None:
            wanted["client_roots"] = ListRootsRequest()
        return InputRequiredResult(input_requests=wanted) if wanted else "the client can do none of it"

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """A prompt that needs a word of the user first."""
        given = ctx.input_responses or {}
        if "user_context" not in given:
            return InputRequiredResult(input_requests={"user_context": ask("Which context?", context=STRING)})
        return f"Prompt with context: {said(given['user_context'], 'context')}"


def _in_rounds(server: MCPServer) -> None:
    @server.tool()
    async def test_input_required_result_request_state(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Gives the client a state to bring back."""
        if ctx.request_state is None:
            question = ask("Please confirm", ok={"type": "boolean"})
            return InputRequiredResult(input_requests={"confirm": question}, request_state="a state")
        return "state-ok: it came back" if ctx.request_state == "a state" else "state-lost"

    @server.tool()
    async def test_input_required_result_tampered_state(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Gives the client a state that it must not change; the SDK seals it."""
        if ctx.request_state is None:
            question = ask("Please confirm", ok={"type": "boolean"})
            return InputRequiredResult(input_requests={"confirm": question}, request_state="a sealed state")
        return "the state is as it was"

    @server.tool()
    async def test_input_required_result_multiple_inputs(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks for three things at once."""
        wanted: dict[str, Any] = {
            "user_name": ask("What is your name?", name=STRING),
            "greeting": sample("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        }
        given = ctx.input_responses or {}
        if not wanted.keys() <= given.keys():
            return InputRequiredResult(input_requests=wanted, request_state="several")
        return f"{sampled(given['greeting'])}, {said(given['user_name'], 'name')}"

    @server.tool()
    async def test_input_required_result_multi_round(ctx: Context[Any, Any]) -> InputRequiredResult | str:
        """Asks one thing after the other."""
        given = ctx.input_responses or {}
        if ctx.request_state is None:
            question = ask("Step 1: What is your name?", name=STRING)
            return InputRequiredResult(input_requests={"step1": question}, request_state="1")
        if ctx.request_state == "1":
            question = ask("Step 2: What is your favorite color?", color=STRING)
            return InputRequiredResult(input_requests={"step2": question}, request_state="2" + said(given.get("step1"), "name"))
        return f"{ctx.request_state[1:]} likes {said(given.get('step2'), 'color')}"
