"""A processor's place in a QEMU without one (-accel qtest): the test reads and writes ports and memory itself."""

import socket
from pathlib import Path

ADDRESS_PORT, DATA_PORT = 0xCF8, 0xCFC
ANSWER_SECONDS = 60.0


class Qtest:
    """A connection to QEMU's qtest socket; every access is one line there and one line back."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rw", encoding="ascii")

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._socket.close()

    def run(self, *words: str | int) -> str:
        """Run a qtest command; returns its answer, raises RuntimeError with QEMU's text."""
        self._lines.write(" ".join(hex(word) if isinstance(word, int) else word for word in words) + "\n")
        self._lines.flush()
        while (answer := self._lines.readline()).startswith("IRQ"):
            pass
        if not answer.startswith("OK"):
            raise RuntimeError(f"{words}: {answer!r}")
        return answer[len("OK") :].strip()

    def read(self, address: int, size_bytes: int) -> bytes:
        """Read memory, or the registers of a device, in the widest steps that it has."""
        return bytes.fromhex(self.run("read", address, size_bytes).removeprefix("0x"))

    def number(self, address: int, width: str = "l") -> int:
        """Read one register: `width` b, w, l or q."""
        return int(self.run(f"read{width}", address), 16)

    def put(self, address: int, value: int, width: str = "l") -> None:
        """Write one register."""
        self.run(f"write{width}", address, value)

    def config(self, bus: int, slot: int, offset: int) -> int:
        """Read 32 bits of a PCI function's configuration space."""
        self.run("outl", ADDRESS_PORT, 1 << 31 | bus << 16 | slot << 11 | offset)
        return int(self.run("inl", DATA_PORT), 16)

    def configure(self, bus: int, slot: int, offset: int, value: int) -> None:
        """Write 32 bits of a PCI function's configuration space."""
        self.run("outl", ADDRESS_PORT, 1 << 31 | bus << 16 | slot << 11 | offset)
        self.run("outl", DATA_PORT, value)
