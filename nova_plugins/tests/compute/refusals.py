"""What the owner of an instance may read of a failure, and what only the operator may."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pondstack_nova.compute.agent_client import PoolMemoryUnavailable


@contextmanager
def refused(details: str, error: type[Exception] = PoolMemoryUnavailable) -> Iterator[None]:
    """Expect an error whose details for the operator match, and whose text before the code names no host or program."""
    with pytest.raises(error) as raised:
        yield
    refusal = raised.value if isinstance(raised.value, PoolMemoryUnavailable) else raised.value.__cause__
    assert isinstance(refusal, PoolMemoryUnavailable)
    assert re.search(details, refusal.details)
    told = re.sub(r" \(pondstack\.\w+\)$", "", str(raised.value))
    assert not re.search(r"\bh[12]\b|pool-?[a-z0]\b|pondstack|openstack |slice", told), told
