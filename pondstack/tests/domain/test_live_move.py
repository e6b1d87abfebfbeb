"""Which guests cannot be migrated live for where their memory is."""

import pytest

from pondstack.domain.backing import FILE, NODE, UNKNOWN
from pondstack.domain.live_move import FILE_STAYS, SWAP_STAYS, UNKNOWN_STAYS, may_stay, why_it_stays
from pondstack.domain.sizing import PondSpecs, given_specs

REMOTE, SWAP = PondSpecs(remote_mib=1024), PondSpecs(swap_mib=512)
BOTH = PondSpecs(remote_mib=1024, swap_mib=512)


@pytest.mark.parametrize(
    ("specs", "backings", "reason"),
    [
        (PondSpecs(), (), ""),
        (PondSpecs(), (FILE, UNKNOWN), ""),
        (REMOTE, (), ""),
        (REMOTE, (NODE,), ""),
        (REMOTE, (FILE,), FILE_STAYS),
        (REMOTE, (NODE, FILE), FILE_STAYS),
        (REMOTE, (UNKNOWN,), UNKNOWN_STAYS),
        (SWAP, (), SWAP_STAYS),
        (BOTH, (NODE,), SWAP_STAYS),
    ],
)
def test_who_stays(specs, backings, reason):
    assert why_it_stays(specs, backings) == reason
    assert may_stay(specs) or not reason


def test_a_flavor_whose_specs_are_wrong_is_all_local():
    assert given_specs({"pond:swap_mb": "512"}).swap_mib == 512
    assert given_specs({"pond:swap_mb": "some"}) == given_specs({}) == PondSpecs()
