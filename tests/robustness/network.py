"""A network of its own for each controller, so that one can be cut off from broker, database and agents.

A controller runs in a network namespace and reaches this machine's loopback servers through a veth pair and nftables'
destination NAT. A cut is a rule: nftables in the namespace drops every packet in both directions, or those of some
servers, so that connections stay open and nothing arrives, as with a failed switch. The pool device is not a part of
that network, as in a rack.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

_numbers = itertools.count(1)


def missing() -> str:
    """Return what keeps this machine from cutting networks, "" when nothing does."""
    lacking = [name for name in ("ip", "nft", "sysctl") if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    return "" if os.geteuid() == 0 else "only root makes network namespaces"


class Network:
    """One controller's network. `server`: the address under which it reaches what listens on our loopback."""

    def __init__(self, name: str, number: int) -> None:
        self._space = f"{name}-{number}"
        self._outside, self._inside = f"pso{number}", f"psi{number}"
        self._table = f"pondstack_robustness_{number}"
        self._net = f"10.213.{number % 256}"

    @property
    def server(self) -> str:
        """Address of the servers."""
        return f"{self._net}.1"

    def launcher(self) -> list[str]:
        """Return what goes before the argv of a program that shall run in here."""
        return ["ip", "netns", "exec", self._space]

    def make(self) -> None:
        """Make the namespace, its link and its way to our loopback."""
        _run("ip", "netns", "add", self._space)
        _run("ip", "link", "add", self._outside, "type", "veth", "peer", "name", self._inside, "netns", self._space)
        _run("ip", "address", "add", f"{self.server}/30", "dev", self._outside)
        _run("ip", "link", "set", self._outside, "up")
        _run("sysctl", "-qw", f"net.ipv4.conf.{self._outside}.route_localnet=1")
        _run("ip", "-n", self._space, "address", "add", f"{self._net}.2/30", "dev", self._inside)
        for device in (self._inside, "lo"):
            _run("ip", "-n", self._space, "link", "set", device, "up")
        _run("nft", "add", "table", "ip", self._table)
        _run("nft", f"add chain ip {self._table} in {{ type nat hook prerouting priority dstnat; }}")
        _run("nft", f"add rule ip {self._table} in iifname {self._outside} ip daddr {self.server} dnat to 127.0.0.1")
        # The servers let in who comes from the loopback address only.
        _run("nft", f"add chain ip {self._table} from {{ type nat hook input priority 100; }}")
        _run("nft", f"add rule ip {self._table} from iifname {self._outside} ip daddr 127.0.0.1 snat to 127.0.0.1")

    def remove(self) -> None:
        """Remove all of it."""
        _run("nft", "delete", "table", "ip", self._table)
        _run("ip", "link", "delete", self._outside)
        _run("ip", "netns", "delete", self._space)

    def cut(self) -> None:
        """Drop every packet from now on."""
        self._add_table(
            f"add chain inet cut {hook} {{ type filter hook {hook} priority 0; policy drop; }}\n"
            for hook in ("input", "output")
        )

    def cut_ports(self, ports: Iterable[int]) -> None:
        """Drop every packet to and from these servers' ports from now on; all others pass."""
        cut = ", ".join(map(str, ports))
        self._add_table(
            f"add chain inet cut {hook} {{ type filter hook {hook} priority 0; policy accept; }}\n"
            f"add rule inet cut {hook} tcp {end} {{ {cut} }} drop\n"
            for hook, end in (("input", "sport"), ("output", "dport"))
        )

    def _add_table(self, chains: Iterable[str]) -> None:
        """Add the table that heal() deletes, at once."""
        _run(*self.launcher(), "nft", "-f", "-", text=f"add table inet cut\n{''.join(chains)}")

    def heal(self) -> None:
        """Let packets pass again."""
        _run(*self.launcher(), "nft", "delete", "table", "inet", "cut")


@contextmanager
def networks(names: tuple[str, ...]) -> Iterator[dict[str, Network]]:
    """Make a network for each name, gone at the end."""
    with ExitStack() as stack:
        made = {}
        for name in names:
            number = (os.getpid() * 4 + next(_numbers)) % 65536
            network = made[name] = Network(name, number)
            network.make()
            stack.callback(network.remove)
        yield made


def _run(*argv: str, text: str | None = None) -> None:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
