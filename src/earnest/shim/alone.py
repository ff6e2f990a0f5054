"""What a hook answers without its daemon: a refusal in the host's own words, or, where the operator said so, leave to read.

Theory. Without a daemon nobody knows the policy or what a session has read, so a call is refused. `[hook] without_daemon =
"reads"` makes an exception of tools that only read and only at home. This process reads no configuration for it: what a model
can write must not decide. The daemon leaves a mark in its own folder, which is closed to everybody else and which no call may
reach (`MARK`). A read that goes on here leaves another (`UNHEARD`), before it does: the session's labels rise by it as soon as
a daemon is there, whatever became of the events in between. What earnest keeps is not read: neither its own folders nor
anything that holds them.
"""

from __future__ import annotations

import os
import stat

from earnest.shim import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DECIDES = {
    "claude-code": ("PreToolUse",),
    "codex": ("PreToolUse",),
    "gemini-cli": ("BeforeTool",),
    "cursor": ("preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"),
}
"""Events that hold a call, by host: whatever goes wrong with one is a refusal."""
READS = {
    "claude-code": frozenset(("Read", "Glob", "Grep", "LS")),
    "codex": frozenset(("view_image",)),
    "gemini-cli": frozenset(
        ("read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search")
    ),
    "cursor": frozenset(("Read", "Grep", "Glob", "LS")),
}  # fmt: skip
"""Tools that only read, in a closed world, by host."""
MARK = "hook-reads"
UNHEARD = "hook-unheard"
_LONGEST_SESSION = 200


def refusal(host: str, event: str, why: str) -> dict[str, object]:
    """What the host takes for a denial of the call it holds."""
    reason = f"earnest: {why}"
    if host == "gemini-cli":
        return {"decision": "deny", "reason": reason}
    if host == "cursor":
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    said = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def leave(host: str, event: str, body: bytes, env: Mapping[str, str], config: str) -> dict[str, object] | None:
    """The answer that lets a call go on without a daemon; None for a refusal."""
    folder = -1
    try:
        folder = paths.open_folder(paths.instance(env, config), create=False)
        if not _is_ours(folder, MARK):
            return None
        import json  # only here: it costs more than the rest of the shim

        told = json.loads(body)
        session = told.get("session_id") or told.get("conversation_id")
        if told["hook_event_name"] != event or not _plain(session):
            return None
        if event == "beforeReadFile":
            given: object = {"file_path": told["file_path"]}
        elif told["tool_name"] in READS.get(host, ()) and not told.get("mcp_context"):
            given = told["tool_input"]
        else:
            return None
        cwd = told.get("cwd") or (told.get("workspace_roots") or [""])[0] or os.getcwd()
        own = [paths.home(env), os.path.dirname(paths.config_path(env, config)[0])]
        if _reaches(given, cwd, own):
            return None
        _leave_mark(folder, session)
        return _allowed(host, event)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, paths.ShimError):
        return None
    finally:
        if folder >= 0:
            os.close(folder)


def _allowed(host: str, event: str) -> dict[str, object] | None:
    if host == "gemini-cli":
        return {"decision": "allow"}
    if host == "cursor":
        return {"permission": "allow"}
    if host == "codex":
        return {}  # an `allow` would make the answer invalid; nothing is no opinion
    said = {
        "hookEventName": event,
        "permissionDecision": "allow",
        "permissionDecisionReason": "earnest: a read, allowed without the daemon",
    }
    return {"hookSpecificOutput": said}


def _is_ours(folder: int, name: str) -> bool:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _leave_mark(folder: int, session: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    mark = os.open(UNHEARD, flags, 0o600, dir_fd=folder)
    try:
        os.write(mark, f"{session}\n".encode())
    finally:
        os.close(mark)


def _plain(session: object) -> bool:
    if not isinstance(session, str) or not 0 < len(session) <= _LONGEST_SESSION or not session.isascii():
        return False
    return all(sign.isalnum() or sign in "._:-" for sign in session)


def _reaches(given: object, cwd: str, own: list[str]) -> bool:
    """Whether any text of the input, read as a path or a pattern, could reach a folder of earnest's or one above it."""
    texts = list(_texts(given))
    bases = [cwd, *(text for text in texts if text.startswith("/"))]
    kept = [os.path.realpath(path) + "/" for path in own]
    for text in texts:
        if "~" in text or "$" in text or "\0" in text:
            return True
        fixed = text
        for sign in "*?[{":
            fixed = fixed.partition(sign)[0]
        if fixed != text:
            fixed = fixed.rpartition("/")[0] + "/" if "/" in fixed else ""
        for base in bases:
            place = os.path.realpath(os.path.join(base, fixed)) + "/"
            if any(place.startswith(one) or one.startswith(place) for one in kept):
                return True
    return False


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
