"""Seals keys that are kept in escrow: the database's rows are of no use without the controllers' sealing keys.

AES-256-GCM. What a key is for (lender's incarnation, buffer, borrower) is authenticated with it, so that a row which is
put in another one's place does not open.
"""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.escrow import EscrowedKey

KEY_BYTES = 32
_NONCE_BYTES = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_OPEN_TO_OTHERS = 0o077


class EscrowSealer:
    """Seals with the first of the sealing keys, and opens with all. `keys`: 32 bytes each, by name, in order."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """Raises BadRequest where there is no key, or one of another length."""
        if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise BadRequest(f"keys in escrow are sealed with keys of {KEY_BYTES} bytes, one at the least")
        self.name = next(iter(keys))
        self.names = frozenset(keys)
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}

    @classmethod
    def load(cls, path: Path) -> "EscrowSealer":
        """Read a file of lines `NAME KEY`, the key in base64; raises BadRequest."""
        try:
            if path.stat().st_mode & _OPEN_TO_OTHERS:
                raise BadRequest(f"others can read {path}, which has sealing keys: chmod 600")
            return cls(dict(_parse(path, path.read_text(encoding="ascii").splitlines())))
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequest(f"the sealing keys in {path} cannot be read: {error}") from error

    def seal(self, key: EscrowedKey, content: Mapping[str, Any]) -> EscrowedKey:
        """Return a key with its content sealed."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        plain = json.dumps(content, separators=(",", ":")).encode()
        data = nonce + self._ciphers[self.name].encrypt(nonce, plain, _about(key))
        return replace(key, sealing_key=self.name, sealed=base64.b64encode(data).decode())

    def open(self, key: EscrowedKey) -> dict[str, Any]:
        """Return the content of a key; raises Unavailable where it does not open."""
        cipher = self._ciphers.get(key.sealing_key)
        if cipher is None:
            raise Unavailable(
                f"a key in escrow is sealed with {key.sealing_key!r}, which this controller does not have: give all "
                "controllers the same [controller] sealing_keys_file"
            )
        try:
            data = base64.b64decode(key.sealed, validate=True)
            found: dict[str, Any] = json.loads(cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _about(key)))
        except (InvalidTag, ValueError) as error:
            raise Unavailable(
                f"the key of buffer {key.index} of {key.incarnation} for {key.borrower} does not open: somebody "
                f"changed its row, or the sealing key {key.sealing_key!r}"
            ) from error
        return found

    def reseal(self, keys: Sequence[EscrowedKey]) -> list[EscrowedKey]:
        """Return keys sealed with the first sealing key, of those that open."""
        known = [key for key in keys if key.sealing_key in self._ciphers]
        return [self.seal(key, self.open(key)) for key in known]


def new_line(name: str) -> str:
    """Return a line with a new sealing key; raises BadRequest for a name that is none."""
    if not _NAME.match(name):
        raise BadRequest(f"a sealing key is named by letters, digits, '.', '_' and '-', not {name!r}")
    return f"{name} {base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def _parse(path: Path, lines: Sequence[str]) -> list[tuple[str, bytes]]:
    found: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, text = words
            key = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            raise BadRequest(f"{path}, line {number}: a line is NAME and a key in base64") from None
        if not _NAME.match(name) or name in found or len(key) != KEY_BYTES:
            raise BadRequest(f"{path}, line {number}: a name comes once, and its key has {KEY_BYTES} bytes")
        found[name] = key
    return list(found.items())


def _about(key: EscrowedKey) -> bytes:
    return json.dumps(["pondstack escrow", key.incarnation, key.index, key.borrower]).encode()
