"""What others wrote to speak NBD: qemu-io, whose client is that of guests, and libnbd."""

import subprocess

from pondstack_rack.wait import wait_until

from ..processes import BLOCK, DEADLINE_SECONDS, BlockPlane
from .client import connect

MIB = 2**20


def option(plane: BlockPlane) -> str:
    """Return the device as QEMU is told of it, as libvirt does for a network disk with a reconnect delay."""
    return f"driver=nbd,server.type=unix,server.path={plane.socket},export={BLOCK},reconnect-delay=60"


def test_qemu_io(plane: BlockPlane) -> None:
    plane.export(8)
    commands = (
        "write -P 7 0 1M",
        "write -f -P 9 1000 3000",
        "read -P 9 1000 3000",
        "read -P 7 4000 100000",
        "discard 64k 64k",
        "read -P 0 64k 64k",
        "write -z 3 9999",
        "read -P 0 3 9999",
        "read -P 7 0 3",
        "aio_write -P 3 4M 2M",
        "aio_write -P 4 6M 2M",
        "aio_flush",
        "read -P 3 4M 2M",
        "read -P 4 6M 2M",
        "flush",
    )
    arguments = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(
        ["qemu-io", "--image-opts", option(plane), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout, done.stdout


def test_qemu_reconnects(plane: BlockPlane) -> None:
    """Killed between commands, and in the middle of one: its client waits, and says it again."""
    plane.export(8)
    link = subprocess.Popen(
        ["qemu-io", "--image-opts", option(plane)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert link.stdin
    print("write -P 1 0 8M", file=link.stdin, flush=True)
    assert wait_until(lambda: plane.device()["counters"]["written_bytes"] == 8 * MIB, DEADLINE_SECONDS)
    for turn in range(1, 4):
        plane.kill()
        plane.start(PONDSTACK_CRASH_AT=f"mirrored:{turn * 5}")
        print(f"write -P {turn + 1} 0 8M", file=link.stdin, flush=True)
        assert plane.await_end() == -9
    plane.start()
    out, _ = link.communicate("read -P 4 0 8M\nquit\n", timeout=DEADLINE_SECONDS)
    assert "Pattern verification failed" not in out, out
    assert out.count("read 8388608/8388608") == 1, out
    assert out.count("wrote 8388608/8388608") == 4, out
    with connect(plane.socket) as other:
        assert other.read(5 * MIB, 5) == bytes([4] * 5)


def test_libnbd(plane: BlockPlane) -> None:
    plane.export(8)
    command = ["nbdinfo", "--json", f"nbd+unix:///{BLOCK}?socket={plane.socket}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS)
    for expected in ('"export-size": 8388608', '"can_trim": true', '"can_multi_conn": true', f'"{BLOCK}"'):
        assert expected in done.stdout
