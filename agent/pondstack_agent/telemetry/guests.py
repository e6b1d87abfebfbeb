"""What a guest's command line says of its memory: nodes, sizes, what backs them, and why a look cannot tell. Pure."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pondstack_agent.host.numa import parse_list
from pondstack_agent.qemu.wrapper import OWN_FILES

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TRUE = {"on", "yes", "true", "y", "1"}
_DEFAULT_MIB = 128
"""QEMU's, without -m."""

PREALLOCATED = "preallocated: the host gave all of it when the guest started"
LOCKED = "locked: mem-lock makes the host give all of it when the guest starts"
PINNED = "pinned: a device of the host is passed through, for which all of it is present"


@dataclass(frozen=True, slots=True)
class Node:
    """Memory of one NUMA node of a guest. `path`: the file behind it, '' for memory without a name.

    `unknowable`: why its touched pages cannot be told from outside, '' when they can.
    """

    number: int
    size_bytes: int
    shared: bool = False
    path: str = ""
    offset_bytes: int = 0
    host_nodes: frozenset[int] = frozenset()
    unknowable: str = ""
    is_file: bool = False
    """QEMU has it as a file, with a name or without."""


def nodes_of(words: Sequence[str]) -> tuple[Node, ...]:
    """Return the nodes of a QEMU, in order; () when the words are no QEMU's or say nothing of memory.

    Memory that is plugged in while the guest runs is on no command line and is not counted.
    """
    options = list(_options(words))
    objects = {item["id"]: item for item in map(_properties, _values(options, "object")) if "id" in item}
    backends = {key: item for key, item in objects.items() if str(item.get("qom-type")).startswith("memory-backend-")}
    whole = _whole_reason(options)
    numa = [_properties(f"kind={value}") for value in _values(options, "numa")]
    named = [(int(item["nodeid"]), item["memdev"]) for item in numa if "nodeid" in item and "memdev" in item]
    if not named:
        machine = [_properties(f"type={value}") for value in _values(options, "machine")]
        named = [(0, item["memory-backend"]) for item in machine if "memory-backend" in item]
    if named:
        found = [_node(number, backends[name], whole) for number, name in sorted(named) if name in backends]
        return tuple(found) if len(found) == len(named) and all(node.size_bytes for node in found) else ()
    if not any(name in {"machine", "M", "m", "accel", "enable-kvm"} for name, _ in options):
        return ()
    size = _memory_bytes(options)
    return (Node(0, size, unknowable=whole),) if size else ()


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, following in itertools.pairwise([*words, ""]):
        if word.startswith("-"):
            yield word.lstrip("-"), following


def _values(options: Sequence[tuple[str, str]], wanted: str) -> Iterator[str]:
    return (value for name, value in options if name == wanted)


def _properties(text: str) -> dict[str, Any]:
    """Return an option's value as QEMU reads it: JSON, or key=value pairs of which the first may lack its key."""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
    first, *others = text.split(",")
    pairs = [item.partition("=")[::2] for item in others]
    if "=" in first:
        pairs.insert(0, first.partition("=")[::2])
    else:
        pairs.insert(0, ("qom-type", first))
    return dict(pairs)


def _node(number: int, backend: Mapping[str, Any], whole: str) -> Node:
    kind = backend["qom-type"].removeprefix("memory-backend-")
    reason = PREALLOCATED if _true(backend.get("prealloc")) else whole
    return Node(
        number=number,
        size_bytes=_bytes(backend.get("size", 0)),
        shared=_true(backend.get("share", kind == "memfd")),
        path=_path(str(backend.get("mem-path", ""))) if kind == "file" else "",
        offset_bytes=_bytes(backend.get("offset", 0)),
        host_nodes=_host_nodes(backend.get("host-nodes")),
        unknowable=reason,
        is_file=kind == "file",
    )


def _path(path: str) -> str:
    """Return a file's name, '' for what the process got as an open descriptor: a memfd of pondstack-qemu's."""
    return "" if path.startswith(OWN_FILES) else path


def _whole_reason(options: Sequence[tuple[str, str]]) -> str:
    for name, value in options:
        if name == "mem-prealloc":
            return PREALLOCATED
        if name == "overcommit" and _true(_properties(f"kind=,{value}").get("mem-lock")):
            return LOCKED
        if name == "device" and str(_device(value)).startswith("vfio-"):
            return PINNED
    return ""


def _device(value: str) -> Any:
    found = _properties(value)
    return found.get("driver", found.get("qom-type", ""))


def _host_nodes(value: Any) -> frozenset[int]:
    if isinstance(value, list):
        return frozenset(int(item) for item in value)
    return frozenset(parse_list(str(value))) if value is not None else frozenset()


def _true(value: Any) -> bool:
    return value is True or str(value).lower() in _TRUE


def _bytes(value: Any, unit: str = "") -> int:
    """Return a size in bytes; `unit` is that of a bare number."""
    match = re.fullmatch(r"(\d+)([bkmgt]?)", str(value).lower())
    return int(match[1]) * _UNITS[match[2] or unit] if match else 0


def _memory_bytes(options: Sequence[tuple[str, str]]) -> int:
    """Return the size of a guest without memory backends: -m counts in MiB."""
    for value in _values(options, "m"):
        first = value.split(",")[0]
        return _bytes(first.removeprefix("size="), "m")
    return _DEFAULT_MIB * 2**20
