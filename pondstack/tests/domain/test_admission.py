"""Admission of lent memory, as pure decisions."""

import pytest

from pondstack.domain.admission import HostMemory, Lend, Verdict, claims, consumers, judge, mark, told
from pondstack.domain.lending import LenderKind

LIFE = "22222222-2222-4222-8222-222222222222"
NAMES = mark([(LIFE, 0), (LIFE, 1)])


def memory(**values):
    return HostMemory(
        **{"total_mib": 1024, "reserved_mib": 512, "ratio": 1.0, "max_unit_mib": 1024, "used_mib": 0, **values}
    )


def reserved(**values):
    return memory(lent_mib=128, mark=NAMES, **values)


def test_a_mark_names_a_set_of_buffers() -> None:
    assert mark([(LIFE, 1), (LIFE, 0)]) == NAMES
    others = {mark([]), mark([(LIFE, 0)]), mark([(LIFE, 0), (LIFE, 2)]), mark([("other", 0), ("other", 1)])}
    assert len(others | {NAMES}) == 5
    assert all(1 <= number < 2**31 for number in others), "Placement takes no other number"


def test_exactly_what_is_lent_has_to_be_reserved() -> None:
    assert judge(reserved(), 128, NAMES) is Verdict.ADMITTED
    assert judge(memory(), 128, NAMES) is Verdict.NOT_RESERVED
    assert judge(reserved(), 192, NAMES) is Verdict.NOT_RESERVED
    assert judge(reserved(), 128, NAMES + 1) is Verdict.NOT_RESERVED, "so much was lent before, and other buffers"


@pytest.mark.parametrize(
    ("used_mib", "ratio", "verdict"),
    [
        (512, 1.0, Verdict.ADMITTED),
        (513, 1.0, Verdict.SOLD),
        (768, 1.5, Verdict.ADMITTED),
        (769, 1.5, Verdict.SOLD),
    ],
)
def test_guests_have_to_fit_beside_it(used_mib, ratio, verdict) -> None:
    assert judge(reserved(used_mib=used_mib, ratio=ratio), 128, NAMES) is verdict


def test_what_is_claimed_is_as_much_as_will_be_missing() -> None:
    first, second, *_ = consumers("h1")
    assert claims("h1", memory(), 512) == {first: 512}
    assert claims("h1", memory(ratio=1.5, max_unit_mib=500), 401) == {first: 500, second: 102}
    assert claims("h1", memory(), 0) == claims("h1", memory(), -64) == {}
    assert not set(consumers("h1")) & set(consumers("h2"))


def test_a_lend_tells_of_itself_as_an_agent_does() -> None:
    lend = Lend("h1", "op", 512, LenderKind.ACTIVE, reason="it waits")
    assert lend.progress(128) == {**told("op", 512, 128, "it waits"), "state": "pending"}
    assert told("op", 512, 512, "")["state"] == "done"
