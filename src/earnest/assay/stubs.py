"""Answers for servers that live on an interface: from stubs of a person's own, from recordings, from an OpenAPI document.

An OpenAPI document (3.0, 3.1) gives for each operation the example of its first good response, or a value made from the schema.
Recordings are HAR files, or VCR cassettes written as JSON. Nothing of it is fetched: files of this machine are read.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from earnest.assay.arguments.generate import Candidates
from earnest.assay.arguments.schema import Document
from earnest.assay.settings import Stub
from earnest.core.errors import EarnestError
from earnest.sandbox.box import Answer

_METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options")
_LARGEST: Final = 50 << 20


def answers(stubs: Sequence[Stub], cassettes: Sequence[str], openapi: Sequence[str], folder: str) -> tuple[Answer, ...]:
    """All answers, a person's own first. Files are looked for from `folder`. Raises E1955, E1956."""
    found = [_of_stub(stub, folder) for stub in stubs]
    for path in cassettes:
        found += _recorded(_json(os.path.join(folder, path)), path)
    for path in openapi:
        found += _described(_json(os.path.join(folder, path)), path)
    return tuple(found)


def _of_stub(stub: Stub, folder: str) -> Answer:
    headers = dict(stub.headers)
    body = stub.body.encode()
    if stub.json is not None:
        body = msgspec.json.encode(stub.json)
        headers.setdefault("content-type", "application/json")
    elif stub.file:
        try:
            with open(os.path.join(folder, stub.file), "rb") as file:
                body = file.read()
        except OSError as error:
            raise EarnestError("E1955", f"stub for {stub.host}: {stub.file}: {error.strerror or error}") from None
    return Answer(stub.host, stub.path, stub.method.upper(), stub.status, tuple(headers.items()), body)


def _json(path: str) -> Any:
    try:
        if os.path.getsize(path) > _LARGEST:
            raise EarnestError("E1956", f"{path} has more than {_LARGEST >> 20} MiB")
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read())
    except OSError as error:
        raise EarnestError("E1956", f"{path}: {error.strerror or error}", "Give the path of a JSON file.") from None
    except msgspec.MsgspecError as error:
        raise EarnestError("E1956", f"{path} is no JSON: {error}", "Convert a YAML document to JSON first.") from None


def _recorded(value: Any, path: str) -> Iterator[Answer]:
    entries = value.get("log", {}).get("entries") if isinstance(value, dict) and "log" in value else None
    if isinstance(entries, list):
        for entry in entries:
            request, response = entry["request"], entry["response"]
            content = response.get("content", {})
            text = content.get("text") or ""
            body = base64.b64decode(text) if content.get("encoding") == "base64" else text.encode()
            yield _answer(request["method"], request["url"], response["status"], content.get("mimeType"), body)
        return
    interactions = value.get("interactions") if isinstance(value, dict) else None
    if not isinstance(interactions, list):
        raise EarnestError("E1956", f"{path} is neither a HAR file nor a VCR cassette", "Record with either, as JSON.")
    for one in interactions:
        request, response = one["request"], one["response"]
        status = response["status"]["code"] if isinstance(response["status"], dict) else response["status"]
        inner = response.get("body") or {}
        text = inner.get("string", "") if isinstance(inner, dict) else str(inner)
        kinds = (response.get("headers") or {}).get("Content-Type") or ["application/json"]
        yield _answer(request["method"], request["uri"], status, kinds[0] if isinstance(kinds, list) else kinds, text.encode())


def _answer(method: str, url: str, status: int, kind: str | None, body: bytes) -> Answer:
    parts = urlsplit(url)
    path = re.sub(r"([*])", r"*", parts.path or "/")
    headers = (("content-type", kind or "application/octet-stream"),)
    return Answer(parts.hostname or "**", path, method.upper(), int(status), headers, body)


def _described(value: Any, path: str) -> Iterator[Answer]:
    if not isinstance(value, dict) or not isinstance(value.get("paths"), dict):
        raise EarnestError("E1956", f"{path} is no OpenAPI document: it has no `paths`", "Give an OpenAPI 3 document as JSON.")
    servers = [str(server.get("url", "")) for server in value.get("servers") or () if isinstance(server, dict)]
    places = [(urlsplit(url).hostname or "**", urlsplit(url).path.rstrip("/")) for url in servers] or [("**", "")]
    for route, operations in value["paths"].items():
        for method in _METHODS:
            operation = operations.get(method) if isinstance(operations, dict) else None
            if not isinstance(operation, dict):
                continue
            status, kind, body = _response(value, operation)
            for host, base in places:
                target = re.sub(r"\{[^}]*\}", "*", f"{base}{route}")
                yield Answer(host, target, method.upper(), status, (("content-type", kind),), body)


def _response(document: Mapping[str, Any], operation: Mapping[str, Any]) -> tuple[int, str, bytes]:
    responses = operation.get("responses") or {}
    good = sorted(code for code in map(str, responses) if code.startswith("2")) or ["200"]
    response = _followed(document, responses.get(good[0]) or responses.get(int(good[0]) if good[0].isdigit() else 200) or {})
    status = int(good[0]) if good[0].isdigit() else 200
    content = response.get("content") or {}
    if not content:
        return status, "application/json", b"{}" if status != 204 else b""
    kind = next((name for name in content if "json" in name), next(iter(content)))
    media = content[kind]
    if "example" in media:
        return status, kind, _encoded(media["example"], kind)
    for example in (media.get("examples") or {}).values():
        if isinstance(example, dict) and "value" in example:
            return status, kind, _encoded(example["value"], kind)
    return status, kind, _encoded(_made(document, media.get("schema") or {}), kind)


def _followed(document: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    for _ in range(5):
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            found: Any = document
            for token in value["$ref"].removeprefix("#/").split("/"):
                found = found.get(token, {}) if isinstance(found, dict) else {}
            value = found
    return value if isinstance(value, dict) else {}


def _made(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    root = {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "components": document.get("components") or {},
    }
    made = Candidates(Document(root), lambda name, part: [part["example"]] if "example" in part else []).make(2)
    return made[-1].get("value", {}) if made else {}


def _encoded(value: Any, kind: str) -> bytes:
    return value.encode() if isinstance(value, str) and "json" not in kind else msgspec.json.encode(value)
