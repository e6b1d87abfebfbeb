"""What libvirt and Nova keep of a guest that does not run, bound to local memory if that is all it claims.

pondstack-agent does the same at a mitigation. But a guest that runs on after it keeps the domain that it was started
with, and a later suspend or rescue writes that down.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from nova import exception
from oslo_log import log as logging

from pondstack_nova.compute import znuma

LOG = logging.getLogger(__name__)

SECURE = 1
"""libvirt's VIR_DOMAIN_SAVE_IMAGE_XML_SECURE: passwords, too."""

IsLocal = Callable[[], bool]
"""Whether the guest claims local memory only; asked where something is pool memory. Raises PoolMemoryUnavailable."""


def bind(host: Any, instance: Any, local_nodes: Collection[int], is_local: IsLocal) -> None:
    """Bind a guest's stored domain and its managed save image, which a resume goes by; `host` is Nova's libvirt Host.

    Idempotent. Raises libvirtError, and what `is_local` raises: nothing has changed then.
    """
    try:
        guest = host.get_guest(instance)
    except exception.InstanceNotFound:
        return
    domain = guest._domain
    stored = guest.get_xml_desc(dump_inactive=True, dump_sensitive=True)
    if not znuma.pool_cells_mib(stored):
        return
    saved = ""
    if domain.hasManagedSaveImage(0):
        saved = domain.managedSaveGetXMLDesc(SECURE)
    wrong = [xml for xml in (stored, saved) if xml and znuma.uses_pool(xml, local_nodes)]
    if not wrong or not is_local():
        return
    LOG.info("It claims local memory only: what is stored of it is bound to it", instance=instance)
    if stored in wrong:
        host.write_instance_config(znuma.to_local(stored, local_nodes))
    if saved in wrong:
        domain.managedSaveDefineXML(znuma.to_local(saved, local_nodes))


def bind_file(path: Path, local_nodes: Collection[int], is_local: IsLocal) -> None:
    """Bind the domain in a file, which an unrescue goes by; none is no error. As `bind`."""
    if not path.exists():
        return
    xml = path.read_text()
    if znuma.uses_pool(xml, local_nodes) and is_local():
        path.write_text(znuma.to_local(xml, local_nodes))
