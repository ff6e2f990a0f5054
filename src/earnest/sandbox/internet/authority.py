"""Makes the certificates of a box's fake internet, outside of the box: a CA of its own, and a leaf for each name.

As a program (`python -S authority.py FOLDER PATH…`, with this interpreter's search path) it reads a name a line and answers
each with the file that has its certificate and key. A file once made is used by every box of this process.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[:] = sys.argv[2:]

import datetime
import hashlib
import ipaddress
import os
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE, _KEY, _LEAF_KEY = "ca.pem", "ca.key", "leaf.key"
_DAYS: Final = 30


def make(folder: str) -> str:
    """A CA in an empty folder; its certificate in PEM."""
    key, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Local CA")])
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = (
        _begun(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    for file, content in ((CERTIFICATE, text), (_KEY, _private(key)), (_LEAF_KEY, _private(leaf))):
        with open(os.open(os.path.join(folder, file), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
    return text.decode()


def leaf_path(folder: str, name: str) -> str:
    """Where a name's certificate lies, once it is made."""
    return os.path.join(folder, hashlib.sha256(name.encode()).hexdigest()[:32] + ".pem")


def leaf(folder: str, name: str) -> str:
    """The file with a certificate for a name or an address, and its key."""
    path = leaf_path(folder, name)
    if os.path.exists(path):
        return path
    with open(os.path.join(folder, CERTIFICATE), "rb") as file:
        authority = x509.load_pem_x509_certificate(file.read())
    keys = []
    for each in (_KEY, _LEAF_KEY):
        with open(os.path.join(folder, each), "rb") as file:
            keys.append(serialization.load_pem_private_key(file.read(), None))
    signer, own = keys
    assert isinstance(signer, ec.EllipticCurvePrivateKey) and isinstance(own, ec.EllipticCurvePrivateKey)
    try:
        subject: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    certificate = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])]), authority.subject, own.public_key())
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    with open(f"{path}.{os.getpid()}", "wb") as out:
        out.write(certificate.public_bytes(serialization.Encoding.PEM) + _private(own))
    os.rename(f"{path}.{os.getpid()}", path)
    return path


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    begin, end = now - datetime.timedelta(days=1), now + datetime.timedelta(days=_DAYS)
    return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), begin, end)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def main(folder: str) -> None:
    for line in sys.stdin:
        try:
            answer = leaf(folder, line.strip())
        except ValueError:  # what came in a greeting is no name
            answer = ""
        print(answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
