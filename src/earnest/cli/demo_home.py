"""A configuration of the demo servers, in which something is allowed, something asked about and something denied."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping

import earnest
from earnest.demo import commands

_TRUSTED = ("file-ops", "mailbox", "fetcher")
_OWN_FILES = ("list", "read", "append", "set", "delete")
_READING = ("list", "read")
_FILES = {
    "notes.txt": "The door code of the cellar is 4471.\nWater the plants on Sunday.\n",
    "recipe.txt": "500 g flour, 350 g water, 10 g salt, a little yeast.\n",
    "draft.txt": "Dear Ada, about Friday ...\n",
}
_HEAD = """\
# Written by earnest for its demo servers, and written anew each time. Copy what you like into your own earnest.toml.
preset = "balanced"

[policy]
[[policy.rule]]
name = "strangers destroy nothing"
when = "tool.destructive && server.trust == 'untrusted'"
then = "deny"
"""


def data_folder(env: Mapping[str, str]) -> str:
    """Where the servers of `earnest run` work. Not below earnest's own folder, whose files no call may reach."""
    home = env.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, ".local", "share", "earnest-demo")


def prepare(folder: str, data: str, in_use: Callable[[str], bool]) -> str:
    """Make `folder` ready and return the path of its configuration; the servers work below `data`.

    They start from fresh files, unless a daemon works with them already (`in_use(configuration)`).
    """
    text = configuration(data)
    # Trust in a file is bound to the commands first seen. Other commands (another Python, say) get a file, and so an
    # instance, of their own.
    path = os.path.join(folder, f"demo-{hashlib.sha256(text.encode()).hexdigest()[:8]}.toml")
    if in_use(path):
        return path
    for place in (os.path.dirname(folder), folder):
        os.makedirs(place, mode=0o700, exist_ok=True)
    shutil.rmtree(data, ignore_errors=True)
    own = os.path.join(data, "file-ops")
    os.makedirs(data, mode=0o700)
    os.mkdir(own)
    for name, content in _FILES.items():
        with open(os.path.join(own, name), "w", encoding="utf-8") as file:
            file.write(content)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def configuration(data: str) -> str:
    """The TOML text, for servers that work below the folder `data`."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(earnest.__file__)))
    installed = root.endswith(("/site-packages", "/dist-packages"))
    blocks = [_HEAD]
    for name, command in commands(data).items():
        lines = [f"[servers.{name}]", f"command = [{', '.join(_text(word) for word in command)}]", f"cwd = {_text(data)}"]
        if not installed:
            lines.append(f"env = {{ PYTHONPATH = {_text(root)} }}")
        lines.append(f'trust = "{"trusted" if name in _TRUSTED else "untrusted"}"')
        blocks.append("\n".join(lines) + "\n")
    for tool in _OWN_FILES:
        more = "" if tool in _READING else "reads_private = false  # it only says that it is done\n"
        blocks.append(f'[labels."file-ops/{tool}"]\nsees_untrusted = false  # these files are your own\n{more}')
    blocks.append('[labels."fetcher/fetch"]\nreads_private = false  # the pages are public\n')
    return "\n".join(blocks)


def _text(value: str) -> str:
    return json.dumps(value.replace("${", "$${"), ensure_ascii=False)
