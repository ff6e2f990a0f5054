"""Everything that a configuration says, made ready: settings, compiled policy, catalogs. One for the operator's own, one for
each working directory whose file tightens it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from earnest.config import overlay as overlays
from earnest.config import settings as reading
from earnest.config.packs import Pack
from earnest.config.policy.load import compose
from earnest.config.settings import Settings
from earnest.core.compile import Compiled
from earnest.core.scrub import Scrubber
from earnest.gateway.catalogs import Catalogs
from earnest.gateway.launch import inherited
from earnest.store.base import Store

_REFERENCE: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


class World(msgspec.Struct, frozen=True):
    """One configuration, ready to use."""

    settings: Settings
    policy: Compiled
    catalogs: Catalogs
    sha256: str = ""


class Worlds:
    """Makes worlds from files."""

    def __init__(
        self,
        *,
        path: str,
        named: bool,
        env: Mapping[str, str],
        store: Store,
        packs: Sequence[Pack],
        wall: Callable[[], float],
        log: Callable[[str], None],
        hidden: Scrubber,
    ) -> None:
        """`hidden` learns the secrets that servers are given."""
        self._path = path
        self._named = named
        self._env = dict(env)
        self._store = store
        self._packs = packs
        self._wall = wall
        self._log = log
        self._hidden = hidden

    def offer(self, env: Mapping[str, str], *, person: bool) -> bool:
        """Take what a caller's environment has and the daemon's has not: the daemon may have been started by a client that
        knows little (SDKs pass on six variables), and the operator's `${env:X}` and `npx` are found from a terminal. Values
        that are known stay, the PATH grows at its end. Whether anything came.

        Unless a `person` called, only variables that the configuration refers to are taken: a model that starts a shim by
        itself must not choose the proxy or the programs of servers."""
        if not person:
            env = {name: env[name] for name in self._referred() if name in env}
        new = {name: value for name, value in env.items() if name not in self._env}
        known = self._env.get("PATH", "").split(os.pathsep)
        more = [part for part in env.get("PATH", "").split(os.pathsep) if part and part not in known]
        if more:
            new["PATH"] = os.pathsep.join([*filter(None, known), *more])
        self._env.update(new)
        return bool(new)

    def _referred(self) -> set[str]:
        """Names of variables that the operator's file refers to."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return set(_REFERENCE.findall(file.read()))
        except OSError:
            return set()

    def again(self, world: World) -> None:
        """Try once more what a world could not start, with the environment as it is now."""
        if world.catalogs.broken:
            world.catalogs.retry(inherited(self._env), self._env)

    def operator(self) -> World:
        """The operator's own configuration. Raises E10xx, E11xx."""
        return self._world(reading.load(self._path, self._named, self._env))

    def _world(self, settings: Settings, sha256: str = "") -> World:
        document = compose(settings.policies, settings.preset)
        catalogs = Catalogs(
            settings=settings,
            store=self._store,
            packs=self._packs,
            env=inherited(self._env),
            secrets=self._env,
            wall=self._wall,
            log=self._log,
            hidden=self._hidden,
        )
        catalogs.load()
        return World(settings, Compiled(document.policy), catalogs, sha256)

    def found(self, cwd: str, base: World) -> tuple[World, overlays.Overlay] | None:
        """The operator's configuration under the file in a working directory, or None where there is none. The file only
        tightens; its servers count once a person approved its path and hash. Raises E10xx, E11xx: a file that means to forbid
        something is not passed over because of a mistake."""
        path = os.path.join(cwd, overlays.FILE_NAME) if cwd else ""
        if not path or os.path.realpath(path) == os.path.realpath(self._path):
            return None
        found = overlays.overlay(path, self._env)
        if found is None:
            return None
        return self.under(path, found, base), found

    def under(self, path: str, found: overlays.Overlay, base: World) -> World:
        """A configuration under a file that was read before. Raises as `found` does."""
        settings = overlays.tighten(base.settings, found)
        if self._store.approved_config(os.path.realpath(path)) == found.sha256:
            whole = reading.load(path, True, self._env)
            again = overlays.overlay(path, self._env)
            # What was approved is what was read, not what stands there by now.
            if again is not None and again.sha256 == found.sha256:
                settings = msgspec.structs.replace(
                    settings,
                    servers={**whole.servers, **settings.servers},
                    labels=settings.labels + whole.labels,
                    views={**whole.views, **settings.views},
                )
        return self._world(settings, found.sha256)
