"""Rewriting what libvirt keeps of a guest, by oslo.privsep: who may do so to libvirt may do anything to the host.

What is written is made here, not by who asks.
"""

from typing import Any
from uuid import UUID

from pondstack.rpc.wire import DomainRewrite
from pondstack_agent.mitigation.domains import Domains
from pondstack_agent.mitigation.room import HostNodes
from pondstack_agent.privilege.context import Context

# libvirt lets root in by its user id.
context = Context("libvirt", __name__, [])

_uris = {"qemu:///system"}


def allow(uri: str) -> None:
    """Let the agent name this libvirt, which root has configured."""
    _uris.add(uri)


@context.entrypoint
def check(uri: str) -> None:
    """Raise HostUnusable or Unavailable unless domains could be rewritten now."""
    _domains(uri).check()


@context.entrypoint
def rewrite(uri: str, consumer_uuid: str) -> dict[str, Any]:
    """Bind a guest's stored domain and its managed save to local memory; raises HostUnusable, Unavailable."""
    return _domains(uri).rewrite(str(UUID(consumer_uuid))).to_wire()


def _domains(uri: str) -> Domains:
    if uri not in _uris:
        raise ValueError(f"{uri!r} is not this host's libvirt")
    return Domains(uri, HostNodes().with_cpus)


class PrivilegedDomains(Domains):
    """Domains that another process rewrites: this one is none that libvirt obeys."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, HostNodes().with_cpus)
        self._known_uri = uri

    def check(self) -> None:
        """As Domains."""
        check(self._known_uri)

    def rewrite(self, consumer_uuid: str) -> DomainRewrite:
        """As Domains."""
        return DomainRewrite.from_wire(rewrite(self._known_uri, consumer_uuid))
