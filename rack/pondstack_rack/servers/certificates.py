"""Certificates for servers of our own: an authority that signs them once, and whose key nobody keeps."""

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK_NAMES = ("127.0.0.1", "localhost")
"""What servers of our own are reached by."""
AUTHORITY = "authority.pem"
DAYS = 365
CLOCKS_DIFFER = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of one server: its certificate, its key, and the authority by which clients know it."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path, server: str) -> Self:
        """Return where make() puts the files of a server."""
        return cls(folder / AUTHORITY, folder / f"{server}.pem", folder / f"{server}.key")

    def context(self) -> ssl.SSLContext:
        """Return how a client connects: it wants this authority's certificate, of the name that it connects to."""
        return ssl.create_default_context(cafile=str(self.authority))


def make(folder: Path, servers: Sequence[str], names: Sequence[str] = LOOPBACK_NAMES) -> None:
    """Make an authority and a certificate of each server, good for `names`: host names and addresses.

    The authority's key is thrown away: nobody can make further certificates.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    issuer = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pondstack rack")])
    issuer_id = x509.SubjectKeyIdentifier.from_public_key(issuer.public_key())
    authority = _builder(name, name, issuer.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    authority = authority.add_extension(_usage(signs_certificates=True), critical=True)
    authority = authority.add_extension(issuer_id, critical=False)
    _write(folder / AUTHORITY, authority.sign(issuer, hashes.SHA256()))
    for server in servers:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, server)])
        made = _builder(subject, name, key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(signs_certificates=False), critical=True)
        made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        made = made.add_extension(x509.SubjectAlternativeName([_named(text) for text in names]), critical=False)
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id)
        made = made.add_extension(authority_id, critical=False)
        files = Certificate.of(folder, server)
        _write_key(files.key, key)
        _write(files.certificate, made.sign(issuer, hashes.SHA256()))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - CLOCKS_DIFFER).not_valid_after(now + datetime.timedelta(days=DAYS))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _named(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
