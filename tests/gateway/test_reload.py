"""Reading the configuration again: what is stricter holds at once, what a folder's file tightens holds on."""

from pathlib import Path

import msgspec
import pytest

from earnest.core.errors import EarnestError
from earnest.gateway.session import Session
from gateway.harness import ScriptedServer, bench, reads, tool

TRUSTED = {"s": "trusted"}
SERVER = '\n[servers.s]\ncommand = ["/bin/true", "s"]\ntrust = "trusted"\n'


async def test_a_policy_that_was_read_again_decides_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [tool("work", destructive=False, open_world=False)])
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        client = await b.client()
        assert await client.call("work").said() == "done"
        b.write('preset = "read-only"\n' + SERVER)
        await b.op("reload")
        assert "not allowed" in await client.call("work").said()


async def test_a_configuration_with_a_mistake_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [reads("read")])
    async with bench(tmp_path, monkeypatch, s, text='preset = "read-only"\n', trust=TRUSTED) as b:
        client = await b.client()
        for broken in ('preset = "no such"\n', "[views.x]\nwhen = 'tool.no_such'\n", "=\n"):
            b.write(broken + SERVER)
            with pytest.raises(EarnestError):
                await b.op("reload")
            assert await client.call("read").said() == "done"
        assert b.app.world.settings.preset == "read-only"


async def test_a_view_that_became_stricter_hides_at_once_and_one_that_is_gone_hides_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [reads("read"), tool("append", destructive=False, open_world=False)])
    async with bench(tmp_path, monkeypatch, s, text='[views.v]\ntools = ["s/*"]\n', trust=TRUSTED) as b:
        client = await b.client(view="v")
        assert await client.call("s__append").said() == "done"
        b.write('[views.v]\nwhen = "tool.read_only"\n' + SERVER)
        await b.op("reload")
        assert "not allowed" in await client.call("s__append").said()
        assert await client.call("s__read").said() == "done"
        b.write(SERVER)
        await b.op("reload")
        assert "not allowed" in await client.call("s__read").said()


async def test_a_folders_file_goes_on_tightening_after_a_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ScriptedServer("s", [tool("work", destructive=False, open_world=False)])
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "earnest.toml").write_text('preset = "read-only"\n')
    async with bench(tmp_path, monkeypatch, s, trust=TRUSTED) as b:
        _, overlay = b.app.world_at(str(folder))
        assert overlay

        class Front:
            """What reload needs of a client's pipe."""

            def __init__(self, session: Session) -> None:
                self.session = session
                self.client = session.client

            def become(self, client: object) -> None:
                self.session.client = client  # type: ignore[assignment]

        client = await b.client()
        client.session.client = msgspec.structs.replace(client.session.client, overlay=overlay)
        b.app.fronts.add(Front(client.session))  # type: ignore[arg-type]
        assert "not allowed" in await client.call("work").said()
        (folder / "earnest.toml").write_text("")
        await b.op("reload")
        assert "not allowed" in await client.call("work").said(), "the file that was read when the client came holds on"
        b.write("[clients.c]\nasks = 'person'\n" + SERVER)
        await b.op("reload")
        assert client.session.client.asks_person is True
        b.app.fronts.clear()
        await b.op("reload")
        answer = await client.call("work").over()
        assert "error" in answer or answer["result"]["isError"], "what tightened it is gone: nothing runs"
        assert not s.calls


async def test_a_person_who_ends_trust_is_heard_by_every_client_after_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ScriptedServer("s", [reads("read")])
    quiet = "[asking]\nhold_s = 0.05\n"
    async with bench(tmp_path, monkeypatch, s, text=quiet, trust=TRUSTED) as b:
        client = await b.client()
        assert await client.call("read").said() == "done"
        await b.op("reload")
        assert await client.call("read").said() == "done"
        await b.op("trust", server="s", trust="untrusted")
        assert "waiting" in await client.call("read").said()
