"""What a client sees of a published server's tools, on every way in and in both eras."""

import subprocess

import pytest

from real.rig import ERAS, bare, wire

pytestmark = pytest.mark.real

PROFILE = "dev.earnest/profile"
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
WORST = (False, True, False, True)
READ = (True, False, True, False)

VOUCHED = {
    "filesystem": {
        "read_text_file": READ,
        "write_file": (False, True, True, False),
        "create_directory": (False, False, True, False),
        "move_file": (False, True, False, False),
    },
    "memory": {
        "read_graph": READ,
        "create_entities": (False, False, False, False),
        "delete_entities": (False, True, True, False),
    },
    "everything": {"echo": READ, "get-env": READ, "gzip-file-as-resource": (False, False, True, True)},
    "git": {
        "git_log": READ,
        "git_add": (False, False, True, False),
        "git_commit": (False, False, False, False),
        "git_reset": (False, True, True, False),
    },
    "time": {"get_current_time": READ, "convert_time": READ},
    "fetch": {"fetch": (True, False, True, True)},
    "sqlite": {"read_query": READ, "write_query": (False, True, False, False), "create_table": (False, False, False, False)},
}
"""What the packs say of some tools, as it must arrive: read-only, destructive, idempotent, open world."""


def hints(tool):
    return tuple(wire(tool)["annotations"][name] for name in HINTS)


async def tools(client):
    return {tool.name: tool for tool in (await client.list_tools()).tools}


def unchanged(tool):
    """A tool without what earnest writes into it."""
    return {name: value for name, value in wire(tool).items() if name not in ("annotations", "_meta", "name")}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", VOUCHED)
async def test_every_way_in_shows_the_resolved_hints(rig, name, era):
    server = rig.server(name, trust="trusted")
    rig.configure("stranger", server)
    rig.add('[servers.brought]\ntrust = "verified"')
    if name == "git":
        subprocess.run(["git", "init", "-q", str(server.folder)], check=True)
    async with bare(server) as client:
        plain = await tools(client)

    async with rig.stdio(name, mode=era) as client:
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
        trusted = await tools(client)
    assert list(trusted) == list(plain), "names, and their order, are the server's own"
    for tool_name, tool in trusted.items():
        assert unchanged(tool) == unchanged(plain[tool_name])
        profile = tool.meta[PROFILE]
        bases = {profile[hint]["basis"] for hint in ("read_only", "destructive", "idempotent", "open_world")}
        assert bases == {"pack"}, tool_name
        claimed = wire(plain[tool_name]).get("annotations") or {}
        assert profile.get("claimed", {}) == {hint: claimed[hint] for hint in HINTS if hint in claimed}
    for tool_name, wanted in VOUCHED[name].items():
        assert hints(trusted[tool_name]) == wanted, tool_name

    # Each start of a server costs a second, so the two eras share what is left: a command that a client brings itself.
    known = "typed" if era == "legacy" else "brought"
    async with rig.stdio(known, *server.command, mode=era, env=server.env, cwd=server.folder) as client:
        found = await tools(client)
    if known == "typed":
        assert {hints(tool) for tool in found.values()} == {WORST}, "nobody trusts what comes under a name of its own"
    else:
        assert {one: hints(tool) for one, tool in found.items()} == {one: hints(tool) for one, tool in trusted.items()}

    async with rig.http(f"/s/{name}/mcp", mode=era) as client:
        over_http = await tools(client)
    assert {one: wire(tool) for one, tool in over_http.items()} == {one: wire(tool) for one, tool in trusted.items()}
    async with rig.http("/mcp", mode=era) as client:
        together = await tools(client)
    assert {one for one in together if one.startswith("stranger")} == {f"stranger__{one}" for one in plain}
    for tool_name, tool in trusted.items():
        seen = together[f"{name}__{tool_name}"]
        assert unchanged(seen) == unchanged(tool)
        assert hints(seen) == hints(tool)
        assert hints(together[f"stranger__{tool_name}"]) == WORST
