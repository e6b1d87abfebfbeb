"""Has a host take an allocation offline, and takes its answer for the release."""

from uuid import uuid4

import oslo_messaging

from pondstack.domain.errors import AgentUnavailable
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI


def take_offline(
    ledger: Ledger, agents: AgentAPI, host: str, allocation_uuid: str, report_sequence: int | None = None
) -> bool:
    """Return whether the host holds none of it; False: it goes on, and releases it then. Raises InUse, Unavailable.

    `report_sequence`: the host's report that this rests on; what came online later is kept.
    """
    try:
        gone = agents.offline(
            host,
            epoch=ledger.epoch,
            operation_id=str(uuid4()),
            allocation_uuid=allocation_uuid,
            report_sequence=report_sequence,
        )
    except oslo_messaging.MessagingException as error:
        raise AgentUnavailable(f"the agent of {host} does not answer ({type(error).__name__})") from error
    if gone:
        ledger.slices.release(str(uuid4()), allocation_uuid, host)
    return gone
