"""How an NBD client and a page store begin: what is served, and in which blocks."""

import socket
import struct
from dataclasses import dataclass

from pondstack_agent.pagestore import nbd
from pondstack_agent.pagestore.nbd import Info, Option, OptionReply, Serves
from pondstack_rdma.sealing import PAGE_BYTES

FLAGS = Serves.HAS_FLAGS | Serves.FLUSH | Serves.FUA | Serves.MULTI_CONN


@dataclass(frozen=True, slots=True)
class Export:
    """What is served: `size_bytes`, and at most `max_bytes` with one command."""

    size_bytes: int
    max_bytes: int


def receive(link: socket.socket, size: int) -> bytes:
    """Return `size` bytes; raises ConnectionResetError when the other side has gone."""
    data = bytearray(size)
    with memoryview(data) as view:
        got = 0
        while got < size:
            more = link.recv_into(view[got:])
            if not more:
                raise ConnectionResetError("it hung up")
            got += more
    return bytes(data)


def greet(link: socket.socket, export: Export) -> bool:
    """Settle the options with a client; False when it does not want to begin. Raises OSError, ValueError."""
    link.sendall(nbd.HELLO.pack(nbd.GREETING, nbd.OPTIONS, nbd.FIXED_NEWSTYLE | nbd.NO_ZEROES))
    (flags,) = nbd.CLIENT_FLAGS.unpack(receive(link, nbd.CLIENT_FLAGS.size))
    if flags & ~(nbd.FIXED_NEWSTYLE | nbd.NO_ZEROES):
        raise ValueError(f"the client wants what is not served: flags {flags:#x}")
    while True:
        magic, option, size = nbd.OPTION.unpack(receive(link, nbd.OPTION.size))
        if magic != nbd.OPTIONS or size > nbd.MAX_OPTION_BYTES:
            raise ValueError("this is no NBD client")
        data = receive(link, size)
        if option == Option.EXPORT_NAME:
            if data:
                return False  # the protocol has no other answer to an unknown name
            padding = b"" if flags & nbd.NO_ZEROES else bytes(nbd.PADDING_BYTES)
            link.sendall(nbd.EXPORT.pack(export.size_bytes, FLAGS) + padding)
            return True
        link.sendall(b"".join(answers(option, data, export)))
        if option == Option.ABORT:
            return False
        if option == Option.GO and nbd.parse_name(data) == b"":
            return True


def answers(option: int, data: bytes, export: Export) -> list[bytes]:
    """Return the answers to an option. Pure. The only export is the one without a name."""
    if option == Option.ABORT:
        return [nbd.answer_option(option, OptionReply.ACK)]
    if option not in (Option.INFO, Option.GO):
        return [nbd.answer_option(option, OptionReply.UNSUPPORTED)]
    name = nbd.parse_name(data)
    if name is None:
        return [nbd.answer_option(option, OptionReply.INVALID)]
    if name:
        return [nbd.answer_option(option, OptionReply.UNKNOWN)]
    about = struct.pack(">HQH", Info.EXPORT, export.size_bytes, FLAGS)
    blocks = struct.pack(">HIII", Info.BLOCK_SIZE, PAGE_BYTES, PAGE_BYTES, export.max_bytes)
    return [
        nbd.answer_option(option, OptionReply.INFO, about),
        nbd.answer_option(option, OptionReply.INFO, blocks),
        nbd.answer_option(option, OptionReply.ACK),
    ]
