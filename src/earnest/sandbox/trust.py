"""What the files and variables of a box say of its network: its resolver, and whose certificates to believe."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Mapping
from typing import Final, NamedTuple

from earnest.sandbox.box import Plan
from earnest.sandbox.places import Place

_MAKER: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "internet", "authority.py")
BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions keep the certificates that programs believe."""
_EXTRA: Final = "/etc/ssl/certs/extra-ca.pem"
_WHOLE: Final = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO",
)  # fmt: skip
_ADDED: Final = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")


class Authority(NamedTuple):
    """A CA: the folder of its certificates, and its own."""

    folder: str
    certificate: str


_made: list[Authority] = []
_making = threading.Lock()


def authority() -> Authority:
    """This process's CA, made when it is first asked for, gone with the process."""
    with _making:
        if not _made:
            from earnest.sandbox.internet import authority as maker  # imports what is slow to import

            place = Place()
            atexit.register(place.remove)
            _made.append(Authority(place.path, maker.make(place.path)))
    return _made[0]


def command() -> list[str]:
    """What makes certificates for a box that asks."""
    return [sys.executable, "-S", _MAKER, _made[0].folder, *sys.path] if _made else []


def files_and_env(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Files a box has, and variables that point to them; a variable of the plan's own stays."""
    resolver = "127.0.0.1" if plan.reach == "none" else "10.0.2.3"
    files = {
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
        "/etc/hostname": "localhost\n",
        "/etc/resolv.conf": f"nameserver {resolver}\noptions timeout:1 attempts:2\n",
    }
    if plan.reach != "pretend":
        return files, {}
    return files | _bundles(authority().certificate), ca_env(plan.env, _bundle(), _EXTRA)


def folder_and_env(plan: Plan, state: str) -> tuple[str, dict[str, str]]:
    """A folder with what to believe, for a box that has the machine's own files, and the variables that point there."""
    folder = f"{state}/tls"
    os.mkdir(folder)
    certificate = authority().certificate
    known = _bundle()
    others = read_bundle(known) if os.path.isfile(known) else ""
    for name, text in (("extra.pem", certificate), ("all.pem", f"{others}\n{certificate}")):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
    return folder, ca_env(plan.env, f"{folder}/all.pem", f"{folder}/extra.pem")


def ca_env(given: Mapping[str, str], whole: str, extra: str) -> dict[str, str]:
    """Variables for a bundle with everything in it, and for a file with the CA alone."""
    env = {**dict.fromkeys(_WHOLE, whole), **dict.fromkeys(_ADDED, extra)}
    return {name: value for name, value in env.items() if name not in given}


def _bundle() -> str:
    return next((path for path in BUNDLES if os.path.isfile(path)), BUNDLES[0])


def _bundles(certificate: str) -> dict[str, str]:
    files = {_EXTRA: certificate}
    for path in BUNDLES:
        if os.path.isfile(path) and (path == os.path.realpath(path) or path == _bundle()):
            files[path] = read_bundle(path) + "\n" + certificate
    return files or {BUNDLES[0]: certificate}


def read_bundle(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
