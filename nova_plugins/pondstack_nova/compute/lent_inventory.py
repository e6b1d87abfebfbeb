"""What a host lends is reserved in its provider: Nova places nothing there (pondstack.domain.admission). Pure.

Never less than it lends: while its agent does not say, it is what was said before, as Placement has it. A provider of
which Placement knows nothing yet has nothing to offer then.
"""

import copy
from collections.abc import Mapping
from enum import Enum
from typing import Any

from pondstack.domain.admission import LENT_CLASS, MEMORY_CLASS, NOBODY_SAYS, LentReport

Record = dict[str, Any]


class Unknown(Enum):
    """Why a host's agent does not say what the host lends."""

    SILENT = "it does not answer"
    NO_PART = "it takes no part in lending, or is of a release that did not"


def reserve(
    inventory: Mapping[str, Record], before: Mapping[str, Record], lent: LentReport | Unknown
) -> dict[str, Record]:
    """Return a host's inventory without what it lends; `before`: what Placement had."""
    found = copy.deepcopy(dict(inventory))
    found.pop(LENT_CLASS, None)
    if MEMORY_CLASS not in found:
        return found
    dram = found[MEMORY_CLASS]
    known = lent if isinstance(lent, LentReport) else _last_known(before, lent, dram["total"])
    if known.mib:
        dram["reserved"] = min(dram["reserved"] + known.mib, dram["total"])
        found[LENT_CLASS] = {
            "total": known.mib,
            "reserved": known.mib,
            "min_unit": 1,
            "max_unit": known.mark,
            "step_size": 1,
            "allocation_ratio": 1.0,
        }
    return found


def _last_known(before: Mapping[str, Record], why: Unknown, total_mib: int) -> LentReport:
    """Return what was said last; all of a provider that is new, or has been so since, while its agent is silent."""
    former = before.get(LENT_CLASS)
    if former and (former["max_unit"] != NOBODY_SAYS or why is Unknown.SILENT):
        return LentReport(former["total"], former["max_unit"])
    if why is Unknown.SILENT and MEMORY_CLASS not in before:
        return LentReport(total_mib, NOBODY_SAYS)
    return LentReport(0, 1)
