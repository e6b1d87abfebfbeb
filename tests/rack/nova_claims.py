"""`python -m tests.rack.nova_claims CONFIG RETRIES HOST POOL CLASS ROUNDS`: writes claims as Nova does, by a nova.conf.

Claims an amount of a host and of a pool, and gives both back, again and again; RETRIES `none`: without those that the
file asks for. Prints how many writes Placement refused because of others.
"""

import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from nova import utils
from nova.conf import CONF

MIB = 1024
VERSION = "1.28"
"""With the generations of consumers, as Nova writes (placement's version history)."""
OWNER = {"project_id": "nova-claims", "user_id": "nova-claims"}


def main(config: str, retries: str, host: str, pool: str, resource_class: str, rounds: str) -> int:
    """Return the exit code."""
    CONF(["--config-file", config], project="nova", default_config_files=[])
    placement = utils.get_sdk_adapter("placement", admin=True)
    if retries == "none":
        placement.status_code_retries = 0
    refused = 0
    for _ in range(int(rounds)):
        consumer = f"/allocations/{uuid4()}"
        claim = {host: {"resources": {"MEMORY_MB": MIB}}, pool: {"resources": {resource_class: MIB}}}
        refused += not _write(placement, consumer, claim, None)
        held = placement.get(consumer, microversion=VERSION).json()
        if held["allocations"]:
            refused += not _write(placement, consumer, {}, held["consumer_generation"])
            placement.delete(consumer, microversion=VERSION)
    print(refused)
    return 0


def _write(placement: Any, consumer: str, allocations: Mapping[str, Any], generation: int | None) -> bool:
    """Say whether it was written; False: it met another write. Exits where it was refused for another reason."""
    body = {"allocations": allocations, "consumer_generation": generation, **OWNER}
    answer = placement.put(consumer, json=body, microversion=VERSION)
    if not answer.ok and "placement.concurrent_update" not in answer.text:
        sys.exit(f"Placement refuses {allocations}: {answer.text}")
    return bool(answer.ok)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
