"""The tools a host brings itself, as a server of the catalog: definitions and labels from the files beside this one.

They are in the format of a list of tools (`HOST.json`) and of a pack (`HOST.toml`), and are resolved like those of any server
that is verified. A tool that is not there is taken for the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import msgspec

from earnest.config import packs
from earnest.core.profile import Trust
from earnest.pdp.catalog import NO_WORDS, Refined, Refiner, SavedPin, Server, Tool, Words
from earnest.refine import registry
from earnest.refine.registry import RefineRule


class _NoPins:
    """A host's tools come with the host: there is no definition to compare them with."""

    def pins(self, identity: str) -> list[SavedPin]:
        return []

    def save_pins(self, identity: str, pins: Iterable[SavedPin]) -> None:
        """Nothing is kept."""

    def noise(self, identity: str) -> Sequence[str]:
        return ()

    def lost_at(self) -> float:
        return 0.0


def server(host: str) -> Server:
    """The built-in tools of a host."""
    name = host.replace("-", "_")
    folder = files("earnest.hook")
    definitions = msgspec.json.decode(folder.joinpath(f"{name}.json").read_bytes(), type=list[msgspec.Raw])
    pack = packs.read(host, f"{name}.toml", folder.joinpath(f"{name}.toml").read_bytes())

    def words(_: Server, tool: Tool) -> Words:
        said = pack.tools.get(tool.name)
        if said is None:
            return NO_WORDS
        refiners = tuple(_looking(rule) for rule in said.refine)
        # `Bash` names no verb and no object; the titles, which are ours, do.
        return Words(pack=said.labels, pack_holds=True, roles=said.roles, refiners=refiners, intent=tool.title or "")

    made = Server(host, f"host:{host}", credentialed=False)
    made.words = words
    made.update([bytes(one) for one in definitions], "", _NoPins(), 0.0)
    made.set_trust(Trust.VERIFIED, "the host's own tools")
    return made


def unknown(name: str) -> Tool:
    """A tool of which nothing is known. There is no definition that a person could look at, so the pins do not speak of it."""
    return Tool(name)


def _looking(rule: RefineRule) -> Refiner:
    def look(arguments: Mapping[str, object]) -> Refined | None:
        found = registry.refine(rule, arguments)
        return Refined(found.labels, found.why, False) if found is not None else None

    return look
