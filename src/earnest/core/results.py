"""Results of calls as data: what of one is a record, what a text, and how a scalar is told from another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from earnest.core.values import Token, number_key, tokens

DEEP_TEXT: Final = 1_000_000
"""Characters of a text that are looked into."""


def scalar_key(value: Any) -> str:
    """A scalar as one key: how values are told apart, not how they are searched."""
    if isinstance(value, str):
        return " ".join(token.key for token in tokens(value))
    return number_key(value)


def scalar_tokens(value: Any) -> list[Token]:
    """The tokens of a scalar; truth values have none."""
    if isinstance(value, str):
        return tokens(value)
    if isinstance(value, bool) or value is None:
        return []
    return [Token(number_key(value), 0, 0)]


def structured(result: Any) -> Any:
    """What of a result is data by its form: structured content, or what a program handed over as data. Text is none, also where
    it parses: whoever writes a text could write a record into it."""
    if isinstance(result, Mapping) and isinstance(result.get("content"), list) and _is_mcp(result):
        return result.get("structuredContent")
    return None if isinstance(result, str) else result


def unfolded(result: Any) -> Any:
    """A result as data: MCP content blocks by their text, text that is JSON as what it says."""
    if isinstance(result, Mapping) and isinstance(result.get("content"), list) and _is_mcp(result):
        parts: list[Any] = [_block(block) for block in result["content"]]
        if result.get("structuredContent") is not None:
            parts.append(result["structuredContent"])
        return parts
    if isinstance(result, str):
        return _parsed(result)
    return result


def names_in(result: Any) -> list[tuple[str, str]]:
    """Names of members with their paths: where text may stand that somebody wrote."""
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, Any]] = [("", result)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, Mapping):
            for key, value in item.items():
                found.append((path, str(key)))
                stack.append((f"{path}.{key}" if path else str(key), value))
        elif isinstance(item, list | tuple):
            stack.extend((f"{path}[]", part) for part in item)
    return found


def _is_mcp(result: Mapping[str, Any]) -> bool:
    return all(isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in result["content"])


def _block(block: Mapping[str, Any]) -> Any:
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return _parsed(block["text"])
    return {key: value for key, value in block.items() if key not in ("type", "data", "blob")}


def _parsed(text: str) -> Any:
    start = text.lstrip()[:1]
    if start and start in "[{" and len(text) <= DEEP_TEXT:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
