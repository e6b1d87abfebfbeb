"""The host's end of the channel: runs commands, copies files, keeps processes and objects for the test.

Standard library only, on Debian's own Python: it works in a host whose pondstack is broken.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hardware.frames import Answer, Client, Frames, Header, RequestFailed, Server, StreamClosed, described

PORT = "pondstack"
PYTHON = "/opt/pondstack/bin/python"
OUTPUT = Path("/run/started")
END_SECONDS = 30.0
"""From the end of an object's socket to that of its process."""


class Runner:
    """What a test may ask for; each public method is one operation."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._objects: dict[int, Client] = {}
        self._lock = threading.Lock()

    def operations(self) -> dict[str, Callable[[Header, bytes], Answer]]:
        """Return the operations by name."""
        names = ("run", "start", "stdin", "signal", "wait", "put", "get", "make", "call")
        return {name: getattr(self, name) for name in names}

    def run(self, header: Header, blob: bytes) -> Answer:
        """Run a command to its end; past its timeout it is killed."""
        try:
            done = subprocess.run(
                header["argv"], input=blob, capture_output=True, timeout=header["timeout"], check=False, **_how(header)
            )
        except subprocess.TimeoutExpired as error:
            return {"timeout": True, "stdout": len(error.stdout or b"")}, (error.stdout or b"") + (error.stderr or b"")
        return {"returncode": done.returncode, "stdout": len(done.stdout)}, done.stdout + done.stderr

    def start(self, header: Header, _blob: bytes) -> Answer:
        """Start a command in a session of its own; its output goes to a file."""
        OUTPUT.mkdir(exist_ok=True)
        with self._lock:
            path = OUTPUT / f"{len(self._processes)}"
            with path.open("wb") as output:
                process = subprocess.Popen(
                    header["argv"],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    **_how(header),
                )
            self._processes[process.pid] = process
        return {"pid": process.pid, "output": str(path)}, b""

    def stdin(self, header: Header, blob: bytes) -> Answer:
        """Write to a started process's standard input; close it on request."""
        stream = self._processes[header["pid"]].stdin
        assert stream is not None
        if blob:
            stream.write(blob)
            stream.flush()
        if header["close"]:
            stream.close()
        return {}, b""

    def signal(self, header: Header, _blob: bytes) -> Answer:
        """Send a signal to a started process; False when it had ended."""
        process = self._processes[header["pid"]]
        alive = process.poll() is None
        process.send_signal(header["signal"])
        return {"alive": alive}, b""

    def wait(self, header: Header, _blob: bytes) -> Answer:
        """Wait for the end of a started process; no `returncode` when it still runs after the timeout."""
        try:
            return {"returncode": self._processes[header["pid"]].wait(header["timeout"])}, b""
        except subprocess.TimeoutExpired:
            return {}, b""

    def put(self, header: Header, blob: bytes) -> Answer:
        """Write a file."""
        path = Path(header["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blob)
        path.chmod(header["mode"])
        return {}, b""

    def get(self, header: Header, _blob: bytes) -> Answer:
        """Read a file, or a range of a device."""
        with open(header["path"], "rb") as file:
            file.seek(header["offset"])
            return {}, file.read(-1 if header["size"] is None else header["size"])

    def make(self, header: Header, blob: bytes) -> Answer:
        """Start a process with an object in it; `pid` is its handle. It ends at once when the factory fails."""
        ours, theirs = socket.socketpair()
        python = [PYTHON, "-m", "tests.hardware.guest.objects", str(theirs.fileno())]
        environment = {**os.environ, **header["env"], "PYTHONPATH": "/opt/code"}
        with theirs:
            process = subprocess.Popen(python, pass_fds=[theirs.fileno()], env=environment, start_new_session=True)
        client = Client(Frames(ours.detach()))
        with self._lock:
            self._processes[process.pid], self._objects[process.pid] = process, client
        try:
            client.request("make", blob, within=None, factory=header["factory"], kwargs=header["kwargs"])
        except BaseException:
            process.kill()
            process.wait()
            raise
        return {"pid": process.pid}, b""

    def call(self, header: Header, blob: bytes) -> Answer:
        """Pass a call on to the process of an object."""
        pid = header.pop("pid")
        try:
            answer, data = self._objects[pid].request("call", blob, within=None, **header)
        except StreamClosed as error:
            code = self._processes[pid].wait(END_SECONDS)
            raise StreamClosed(f"process {pid} ended with {code} before it answered {header['method']}") from error
        return {"result": answer["result"]}, data


def _how(header: Header) -> dict[str, Any]:
    return {"env": {**os.environ, **header["env"]}, "cwd": header["cwd"]}


def failed(error: Exception) -> Header:
    """Describe an error to the test; that of an object's process unchanged."""
    if isinstance(error, RequestFailed):
        return {key: value for key, value in error.header.items() if key != "id"}
    return described(error)


def port() -> Path:
    """Return the device of the channel; udev, which would name it, does not run here."""
    for name in Path("/sys/class/virtio-ports").glob("*/name"):
        if name.read_text().strip() == PORT:
            return Path("/dev") / name.parent.name
    sys.exit(f"no virtio port {PORT}")


def main() -> None:
    """Serve until the test closes the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = os.open(port(), os.O_RDWR)
    frames = Frames(descriptor)
    frames.send(
        {"hello": os.uname().nodename, "kernel": os.uname().release, "uptime": Path("/proc/uptime").read_text()}
    )
    Server(frames, Runner().operations(), failed).serve()


if __name__ == "__main__":
    main()
