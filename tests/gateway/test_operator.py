"""What earnest.toml says of tools, as the gateway applies it."""

import sys
from collections.abc import Mapping
from pathlib import Path

from earnest.config.settings import Settings, parse
from earnest.core.hints import raw_from_wire
from earnest.core.profile import Basis, Labels, Standing, Trust, resolve
from earnest.gateway.catalogs import Catalogs
from earnest.gateway.operator import refiners_of
from earnest.gateway.served import Grants
from earnest.store.sqlite import open_store

READER = b'{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false}}'


def said(rule: str, arguments: Mapping[str, object]) -> Labels | None:
    settings = parse("earnest.toml", f'[[labels."s/t".refine]]\n{rule}'.encode(), {})
    found = [one for refiner in refiners_of(settings.labels[0]) if (one := refiner(arguments)) is not None]
    assert all(one.from_operator for one in found)
    return found[0].labels if found else None


def test_values_count_in_their_own_type() -> None:
    rule = "argument = 'a'\nvalues = [7, true]\nread_only = true"
    for value, lowers in ((7, True), (True, True), (1, False), ("7", False), ("true", False)):
        labels = said(rule, {"a": value})
        assert (labels is not None and labels.read_only is True) is lowers, value


def test_an_absent_method_is_the_default_only_where_one_is_written() -> None:
    assert (labels := said("argument = 'm'\nas = 'http'\ndefault = 'GET'", {})) is not None and labels.read_only is True
    assert (labels := said("argument = 'm'\nas = 'http'", {})) is not None and labels.read_only is False


def test_an_address_that_is_not_public_reads_what_is_private() -> None:
    assert (labels := said("argument = 'u'\nas = 'address'", {"u": "http://localhost/"})) is not None
    assert labels.reads_private is True
    assert said("argument = 'u'\nas = 'address'", {"u": "https://example.org/"}) is None


def catalogs(folder: Path, text: str) -> Catalogs:
    settings: Settings = parse(str(folder / "earnest.toml"), text.encode(), {})
    made = Catalogs(
        settings=settings,
        store=open_store(str(folder / "store.db")),
        packs=(),
        env={},
        secrets={},
        wall=lambda: 0.0,
        log=lambda line: None,
    )
    made.load()
    return made


def test_destructive_alone_wins_over_what_a_trusted_server_claims(tmp_path: Path) -> None:
    text = f"[servers.s]\ncommand = ['{sys.executable}']\ntrust = 'trusted'\n[labels.'s/t']\ndestructive = true"
    server = catalogs(tmp_path, text).served()[0].server

    class Book:
        def pins(self, identity: str) -> list[object]:
            return []

        def noise(self, identity: str) -> list[str]:
            return []

        def save_pins(self, identity: str, pins: object) -> None:
            pass

        def lost_at(self) -> float:
            return 0.0

    server.update([READER], "", Book(), 0.0)  # type: ignore[arg-type]
    profile = server.tools["t"].profile
    assert server.trust is Trust.TRUSTED
    assert (profile.destructive.value, profile.read_only.value) == (True, False)
    assert profile.read_only.basis is Basis.OPERATOR
    # The claim alone would have been believed, so it is the label that did it.
    claimed = resolve(Standing(trust=Trust.TRUSTED, claims=raw_from_wire({"readOnlyHint": True})))
    assert claimed.read_only.value is True


def granted(grants: Grants | None) -> tuple[tuple[str, ...], ...]:
    assert grants is not None
    return grants.read, grants.write, grants.hosts


def test_a_server_that_a_client_brings_gets_the_containment_it_was_promised(tmp_path: Path) -> None:
    made = catalogs(tmp_path, "[servers.s]\ncontain = true")
    assert granted(made.own("s", [sys.executable], {}, "/").launch.grants) == ((), (), ())
    assert made.own("other", [sys.executable], {}, "/").launch.grants is None
    every = catalogs(tmp_path, "contain = true\n[servers.free]\ncontain = false")
    assert granted(every.own("other", [sys.executable], {}, "/").launch.grants) == ((), (), ())
    assert every.own("free", [sys.executable], {}, "/").launch.grants is None


def test_what_a_client_sets_for_its_server_may_be_a_credential_and_what_a_login_has_is_none(tmp_path: Path) -> None:
    made = catalogs(tmp_path, "")
    login = {"HOME": "/home/me", "PATH": "/bin", "TERM": "dumb", "PWD": "/", "LC_ALL": "C"}
    command = [sys.executable]
    assert not made.own("s", command, login, "/").server.credentialed
    assert made.own("s", command, {**login, "API_TOKEN": "x"}, "/").server.credentialed
