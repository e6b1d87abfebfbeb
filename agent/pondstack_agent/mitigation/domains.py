"""What libvirt keeps of guests, bound to local memory once their pages are: stored domains and managed save images.

A guest that runs keeps the domain that it was started with, whose binding QEMU used once; the virt driver binds what is
made of that later: the image of a later suspend when it is resumed, and the destination's domain of a live migration.
"""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, TypeVar

from oslo_log import log

from pondstack.domain.errors import HostUnusable, Unavailable
from pondstack.rpc.wire import DomainRewrite
from pondstack_agent.host.libvirt_bindings import bindings
from pondstack_agent.mitigation.domain_xml import bind_local

LOG = log.getLogger(__name__)

DEADLINE_SECONDS = 30.0
"""How long libvirt is waited for. A call that hangs is left where it is."""

REWRITTEN, ABSENT = "rewritten", "absent"
Answer = TypeVar("Answer")


class Domains:
    """Asks libvirt at `uri`. `local_nodes` are the host's; `step` is told before each change."""

    def __init__(
        self,
        uri: str,
        local_nodes: Callable[[], Collection[int]],
        step: Callable[[str], None] = lambda _name: None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._uri, self._local_nodes, self._step, self._deadline = uri, local_nodes, step, deadline_seconds

    def check(self) -> None:
        """Raise HostUnusable or Unavailable unless domains could be rewritten now."""
        self._bounded(lambda connection: connection.getLibVersion())

    def rewrite(self, consumer_uuid: str) -> DomainRewrite:
        """Bind a guest's stored domain, then its managed save, to local memory; idempotent.

        Raises HostUnusable, Unavailable: it may be half done, and is to be tried again.
        """
        nodes = self._local_nodes()
        return self._bounded(lambda connection: self._rewrite(connection, consumer_uuid, nodes))

    def _rewrite(self, connection: Any, consumer_uuid: str, nodes: Collection[int]) -> DomainRewrite:
        libvirt = bindings()
        try:
            domain = connection.lookupByUUIDString(consumer_uuid)
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return DomainRewrite(ABSENT)
            raise
        changed = False
        if domain.isPersistent():
            stored = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
            changed = self._put("domain", stored, nodes, connection.defineXML)
        saved = bool(domain.hasManagedSaveImage(0))
        if saved:
            image = domain.managedSaveGetXMLDesc(libvirt.VIR_DOMAIN_SAVE_IMAGE_XML_SECURE)
            changed |= self._put("managed save", image, nodes, domain.managedSaveDefineXML)
        if changed:
            LOG.info("What libvirt keeps of guest %s is bound to nodes %s", consumer_uuid, sorted(nodes))
        return DomainRewrite(REWRITTEN, managed_save=saved, changed=changed)

    def _put(self, what: str, xml: str, nodes: Collection[int], write: Callable[[str], Any]) -> bool:
        bound = bind_local(xml, nodes)
        if bound == xml:
            return False
        self._step(what)
        write(bound)
        return True

    def _bounded(self, ask: Callable[[Any], Answer]) -> Answer:
        pending: Future[Answer] = Future()
        # A daemon: an executor's thread would be waited for when the agent ends.
        threading.Thread(target=self._answer, args=(pending, ask), name="libvirt", daemon=True).start()
        try:
            return pending.result(timeout=self._deadline)
        except TimeoutError:
            raise Unavailable(f"libvirt at {self._uri} does not answer within {self._deadline:.0f} s") from None

    def _answer(self, pending: "Future[Answer]", ask: Callable[[Any], Answer]) -> None:
        try:
            pending.set_result(self._ask(ask))
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            pending.set_exception(error)

    def _ask(self, ask: Callable[[Any], Answer]) -> Answer:
        libvirt = bindings()
        if libvirt is None:
            raise HostUnusable(
                "Python's libvirt bindings are not installed on this host; install python3-libvirt, or the extra "
                "`balloon`, where pondstack-agent runs"
            )
        try:
            connection = libvirt.open(self._uri)
        except libvirt.libvirtError as error:
            raise Unavailable(f"libvirt cannot be reached at [agent] libvirt_uri = {self._uri}: {error}") from None
        try:
            return ask(connection)
        except libvirt.libvirtError as error:
            raise Unavailable(f"libvirt at {self._uri} does not do it: {error}") from None
        finally:
            connection.close()
