"""Pages over NBD: what clients read, write and flush, and what is refused; a client that is not ours agrees."""

import shutil
import socket
import struct
import subprocess
import threading
from contextlib import suppress

import pytest

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack_agent.helper.unix_socket import connect
from pondstack_agent.pagestore import nbd
from pondstack_agent.pagestore.exporter import SOCKET
from pondstack_agent.pagestore.handshake import Export, answers
from pondstack_agent.pagestore.nbd import Option, OptionReply
from pondstack_rdma.errors import MirrorBusy, PageLost

from .conftest import PAGE, SECONDS, content

EXPORT = Export(2**21, 2**20)


def test_pages_are_zeros_then_what_was_written(bench) -> None:
    bench.arrive("lender1", 0)
    with bench.reader() as one, bench.reader() as other:
        assert one.pages == 512
        assert one.read(7) == bytes(PAGE)
        one.write(7, content(7, 1) + content(8, 1))
        assert other.read(6, 4) == bytes(PAGE) + content(7, 1) + content(8, 1) + bytes(PAGE)
    assert bench.store.view()["pages"] == {"total": 512, "remote": 2, "moving": 0, "mirror_only": 0, "room": 254}


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_flushed_is_found_by_the_next_process(bench, durable) -> None:
    with bench.reader() as reader:
        reader.write(511, content(511, 1), durable=durable)
        if not durable:
            reader.flush()
    assert bench.store.pages.mirror.queued == 0
    bench.exporter.close()
    bench.store.close(SECONDS)
    bench.open()
    with bench.reader() as reader:
        assert reader.read(511) == content(511, 1)


@pytest.mark.parametrize("durable", [True, False])
def test_nothing_is_told_to_be_durable_before_the_mirror_has_it(bench, monkeypatch, durable) -> None:
    """A write that is to be durable, or the flush after another one, fails as long as the disk does not take it."""
    disk, goes_on = bench.store._disk, threading.Event()
    sync = disk.sync
    monkeypatch.setattr(disk, "sync", lambda: (goes_on.wait(SECONDS), sync()))
    monkeypatch.setattr(bench.exporter, "_flush_seconds", 0.1)
    with bench.reader() as reader:
        if not durable:
            reader.write(511, content(511, 1))
        with pytest.raises(MirrorBusy):
            reader.write(511, content(511, 1), durable=True) if durable else reader.flush()
        assert bench.store.pages.mirror.queued == 1
        goes_on.set()
        monkeypatch.setattr(bench.exporter, "_flush_seconds", SECONDS)
        reader.flush()
    assert bench.store.pages.mirror.queued == 0


@pytest.mark.parametrize(("page", "count"), [(512, 1), (511, 2), (0, 0), (0, 1025), (2**51, 1)])
def test_what_is_no_page_is_refused_and_the_connection_lives(bench, page, count) -> None:
    with bench.reader() as reader:
        with pytest.raises(BadRequest):
            reader.read(page, count)
        assert reader.read(0) == bytes(PAGE)


def test_parts_of_pages_are_refused(bench) -> None:
    with bench.reader() as reader:
        with pytest.raises(BadRequest):
            reader.write(0, b"x" * 512)
        assert reader.read(0) == bytes(PAGE)


def test_a_write_that_is_too_long_ends_the_connection(bench) -> None:
    with bench.reader() as reader, pytest.raises(Unavailable, match="gone"):
        reader.write(0, bytes(1025 * PAGE))


def test_a_full_mirror_is_told_and_what_was_there_stays(bench, monkeypatch) -> None:
    def full(*_arguments):
        raise MirrorBusy("slow")

    with bench.reader() as reader:
        reader.write(0, content(0, 1))
        monkeypatch.setattr(bench.store.pages.mirror, "put", full)
        with pytest.raises(MirrorBusy):
            reader.write(0, content(0, 2))
        assert reader.read(0) == content(0, 1)


def test_a_page_that_nobody_has_is_told(bench, monkeypatch) -> None:
    def lost(*_arguments):
        raise PageLost("gone")

    with bench.reader() as reader:
        reader.write(0, content(0, 1))
        monkeypatch.setattr(bench.store.pages.mirror, "get", lost)
        with pytest.raises(PageLost):
            reader.read(0)


@pytest.mark.parametrize("nonsense", [b"", b"GET / HTTP/1.0\r\n\r\n" * 4, bytes(64), b"\xff" * 64])
def test_nonsense_is_hung_up_on(bench, nonsense) -> None:
    with connect(bench.folder, SOCKET, 10.0) as link:
        link.sendall(nonsense)
        link.shutdown(socket.SHUT_WR)
        got = bytearray()
        with suppress(ConnectionResetError):  # it did not read all of it
            while more := link.recv(4096):
                got += more
        assert len(got) <= nbd.HELLO.size
    with bench.reader() as reader:
        assert reader.read(0) == bytes(PAGE)


@pytest.mark.parametrize(
    ("option", "data", "kinds"),
    [
        (Option.GO, nbd.pack_name(b""), [OptionReply.INFO, OptionReply.INFO, OptionReply.ACK]),
        (Option.INFO, nbd.pack_name(b"")[:-2] + struct.pack(">HH", 1, 3), [3, 3, 1]),
        (Option.GO, nbd.pack_name(b"other"), [OptionReply.UNKNOWN]),
        (Option.GO, b"\0\0", [OptionReply.INVALID]),
        (Option.GO, b"\xff" * 10, [OptionReply.INVALID]),
        (Option.ABORT, b"", [OptionReply.ACK]),
        (8, b"", [OptionReply.UNSUPPORTED]),
    ],
)
def test_options(option, data, kinds) -> None:
    assert [nbd.OPTION_ANSWER.unpack_from(each)[2] for each in answers(option, data, EXPORT)] == kinds


@pytest.mark.skipif(not shutil.which("qemu-io"), reason="needs qemu-io, of the Debian package qemu-utils")
def test_qemu_reads_and_writes(bench) -> None:
    """A client that is not ours understands the export, and it the client."""
    bench.arrive("lender1", 0)
    words = ["write -P 0x5a 8k 64k", "flush", "read -P 0x5a 8k 64k", "write -f -P 0xa5 2044k 4k", "read -P 0 0 8k"]
    commands = [word for each in words for word in ("-c", each)]
    done = subprocess.run(
        ["qemu-io", "-f", "raw", *commands, f"nbd+unix:///?socket={bench.folder / SOCKET}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Pattern verification failed" in done.stdout) == (0, False), done
    with bench.reader() as reader:
        assert reader.read(2, 16) == b"\x5a" * 65536
        assert reader.read(511) == b"\xa5" * PAGE
