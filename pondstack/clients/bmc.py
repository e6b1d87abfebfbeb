"""Out-of-band power: a host that sleeps is reached by its BMC, or by a packet that its network card waits for.

Each driver has the same small interface. Raises Unavailable when a BMC does not answer or refuses.
"""

import json
import os
import socket
import stat
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, Unavailable

SECONDS = 30.0


class Bmc(ABC):
    """How one host is reached out of band. `resets`: whether its power can be cycled."""

    resets = True

    @abstractmethod
    def wake(self) -> None:
        """Have the host run: it is switched on where it is off, and one that runs is left alone. Idempotent."""

    @abstractmethod
    def reset(self) -> None:
        """Cycle its power: what its memory had is lost."""


class Redfish(Bmc):
    """By sushy. Redfish has no call for a host in S3: such a host is reset, or its firmware wakes it on power-on."""

    def __init__(self, root: Callable[[], Any], system: str) -> None:
        """`root` returns a connected client of sushy; `system`: the path of the host in it."""
        self._root, self._system = root, system

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "Redfish":
        """Return that of an entry of the file; connects at the first call."""

        def root() -> Any:
            import sushy  # an extra: controllers without BMCs have no need of it

            auth = sushy.auth.BasicAuth(about.get("user", ""), about.get("password", "")) if about.get("user") else None
            return sushy.Sushy(about["url"], auth=auth, verify=about.get("verify", True))

        return cls(root, about["system"])

    def wake(self) -> None:
        """Switch the host on."""
        self._do(lambda system: None if _is_on(system) else "ON")

    def reset(self) -> None:
        """Cycle its power, by whatever its BMC allows."""
        self._do(lambda system: "FORCE_RESTART" if _is_on(system) else "ON")

    def _do(self, choose: Callable[[Any], str | None]) -> None:
        """Order what is chosen for the system, by the name that sushy has for it."""
        try:
            import sushy

            system = self._root().get_system(self._system)
            order = choose(system)
            if order is not None:
                system.reset_system(sushy.ResetType[order])
        except ImportError as error:
            raise Unavailable("sushy is not installed: install pondstack[redfish] for BMCs by Redfish") from error
        except Exception as error:  # those of sushy, requests and urllib3 have no common class of their own
            raise Unavailable(f"the BMC of {self._system} does not do it: {error}") from error


def _is_on(system: Any) -> bool:
    return str(system.power_state.value) == "On"


class Ipmi(Bmc):
    """By ipmitool; the password travels in its environment, where other users do not see it."""

    def __init__(self, address: str, user: str, password: str, program: str = "ipmitool") -> None:
        self._words = [program, "-I", "lanplus", "-H", address, "-U", user, "-E", "chassis", "power"]
        self._password = password

    def wake(self) -> None:
        """Switch the host on."""
        self._do("on")

    def reset(self) -> None:
        """Cycle its power."""
        self._do("reset")

    def _do(self, verb: str) -> None:
        words, environment = [*self._words, verb], {**os.environ, "IPMI_PASSWORD": self._password}
        try:
            done = subprocess.run(
                words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{words[0]} {verb} gets no answer: {error}") from error
        if done.returncode:
            raise Unavailable(f"{words[0]} {verb} fails: {done.stderr.strip()[-300:]}")


class WakeOnLan(Bmc):
    """By the packet of its network card's address; nobody answers it, and no power can be cycled by it."""

    resets = False

    def __init__(self, mac: str, broadcast: str = "255.255.255.255", port: int = 9) -> None:
        try:
            address = bytes.fromhex(mac.replace(":", "").replace("-", ""))
        except ValueError:
            address = b""
        if len(address) != 6:
            raise BadRequest(f"{mac!r} is no address of a network card, such as 52:54:00:12:34:56")
        self._packet, self._to = b"\xff" * 6 + address * 16, (broadcast, port)

    def wake(self) -> None:
        """Send the packet."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                link.sendto(self._packet, self._to)
        except OSError as error:
            raise Unavailable(f"no packet to {self._to[0]} leaves this controller: {error}") from error

    def reset(self) -> None:
        """Refuse."""
        raise Unavailable("wake-on-LAN cannot cycle a host's power")


_DRIVERS: Mapping[str, Callable[[Mapping[str, Any]], Bmc]] = {
    "redfish": Redfish.of,
    "ipmi": lambda about: Ipmi(about["address"], about["user"], about["password"]),
    "wol": lambda about: WakeOnLan(about["mac"], about.get("broadcast", "255.255.255.255"), about.get("port", 9)),
}


def load_bmcs(file: str) -> Mapping[str, Bmc]:
    """Return how hosts are reached, by name, of the file [sleep] bmc_file; {} of none. Raises BadRequest."""
    if not file:
        return {}
    path = Path(file)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadRequest(f"[sleep] bmc_file = {file} has passwords and is readable by others: chmod 600 it")
        return {host: _DRIVERS[about["driver"]](about) for host, about in json.loads(path.read_text()).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(
            f"[sleep] bmc_file = {file} is not as it should be ({error!r}); see `pondstack.conf`, [sleep] bmc_file"
        ) from error
