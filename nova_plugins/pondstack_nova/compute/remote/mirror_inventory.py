"""A host's room for mirrors of guests with remote memory, as its inventory in Placement. Pure.

A guest's mirror has the whole node of which a part is remote, so that lenders may fail. A host without a data plane has
no room for any, and so gets no such guest.
"""

import copy
from collections.abc import Mapping
from typing import Any

from pondstack.domain.remote_share import MIRROR_CLASS

Record = dict[str, Any]


def offer(inventory: Mapping[str, Record], before: Mapping[str, Record], room_mib: int | None) -> dict[str, Record]:
    """Return a host's inventory with its room for mirrors; `before`: what Placement had; None: nobody says.

    Placement refuses to lose a class that guests still claim, and with it the whole inventory. So what was once offered
    stays there, and is all reserved once there is no room any more.
    """
    found = copy.deepcopy(dict(inventory))
    found.pop(MIRROR_CLASS, None)
    former = before.get(MIRROR_CLASS)
    if room_mib:
        found[MIRROR_CLASS] = _record(room_mib)
    elif former is not None:
        found[MIRROR_CLASS] = {**former, "reserved": former["reserved" if room_mib is None else "total"]}
    return found


def _record(room_mib: int) -> Record:
    return {
        "total": room_mib,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": room_mib,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
