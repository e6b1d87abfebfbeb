"""Values that cross between a test and the host, as JSON: plain ones, and dataclasses, enums, tuples, paths, bytes.

Both sides have the same code, so a dataclass is named by its module and built again from its fields (Grant, Extent,
Backing, DeviceInfo...). An error of pondstack comes back as the class that it was.
"""

import base64
import importlib
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

_TAG = "$"


def encode(value: Any) -> Any:
    """Return JSON types only; raises TypeError for what has no such form."""
    if isinstance(value, Enum):
        return {_TAG: "enum", "class": _name(type(value)), "name": value.name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple | set | frozenset):
        return {_TAG: type(value).__name__, "items": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {_TAG: "dict", "items": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, bytes):
        return {_TAG: "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, PurePath):
        return {_TAG: "path", "path": str(value)}
    if is_dataclass(value) and not isinstance(value, type):
        items = {field.name: encode(getattr(value, field.name)) for field in fields(value) if field.init}
        return {_TAG: "dataclass", "class": _name(type(value)), "fields": items}
    raise TypeError(f"{type(value).__qualname__} cannot cross to or from an emulated host: {value!r}")


def decode(data: Any) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    match data[_TAG]:
        case "dict":
            return {decode(key): decode(item) for key, item in data["items"]}
        case "tuple" | "set" | "frozenset" as name:
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[name](map(decode, data["items"]))
        case "bytes":
            return base64.b64decode(data["base64"])
        case "path":
            return Path(data["path"])
        case "enum":
            return named(data["class"])[data["name"]]
        case "dataclass":
            return named(data["class"])(**{key: decode(item) for key, item in data["fields"].items()})
    raise ValueError(f"no such value: {data}")


def named(name: str) -> Any:
    """Return the object of a "module:name", which may be dotted; raises ImportError, AttributeError."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"
