"""The session key of a hand-over: both agents make it of each other's public key, so that no message has it.

X25519 (RFC 7748), then HKDF-SHA256 (RFC 5869) over both public keys and the guest. A key pair is for one hand-over,
and in memory only: whoever restarts begins it anew. That a public key is the other agent's, the signature of the
request that brought it says (pondstack.rpc.identity).
"""

import threading

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pondstack.domain.errors import BadRequest, Conflict

KEY_BYTES = 32


class SessionKeys:
    """Key pairs of one agent, one for each guest that comes or leaves. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pairs: dict[str, X25519PrivateKey] = {}

    def begin(self, guest: str) -> str:
        """Draw a new pair for a guest; returns its public key, in hexadecimal digits."""
        pair = X25519PrivateKey.generate()
        with self._lock:
            self._pairs[guest] = pair
        return _public(pair)

    def agree(self, guest: str, other: str) -> str:
        """Return the session key with whoever has the other public key; raises BadRequest, Conflict (no pair)."""
        with self._lock:
            pair = self._pairs.get(guest)
        if pair is None:
            raise Conflict(f"the agent was restarted since the move of guest {guest} began; migrate it again")
        try:
            shared = pair.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        except ValueError as error:
            raise BadRequest(f"public: {error}; {KEY_BYTES} bytes in hexadecimal digits are needed") from None
        both = "/".join(sorted((_public(pair), other)))
        made = HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=f"pondstack hand-over {guest} {both}".encode())
        return made.derive(shared).hex()

    def forget(self, guest: str) -> None:
        """Forget a pair; idempotent."""
        with self._lock:
            self._pairs.pop(guest, None)


def _public(pair: X25519PrivateKey) -> str:
    return pair.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
