"""A session: the keys that one client and its server share, and nobody else, whatever crosses broker and memory.

Each end draws an X25519 key (RFC 7748) for this one session. Only the public ones cross the broker, in the request for
an offer and in its answer, both signed where the bus has identities. HKDF (RFC 5869) over what they agree on, the
session's name and both public keys gives a key of AES-256-GCM for each direction, so that nothing of one session, or of
one direction, opens in another. The keys are in the memory of OpenSSL only, as long as the session.
"""

import struct
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pondstack.domain.errors import BadRequest
from pondstack_rdma.model import ReadableBuffer

_KEY_BYTES = 32
_PURPOSE = b"pondstack calls over RDMA 2"
_NONCE = struct.Struct("<HHQ")


class Kind(IntEnum):
    """What is sealed: the header of a frame, or what it describes."""

    HEADER = 0
    PART = 1


class Session:
    """Seals what this end writes, opens what the other end wrote.

    A number is used once per slot and direction; `FrameSealer` sees to that.
    """

    def __init__(self, name: str, sealing_key: bytes, opening_key: bytes) -> None:
        self.name = name
        self._sealing, self._opening = AESGCM(sealing_key), AESGCM(opening_key)

    def seal(self, kind: Kind, slot: int, number: int, data: ReadableBuffer, about: bytes = b"") -> bytes:
        """Return `data` encrypted, and longer by a tag (rpc.layout.TAG_BYTES); its tag is over `about`, too."""
        return self._sealing.encrypt(_NONCE.pack(kind, slot, number), data, about)

    def open(self, kind: Kind, slot: int, number: int, sealed: ReadableBuffer, about: bytes = b"") -> bytes | None:
        """Undo the other end's seal(); None for what is half-written, or was not sealed as just this."""
        try:
            return self._opening.decrypt(_NONCE.pack(kind, slot, number), sealed, about)
        except InvalidTag:
            return None


class KeyPair:
    """What one end has for one session."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def serve(self, client_public: bytes, name: str) -> Session:
        """Return the server's end; raises BadRequest for what is no public key."""
        requests, replies = _keys(self._agree(client_public), name, client_public, self.public)
        return Session(name, replies, requests)

    def call(self, server_public: bytes, name: str) -> Session:
        """Return the client's end; raises BadRequest for what is no public key."""
        requests, replies = _keys(self._agree(server_public), name, self.public, server_public)
        return Session(name, requests, replies)

    def _agree(self, public: bytes) -> bytes:
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:  # of another length, or of few multiples (RFC 7748, 6.1)
            raise BadRequest(f"{public.hex()} is no public key of X25519: {error}") from error


def _keys(agreed: bytes, name: str, client_public: bytes, server_public: bytes) -> tuple[bytes, bytes]:
    """Return the keys of requests and replies."""
    about = b"\0".join((_PURPOSE, name.encode(), client_public, server_public))
    both = HKDF(SHA256(), 2 * _KEY_BYTES, None, about).derive(agreed)
    return both[:_KEY_BYTES], both[_KEY_BYTES:]
