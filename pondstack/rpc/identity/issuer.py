"""Makes the rack's authority and the credentials that it signs."""

import datetime
import os
import secrets
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from pondstack.domain.errors import BadRequest
from pondstack.rpc.identity.credential import EARLIER, SCHEME, Credential, certificate_signed, utc_now
from pondstack.rpc.identity.identity import Identity

AUTHORITY_DAYS = 3650
COMMON_NAME_LENGTH = 64
"""The most that X.509 has room for; the whole name is in subjectAltName."""


class Issuer:
    """Signs credentials with the authority's key."""

    def __init__(self, key: Ed25519PrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self.certificate = certificate

    @classmethod
    def make(cls) -> "Issuer":
        """Return a new authority."""
        key = Ed25519PrivateKey.generate()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"pondstack authority {secrets.token_hex(4)}")])
        certificate = (
            _builder(name, name, AUTHORITY_DAYS)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, None)
        )
        return cls(key, certificate)

    @classmethod
    def open(cls, key_file: Path, authority_file: Path) -> "Issuer":
        """Read the authority, or make one where neither file exists; raises BadRequest where one of both is missing."""
        if key_file.exists() != authority_file.exists():
            there, missing = (key_file, authority_file) if key_file.exists() else (authority_file, key_file)
            raise BadRequest(
                f"{there} is here and {missing} is not: run this on the machine that has both, or restore it; a new "
                "authority would make all credentials worthless"
            )
        if not key_file.exists():
            issuer = cls.make()
            write_private(key_file, issuer._key_pem())
            write_public(authority_file, issuer.authority_pem())
            return issuer
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise BadRequest(f"{key_file} has a key of another kind than Ed25519")
        for certificate in x509.load_pem_x509_certificates(authority_file.read_bytes()):
            if certificate.public_key() == key.public_key():
                return cls(key, certificate)
        raise BadRequest(f"{authority_file} has no certificate of the key in {key_file}")

    def issue(self, identity: Identity, days: int) -> Credential:
        """Return a new credential that is valid for so many days."""
        key = Ed25519PrivateKey.generate()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(identity)[:COMMON_NAME_LENGTH])])
        certificate = (
            _builder(subject, self.certificate.subject, days)
            .public_key(key.public_key())
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"{SCHEME}{identity}")]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, None)
        )
        return Credential(key, certificate)

    def signed(self, credential: Credential) -> bool:
        """Return whether a credential is of this authority."""
        return certificate_signed(credential.certificate)(self.certificate)

    def authority_pem(self) -> bytes:
        """Return what all parties have in their authority_file."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def _key_pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def _builder(subject: x509.Name, issuer: x509.Name, days: int) -> x509.CertificateBuilder:
    now = utc_now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, whole or not at all."""
    _write(path, content, 0o600)


def write_public(path: Path, content: bytes) -> None:
    """Write a file that everybody can read, whole or not at all."""
    _write(path, content, 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)
