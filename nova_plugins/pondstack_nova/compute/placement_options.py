"""What Nova's own options for Placement have to be where hosts claim of one pool, and so of one resource provider."""

from typing import Any

from nova.conf import CONF
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

CONFLICT = 409


def wrong(placement: Any) -> str:
    """Return what of [placement] has Nova lose a claim that met another one, "": nothing.

    Placement may refuse either of two claims that meet at a pool; Nova sends that of a live migration that has ended
    once, unless its session sends it again.
    """
    codes = {str(code) for code in placement.retriable_status_codes or ()}
    if str(CONFLICT) not in codes:
        return f"retriable_status_codes lacks {CONFLICT}"
    return "" if (placement.status_code_retries or 0) > 0 else "status_code_retries is 0"


def warn() -> None:
    """Log what is wrong, once for a start of nova-compute."""
    found = wrong(CONF.placement)
    if found:
        LOG.warning(
            "[placement] %s: where claims of a pool's hosts meet, servers may end in ERROR after a live migration, and "
            "their claims be left; set retriable_status_codes = 409,503 and status_code_retries = 5 in nova.conf.",
            found,
        )
