"""What has to hold of a guest with remote memory after its live migration, done or not, whoever died. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS

MEMORY_CLASS = "MEMORY_MB"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of the guest, in MiB, and what it borrows in buffers."""

    local_mib: int
    mirror_mib: int
    remote_mib: int
    buffers: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as all parts have it.

    `claims`: {provider: {class: MiB or count}}. By host, where it is known at all: `domains`: libvirt's state of it;
    `planes`: the data plane's, and its hand-over's, "" for none; `agents`: the consumer's. `buffers`: all that is lent.
    """

    status: str
    task: str
    host: str
    claims: Mapping[str, Mapping[str, int]]
    domains: Mapping[str, str]
    planes: Mapping[str, tuple[str, str]]
    agents: Mapping[str, str]
    buffers: tuple[str, ...]


def broken(seen: Seen, provider: str, sizes: Sizes) -> list[str]:
    """Return what is wrong, as text; nothing when all parts agree. `provider`: that of its host by Nova."""
    found = [f"the server is {seen.status} {seen.task}".rstrip()] * ((seen.status, seen.task) != ("ACTIVE", ""))
    if dict(seen.domains) != {seen.host: "running"}:
        found.append(f"Nova has it on {seen.host}, libvirt: {dict(seen.domains)}")
    if dict(seen.planes) != {seen.host: ("serving", "")}:
        found.append(f"Nova has it on {seen.host}, data planes: {dict(seen.planes)}")
    if dict(seen.agents) != {seen.host: "active"}:
        found.append(f"Nova has it on {seen.host}, agents: {dict(seen.agents)}")
    states = Counter(seen.buffers)
    if states["online"] != sizes.buffers or set(states) - {"online", "free"}:
        found.append(f"it has {sizes.buffers} buffers, the ledger has {dict(states)}")
    return found + _claims(seen, provider, sizes)


def _claims(seen: Seen, provider: str, sizes: Sizes) -> list[str]:
    wanted = {MEMORY_CLASS: sizes.local_mib, MIRROR_CLASS: sizes.mirror_mib}
    wrong = [
        f"Placement has {name} of it as {found}, not {mib} MiB on its host alone"
        for name, mib in wanted.items()
        if (found := _amounts(seen.claims, name)) != {provider: mib}
    ]
    remote = sum(_amounts(seen.claims, REMOTE_CLASS).values())
    return wrong + [f"Placement has {remote} MiB of {REMOTE_CLASS}"] * (remote != sizes.remote_mib)


def _amounts(claims: Mapping[str, Mapping[str, int]], resource_class: str) -> dict[str, int]:
    return {uuid: item[resource_class] for uuid, item in claims.items() if item.get(resource_class)}
