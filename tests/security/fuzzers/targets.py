"""All that `make security` attacks, beside the message bus (attacks.py)."""

from collections.abc import Callable

from tests.security.fuzzers.api_requests import ApiRequests
from tests.security.fuzzers.hostile_host import HostileHost
from tests.security.fuzzers.native_code import BlockDevices, NativeCode
from tests.security.fuzzers.sockets import Sockets
from tests.security.fuzzers.state_files import StateFiles
from tests.security.fuzzers.target import Target
from tests.security.fuzzers.traces import Traces
from tests.security.fuzzers.wire_values import WireValues

TARGETS: dict[str, Callable[[int], Target]] = {
    "api": ApiRequests,
    "state-files": StateFiles,
    "wire-values": WireValues,
    "hostile-host": HostileHost,
    "sockets": Sockets,
    "traces": Traces,
    "native-code": NativeCode,
    "block-devices": BlockDevices,
}


def attacked(name: str, seed: int, steps: int) -> Target:
    """Return a target after so many steps; it is closed."""
    target = TARGETS[name](seed)
    try:
        for _ in range(steps):
            target.step()
        target.finish()
    finally:
        target.close()
    return target
