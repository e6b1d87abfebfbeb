"""The lender's book of borrowers and keys. No I/O and no lock: its lender guards it."""

import hmac
import secrets
from collections.abc import Callable, Iterator

from pondstack_rdma.errors import KeyRevoked, UnknownKey, WrongBorrower
from pondstack_rdma.model import Key

PROOF_BYTES = 32
_TOKEN_BYTES = 16
_REMEMBERED = 4096
"""So many revoked keys are still told from keys that never were; that helps operators and guards nothing."""


class Keyring:
    """Who was admitted, and which key opens which region."""

    def __init__(self, draw: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._draw = draw
        self._secrets: dict[str, bytes] = {}
        self._live: dict[int, tuple[Key, int]] = {}
        self._revoked: dict[int, Key] = {}
        self._refused: set[int] = set()
        self._last = 0

    def admit(self, borrower: str) -> bytes:
        """Return the secret of a borrower; the same one each time."""
        return self._secrets.setdefault(borrower, self._draw(_TOKEN_BYTES))

    def dismiss(self, borrower: str) -> bool:
        """Forget the secret of a borrower; False when it was not admitted. Its keys are its lender's to end."""
        return self._secrets.pop(borrower, None) is not None

    def check_borrower(self, borrower: str, secret: bytes) -> None:
        """Raise WrongBorrower unless `secret` is that of an admitted borrower."""
        if not hmac.compare_digest(self._secrets.get(borrower, b""), secret) or not secret:
            raise WrongBorrower(f"this lender did not admit borrower {borrower!r} with that ticket; ask for a new one")

    def borrower_of(self, shown: bytes) -> str:
        """Return the admitted borrower whose proof this is; raises WrongBorrower."""
        for borrower, secret in self._secrets.items():
            if hmac.compare_digest(proof(borrower, secret), shown):
                return borrower
        raise WrongBorrower("this lender did not admit a borrower with that ticket; ask for a new one")

    def add(self, region: int, size_bytes: int, borrower: str) -> Key:
        """Make a key of a region."""
        self._last += 1
        key = Key(self._last, borrower, size_bytes, self._draw(_TOKEN_BYTES))
        self._live[key.number] = (key, region)
        return key

    def refuse(self, key: Key) -> int | None:
        """Open nothing with a key any more; its region, or None when it did not live.

        It is a key of its region until it is removed: its lender's device may not have ended it.
        """
        found = self._live.get(key.number)
        if found is None or not _equal(found[0], key):
            return None
        self._refused.add(key.number)
        return found[1]

    def remove(self, key: Key) -> int | None:
        """End a key; its region, or None when it did not live."""
        found = self._live.get(key.number)
        if found is None or not _equal(found[0], key):
            return None
        del self._live[key.number]
        self._refused.discard(key.number)
        self._revoked[key.number] = key
        if len(self._revoked) > _REMEMBERED:
            del self._revoked[next(iter(self._revoked))]
        return found[1]

    def check(self, borrower: str, key: Key) -> int:
        """Return the region that a borrower reaches with a key; raises UnknownKey, KeyRevoked, WrongBorrower."""
        found = self._live.get(key.number)
        if found is None or not _equal(found[0], key):
            former = self._revoked.get(key.number)
            if former is not None and _equal(former, key):
                raise KeyRevoked(f"key {key.number} was revoked by its lender")
            raise UnknownKey(f"this lender has no such key {key.number}")
        if key.number in self._refused:
            raise KeyRevoked(f"key {key.number} was revoked by its lender")
        if key.borrower != borrower:
            raise WrongBorrower(f"key {key.number} is not borrower {borrower!r}'s")
        return found[1]

    def keys_of(self, region: int) -> list[Key]:
        """Return the live keys of a region."""
        return [key for key, of in self._live.values() if of == region]

    def keys_for(self, borrower: str) -> list[Key]:
        """Return the live keys of a borrower."""
        return [key for key, _ in self._live.values() if key.borrower == borrower]

    def refused_of(self, region: int) -> list[Key]:
        """Return the keys of a region that were refused, and not removed yet."""
        return [key for key in self.keys_of(region) if key.number in self._refused]

    def __iter__(self) -> Iterator[Key]:
        return iter([key for key, _ in self._live.values()])


def proof(borrower: str, secret: bytes) -> bytes:
    """Return what only a borrower with its secret can show, in place of both."""
    return hmac.digest(secret, b"pondstack borrower " + borrower.encode(), "sha256")


def _equal(known: Key, shown: Key) -> bool:
    """Compare all of two keys, the secret part in a time that tells nothing."""
    same = (known.number, known.borrower, known.size_bytes) == (shown.number, shown.borrower, shown.size_bytes)
    return hmac.compare_digest(known.token, shown.token) and same
