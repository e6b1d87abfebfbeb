"""A persistent Python process in a host: one object, whose methods the test calls. Started by the runner.

Argument: the descriptor of a socket to the runner. The first request makes the object.
"""

import sys
from typing import Any

from tests.hardware import values
from tests.hardware.frames import Answer, Frames, Header, Server, described


class Objects:
    """The object of this process."""

    def __init__(self) -> None:
        self._object: Any = None

    def make(self, header: Header, _blob: bytes) -> Answer:
        """Call the factory "module:name" with keyword arguments."""
        self._object = values.named(header["factory"])(**values.decode(header["kwargs"]))
        return {}, b""

    def call(self, header: Header, _blob: bytes) -> Answer:
        """Call a method, or read a plain attribute."""
        found = getattr(self._object, header["method"])
        result = found(*values.decode(header["args"]), **values.decode(header["kwargs"])) if callable(found) else found
        return {"result": values.encode(result)}, b""


def main() -> None:
    """Serve until the runner closes the socket."""
    objects = Objects()
    Server(Frames(int(sys.argv[1])), {"make": objects.make, "call": objects.call}, described).serve()


if __name__ == "__main__":
    main()
