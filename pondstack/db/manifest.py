"""A model's manifest as a column: sealed by a hash of its own, so that a change by anybody else is seen.

What is no JSON any more, or not what was stored, is read as {CORRUPT: why}: a broken row must not keep others unread.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import JSON, Dialect
from sqlalchemy.types import TypeDecorator

SEAL = "manifest_sha256"
CORRUPT = "corrupt"


class ManifestColumn(TypeDecorator[dict[str, Any]]):
    """JSON in the database; see above. A manifest without a seal, of a former release, is taken as it is."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, _dialect: Dialect) -> dict[str, Any] | None:
        """Seal what is stored."""
        return None if value is None else {**value, SEAL: _hash(value)}

    def process_result_value(self, value: Any, _dialect: Dialect) -> dict[str, Any]:
        """Return what was stored, without its seal."""
        if not isinstance(value, dict):
            return {CORRUPT: "its manifest is no JSON object"}
        manifest = {name: item for name, item in value.items() if name != SEAL}
        if value.get(SEAL, _hash(manifest)) != _hash(manifest):
            return {CORRUPT: "its manifest is not what was stored (SHA-256)"}
        return manifest

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], dict[str, Any]]:
        """Return what reads a value from the database, however broken."""
        read = super().result_processor(dialect, coltype)

        def tolerant(value: Any) -> dict[str, Any]:
            try:
                return dict((read(value) if read else value) or {})
            except ValueError as error:
                return {CORRUPT: f"its manifest is no JSON: {error}"}

        return tolerant


def _hash(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
