"""The key that signs checkpoints: Ed25519 (RFC 8032) in a file that only its owner may read, JWS compact
(RFC 7515, RFC 9864) as the form. The library is imported when the first signature is made or checked, not
before."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from earnest.core.errors import EarnestError

_ALGORITHM: Final = "Ed25519"


class Signer:
    """A private key in a file. Nothing is read, made or imported before it is first needed."""

    def __init__(self, path: str, publish: Callable[[dict[str, str]], None] | None = None) -> None:
        """The key in the file `path`, which is made when there is none. `publish` takes the public key to where
        it is looked for by who verifies; what it raises, `publish` and `sign` raise."""
        self.path = path
        self._publish = publish

    @cached_property
    def _key(self) -> Any:
        """Raises E1413 for a file that holds no key, belongs to somebody else or may be read by others."""
        from joserfc.errors import JoseError
        from joserfc.jwk import OKPKey

        try:
            raw = _read(self.path)
            if raw is None:
                made = OKPKey.generate_key(_ALGORITHM, private=True).as_dict(private=True)
                raw = _write(self.path, json.dumps(made).encode())
            key = OKPKey.import_key(json.loads(raw))
            if not key.is_private:
                raise ValueError("it holds no private key")
        except OSError as error:
            text = f"the signing key {self.path} cannot be used: {error.strerror}"
            raise EarnestError("E1413", text) from None
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise EarnestError(
                "E1413",
                f"{self.path} is no signing key ({error})",
                "Move it away; a new one is made, and old checkpoints stay readable.",
            ) from None
        return key

    @property
    def public(self) -> dict[str, str]:
        """The public key as JWK. Raises E1413."""
        return {name: str(value) for name, value in self._key.as_dict(private=False).items()}

    @property
    def kid(self) -> str:
        """The thumbprint of the key (RFC 7638). Raises E1413."""
        return str(self._key.thumbprint())

    def publish(self) -> None:
        """Publish the public key, once. Raises E1413."""
        if self._publish is not None:
            self._publish(self.public)
            self._publish = None

    def sign(self, payload: bytes) -> str:
        """`payload` signed, as JWS compact. Nothing is signed by a key that was not published: to who verifies it
        would look like a forgery. Raises E1413."""
        from joserfc import jws

        self.publish()
        header = {"alg": _ALGORITHM, "kid": self.kid}
        return jws.serialize_compact(header, payload, self._key, algorithms=[_ALGORITHM])


def check(signed: str, keys: Iterable[Mapping[str, str]]) -> bytes | None:
    """The payload, if one of the public `keys` signed it; else None."""
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import OKPKey

    for key in keys:
        try:
            public = OKPKey.import_key(dict(key))
            payload: bytes = jws.deserialize_compact(signed, public, algorithms=[_ALGORITHM]).payload
        except (JoseError, ValueError, KeyError, TypeError):
            continue
        return payload
    return None


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        if state.st_uid != os.geteuid() or state.st_mode & 0o077:
            raise ValueError("it belongs to somebody else, or others may read it")
        return file.read(65536)


def _write(path: str, raw: bytes) -> bytes:
    """Put the key in place whole: another process may be making one at the same moment, and the first one
    wins."""
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(fd)
        try:
            os.link(temporary, path)
        except FileExistsError:
            found = _read(path)
            return raw if found is None else found
        return raw
    finally:
        os.unlink(temporary)
