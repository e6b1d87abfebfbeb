"""A domain's XML with its NUMA cells bound to local memory; pure. Nothing but the tags of pool cells changes."""

import re
from collections.abc import Collection
from xml.parsers import expat

from pondstack.domain.errors import BadRequest
from pondstack_agent.host.numa import parse_list

PATH = ["domain", "numatune", "memnode"]
_TAG = re.compile(rb"<memnode\b[^>]*>")
_SET = re.compile(rb"""(\snodeset\s*=\s*)(["'])([^"']*)\2""")
_MODE = re.compile(rb"""(\smode\s*=\s*)(["'])[^"']*\2""")


def bind_local(xml: str, local_nodes: Collection[int]) -> str:
    """Return the XML with each cell that names another node than `local_nodes` bound strictly to all of these.

    The XML itself when there is none. Raises BadRequest when it cannot be read, ValueError without local nodes.
    """
    if not local_nodes:
        raise ValueError("there are no local nodes to bind to")
    data, done, end = xml.encode(), [], 0
    for start in _memnodes(data):
        tag = _TAG.match(data, start)
        if tag is None:
            raise BadRequest(f"the domain's XML has a <memnode> that cannot be read: {data[start : start + 80]!r}")
        done += [data[end:start], _bound(tag[0], local_nodes)]
        end = tag.end()
    return b"".join([*done, data[end:]]).decode()


def _bound(tag: bytes, local_nodes: Collection[int]) -> bytes:
    named = _SET.search(tag)
    if named is None or parse_list(named[3].decode()) <= set(local_nodes):
        return tag
    nodes = ",".join(map(str, sorted(local_nodes))).encode()
    return _MODE.sub(rb"\1\2strict\2", _SET.sub(rb"\g<1>\g<2>" + nodes + rb"\2", tag))


def _memnodes(data: bytes) -> list[int]:
    """Return where the cells' bindings begin; those that metadata may quote are none."""
    parser, path, found = expat.ParserCreate(), list[str](), list[int]()

    def begin(name: str, _attributes: object) -> None:
        path.append(name)
        if path == PATH:
            found.append(parser.CurrentByteIndex)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _name: path.pop()
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BadRequest(f"the domain's XML cannot be read: {error}") from None
    return found
