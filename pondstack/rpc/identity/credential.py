"""Credentials: an Ed25519 key with an X.509 certificate that names its holder, and the authority that signed it.

The name is a URI in the certificate's subjectAltName (RFC 5280, 4.2.1.6), `pondstack://ROLE/NAME`. Signing takes about
50 microseconds, and to verify a signature about 150; a certificate is verified once for each process that meets it.
"""

import datetime
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pondstack.domain.errors import BadRequest, Refused
from pondstack.rpc.identity.identity import Identity, Role

SCHEME = "pondstack://"
EARLIER = datetime.timedelta(minutes=5)
"""A certificate is valid from so long before it was issued: the hosts' clocks differ."""
AUTHORITY = "authority.pem"
NAMED = frozenset({Role.CONTROLLER, Role.AGENT})
"""Roles whose services are called by their names, so that the credential must be of just that name."""
MOST_HOLDERS = 10_000
"""Verified certificates that a process remembers."""


def utc_now() -> datetime.datetime:
    """Return the present moment, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def identity_of(certificate: x509.Certificate) -> Identity:
    """Return whom a certificate names; raises BadRequest. It says nothing about who signed it."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise BadRequest("the certificate has no subjectAltName: it was not issued for a party of pondstack") from None
    uris = [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith(SCHEME)]
    if len(uris) != 1:
        raise BadRequest(f"the certificate names {len(uris)} parties of pondstack and must name one")
    return Identity.parse(uris[0].removeprefix(SCHEME))


class Credential:
    """What a party signs with. Its file has the private key and the certificate, both in PEM."""

    def __init__(self, key: Ed25519PrivateKey, certificate: x509.Certificate) -> None:
        """Raises BadRequest where the certificate names nobody, or is another key's."""
        self.identity = identity_of(certificate)
        self.certificate = certificate
        self.der = certificate.public_bytes(serialization.Encoding.DER)
        self._key = key
        if certificate.public_key() != key.public_key():
            raise BadRequest(f"the certificate of {self.identity} belongs to another key")

    @classmethod
    def load(cls, path: str | Path) -> "Credential":
        """Read a file of `pondstack-manage credentials issue`; raises BadRequest that says what to do."""
        content = _content(path)
        try:
            key = serialization.load_pem_private_key(content, password=None)
            certificate = x509.load_pem_x509_certificate(content)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: its key wants a password
            raise BadRequest(
                f"{path} is no credential ({error}): issue it anew by `pondstack-manage credentials issue`"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise BadRequest(f"{path} has a key of another kind than Ed25519: issue it anew")
        return cls(key, certificate)

    def sign(self, content: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key.sign(content)

    def pem(self) -> bytes:
        """Return the content of its file."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ) + self.certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a certificate of the authority names."""

    identity: Identity
    issued: datetime.datetime
    ends: datetime.datetime
    key: Ed25519PublicKey

    def signed(self, signature: bytes, content: bytes) -> bool:
        """Return whether the holder signed `content`."""
        try:
            self.key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


class Authority:
    """Whose certificates are believed. Its file has one certificate or, while it is replaced, several. Thread-safe."""

    def __init__(self, certificates: list[x509.Certificate], clock: Callable[[], datetime.datetime] = utc_now) -> None:
        self._certificates = certificates
        self._clock = clock
        self._holders: dict[bytes, Holder] = {}
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path) -> "Authority":
        """Read certificates in PEM; raises BadRequest that says what to do."""
        content = _content(path)
        try:
            return cls(x509.load_pem_x509_certificates(content))
        except ValueError as error:
            raise BadRequest(f"{path} has no certificate of an authority ({error})") from None

    def holder(self, der: bytes) -> Holder:
        """Return whom a certificate names, if the authority signed it and it has not ended; raises Refused."""
        found = self._holders.get(der)
        if found is None:
            found = self._verify(der)
            with self._lock:
                if len(self._holders) >= MOST_HOLDERS:
                    self._holders.clear()
                self._holders[der] = found
        if self._clock() >= found.ends:
            raise Refused(
                f"the credential of {found.identity} ended at {found.ends:%Y-%m-%d %H:%M} UTC: issue it anew by "
                f"`pondstack-manage credentials issue {found.identity}`"
            )
        return found

    def _verify(self, der: bytes) -> Holder:
        # Its signature first: what somebody else made is not looked into any further.
        try:
            certificate = x509.load_der_x509_certificate(der)
        except (ValueError, x509.InvalidVersion) as error:
            raise Refused(f"a message came with what is no certificate: {error}") from None
        if not any(map(certificate_signed(certificate), self._certificates)):
            raise Refused(
                "a message came with a certificate that is not this rack's: issue it by `pondstack-manage credentials "
                f"issue`, and give all hosts the same {AUTHORITY}"
            )
        key = certificate.public_key()
        try:
            identity = identity_of(certificate)
        except BadRequest as error:
            raise Refused(f"a message came with a certificate of nobody: {error.message}") from None
        if not isinstance(key, Ed25519PublicKey):
            raise Refused(f"the certificate of {identity} is not for a key of Ed25519: issue it anew")
        if self._clock() < certificate.not_valid_before_utc:
            raise Refused(f"the certificate of {identity} is not valid yet: set the clocks")
        return Holder(identity, certificate.not_valid_before_utc + EARLIER, certificate.not_valid_after_utc, key)


def certificate_signed(certificate: x509.Certificate) -> Callable[[x509.Certificate], bool]:
    """Return a test of whether an authority's certificate signed this one."""

    def by(authority: x509.Certificate) -> bool:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True

    return by


def file_name(identity: Identity) -> str:
    """Return the name of the file of a credential."""
    return f"{identity.role}-{identity.name}.pem"


def find(folder: Path, own: Identity | Role) -> Credential:
    """Return the credential of a service in a folder; that of a role, where it is the only one. Raises BadRequest."""
    if isinstance(own, Identity) and (own.role in NAMED or (folder / file_name(own)).exists()):
        credential, wanted = Credential.load(folder / file_name(own)), own.role
    else:
        wanted = own.role if isinstance(own, Identity) else own
        files = sorted(folder.glob(f"{wanted}-*.pem"))
        if len(files) != 1:
            which = "none" if not files else ", ".join(path.name for path in files)
            raise BadRequest(
                f"{folder} must have one credential of the role {wanted}, and has {which}: "
                f"`pondstack-manage credentials issue {wanted}/NAME` makes it"
            )
        credential = Credential.load(files[0])
    named = isinstance(own, Identity) and wanted in NAMED
    if credential.identity.role != wanted or (named and credential.identity != own):
        raise BadRequest(f"the credential of {own} in {folder} is that of {credential.identity}: issue it anew")
    return credential


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(
            f"{path}: {error.strerror}; `pondstack-manage credentials issue ROLE/NAME` makes it, and "
            "[pondstack_identity] folder says where it is"
        ) from None
