"""Text that people read in logs and on terminals; names and reasons come from hosts and operators, whoever they are."""

import re
from collections.abc import Mapping
from typing import Any

_CHARACTERS = r" -~\u00a0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd"
PRINTABLE = rf"^[{_CHARACTERS}]*$"
"""Of text that a database with three bytes a character keeps, too: no control characters, line separators, overrides of
direction, surrogates, nor characters beyond the basic multilingual plane."""
_OTHER = re.compile(f"[^{_CHARACTERS}]")


def escaped(text: str) -> str:
    r"""Return a text with what is not printable as an escape: \n, \x1b, \u202e."""
    return _OTHER.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escaped_within(value: Any) -> Any:
    """Return a value of JSON types with all texts in it escaped."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {escaped_within(key): escaped_within(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escaped_within(item) for item in value]
    return value
