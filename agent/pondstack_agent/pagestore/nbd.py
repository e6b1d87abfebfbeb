"""What NBD says on the wire, as far as a page store speaks it (the protocol's own document, "fixed newstyle"). Pure."""

import errno
import struct
from enum import IntEnum, IntFlag

GREETING = b"NBDMAGIC"
OPTIONS = b"IHAVEOPT"
OPTION_REPLY = 0x0003E889045565A9
REQUEST = 0x25609513
REPLY = 0x67446698

HELLO = struct.Struct(">8s8sH")
CLIENT_FLAGS = struct.Struct(">I")
OPTION = struct.Struct(">8sII")
OPTION_ANSWER = struct.Struct(">QIII")
EXPORT = struct.Struct(">QH")
COMMAND = struct.Struct(">IHHQQI")
ANSWER = struct.Struct(">IIQ")

FIXED_NEWSTYLE, NO_ZEROES = 1, 2
"""Of the handshake, by both sides."""
PADDING_BYTES = 124
MAX_OPTION_BYTES = 64 * 1024


class Option(IntEnum):
    """What a client may ask for before it begins."""

    EXPORT_NAME = 1
    ABORT = 2
    INFO = 6
    GO = 7


class OptionReply(IntEnum):
    """What it hears."""

    ACK = 1
    INFO = 3
    UNSUPPORTED = 2**31 + 1
    INVALID = 2**31 + 3
    UNKNOWN = 2**31 + 6


class Info(IntEnum):
    """Kinds of information of an export."""

    EXPORT = 0
    BLOCK_SIZE = 3


class Serves(IntFlag):
    """What an export can do."""

    HAS_FLAGS = 1
    FLUSH = 4
    FUA = 8
    MULTI_CONN = 256
    """A flush over one connection is one of what came over all."""


class Verb(IntEnum):
    """Commands."""

    READ = 0
    WRITE = 1
    DISCONNECT = 2
    FLUSH = 3


FUA = 1
"""Flag of a write: answer only once it is durable."""

GOOD = 0
FAILED = errno.EIO
INVALID = errno.EINVAL
NO_ROOM = errno.ENOSPC


def parse_name(data: bytes) -> bytes | None:
    """Return the export's name of an INFO or a GO; None when it is none."""
    if len(data) < 6:
        return None
    size = int.from_bytes(data[:4], "big")
    wanted = int.from_bytes(data[4 + size : 6 + size], "big")
    return data[4 : 4 + size] if len(data) == 6 + size + 2 * wanted else None


def pack_name(name: bytes) -> bytes:
    """Return what a GO carries."""
    return len(name).to_bytes(4, "big") + name + b"\0\0"


def answer_option(option: int, kind: OptionReply, data: bytes = b"") -> bytes:
    """Return the answer to an option."""
    return OPTION_ANSWER.pack(OPTION_REPLY, option, kind, len(data)) + data


def answer(error: int, cookie: int, data: bytes = b"") -> bytes:
    """Return the answer to a command."""
    return ANSWER.pack(REPLY, error, cookie) + data
