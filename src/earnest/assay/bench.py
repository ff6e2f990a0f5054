"""Everything an assay stands on: a fresh folder with the fixture, the command made ready, the plan of a box."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from earnest.assay import fixture as fixtures
from earnest.assay.arguments.literals import Literals, mined
from earnest.assay.fixture import Fixture
from earnest.assay.homes import Home, Homes
from earnest.assay.observe.places import Lay
from earnest.assay.programs import Started, prepared, refuse_runner, related
from earnest.assay.session import Bench
from earnest.core.errors import EarnestError
from earnest.sandbox.box import Access, Answer, Folder, Limits, Plan, Tier
from earnest.sandbox.plans import account_home
from earnest.sandbox.runtimes import needs

DATABASES = ("postgresql", "mysql", "redis")
"""Database servers that can be started beside a server under assay, where they are installed."""
_MOST_HOMES = 9
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside.py")


class Wish(msgspec.Struct, frozen=True):
    """What is to be assayed. `env`: of who calls. `given`: settings meant for the server. `url`: where it listens inside, for a
    server over HTTP. `database`: one of `DATABASES`, to be started beside it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    given: Mapping[str, str] = {}
    shared: tuple[str, ...] = ()
    keep: bool = False
    url: str = ""
    database: str = ""
    answers: tuple[Answer, ...] = ()
    timeout: float = 20.0
    opening: float = 60.0


class Ground(msgspec.Struct, frozen=True):
    """Where an assay runs."""

    bench: Bench
    fixture: Fixture
    literals: Literals
    started: Started


@contextmanager
def ground(wish: Wish, tier: Tier, jobs: int = 1) -> Iterator[Ground]:
    """A folder with all that is needed, for `jobs` sessions side by side, taken away at the end. Raises E1201, E1953, E1959."""
    refuse_runner(wish.argv)
    # Not called after us: what runs in a box need not know by whom. Short, since socket paths are.
    root = os.path.realpath(tempfile.mkdtemp(prefix="u"))
    os.chmod(root, 0o700)
    try:
        fixture = fixtures.build(os.path.join(root, "template"), os.path.join(root, "ada"))
        if wish.database:
            _with_database(wish.database, tier, fixture)
        place = _ground(wish, tier, fixture)
        if tier.name != "namespaces" and jobs > 1:
            homes = tuple(_home(wish, tier, root, number, fixture) for number in range(1, min(jobs, _MOST_HOMES)))
            own = Home(fixture.source, fixture.home, fixture.home)
            place = msgspec.structs.replace(place, bench=msgspec.structs.replace(place.bench, homes=Homes((own, *homes))))
        yield place
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _home(wish: Wish, tier: Tier, root: str, number: int, fixture: Fixture) -> Home:
    other = fixtures.build(os.path.join(root, f"template{number}"), os.path.join(root, f"ad{number}"))
    if wish.database:
        _with_database(wish.database, tier, other)
    return Home(other.source, other.home, fixture.home)


def _with_database(kind: str, tier: Tier, fixture: Fixture) -> None:
    """Make the files of a database in the fixture's home, in a box, since databases will not run as root. Raises E1959."""
    home = fixture.source
    env = {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin", "HOME": home, "TMPDIR": "/tmp"}
    plan = Plan((sys.executable, "-I", INSIDE, "--prepare", kind), env, home, home, (Folder(home, home, "write"),), user=1000)
    box = tier.box(plan)
    try:
        done = subprocess.run(box.argv, env=dict(box.env), capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise EarnestError("E1959", f"{kind} was not ready to be started after two minutes", exit_code=3) from None
    finally:
        box.close()
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise EarnestError(
            "E1959",
            f"{kind} could not be started beside the server: {said[-1] if said else f'status {done.returncode}'}",
            "Install its server and client (on Debian: postgresql, mariadb-server, redis-server), or leave --database out.",
            exit_code=3,
        )


def _ground(wish: Wish, tier: Tier, fixture: Fixture) -> Ground:
    given = dict(wish.given)
    started = prepared(
        wish.argv, wish.env, wish.cwd, fixture, home=account_home(), given=given, shared=wish.shared, keep=wish.keep
    )
    argv = started.argv
    folders = [Folder(fixture.home, fixture.source)]
    folders += [Folder(path, path, "copy" if tier.name == "namespaces" else "read") for path in started.folders]
    if wish.url or wish.database:
        inner = shlex.join(argv)
        argv = (sys.executable, "-I", INSIDE, "--url", wish.url, "--database", wish.database, "--", inner)
        outer = needs(argv, started.env, started.cwd, account_home()).paths
        access: Access = "copy" if tier.name == "namespaces" else "read"
        folders += [Folder(path, path, access) for path in started.programs if not any(related(path, one) for one in outer)]
    plan = Plan(
        argv,
        started.env,
        started.cwd,
        fixture.home,
        tuple(dict.fromkeys(folders)),
        reach="pretend",
        answers=(*wish.answers, *_site(fixture)),
        limits=Limits(),
        user=1000 if wish.database else 0,
        watch=True,
    )
    lay = Lay(fixture.home, started.programs, (f"{fixture.home}/.database",))
    bench = Bench(tier, plan, lay, wish.name, wish.timeout, wish.opening, dumps=bool(wish.database))
    return Ground(bench, fixture, mined(started.sources), started)


def _site(fixture: Fixture) -> list[Answer]:
    """The fixture's files as pages of example.com and example.org."""
    kinds = {
        "page.html": "text/html; charset=utf-8",
        "data.json": "application/json",
        "notes.txt": "text/plain; charset=utf-8",
        "data.csv": "text/csv; charset=utf-8",
        "picture.png": "image/png",
        "letter.pdf": "application/pdf",
    }
    found = []
    for name, kind in kinds.items():
        with open(os.path.join(fixture.source, "workspace", name), "rb") as file:
            body = file.read()
        found += [
            Answer(host, f"/{name}", "GET", 200, (("content-type", kind),), body) for host in ("example.com", "example.org")
        ]
    return found


def shared_paths(words: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Folders that a person lays in as they are, absolute."""
    return tuple(os.path.realpath(os.path.join(cwd, os.path.expanduser(word))) for word in words)
