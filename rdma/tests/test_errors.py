"""The errors of a transport: one tree, codes of their own, each in the documentation."""

import re
from pathlib import Path

import pytest

from pondstack.domain.errors import PondError
from pondstack_rdma import errors, wire_errors
from pondstack_rdma.errors import KeyRevoked, OutOfBounds, TransportGone

DOC = Path(__file__).resolve().parents[2] / "doc" / "source"
OURS = {
    value.code: value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, PondError) and value.__module__ == errors.__name__
}


def test_every_error_is_documented_and_no_other() -> None:
    rows = re.findall(r"^\| `(pondstack\.\w+)` \| .+ \| .+ \|$", (DOC / "admin" / "rdma.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(OURS)


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn = dict(re.findall(r"^[│├└─ ]+(\w+) +(pondstack\.\w+)$", errors.__doc__ or "", re.MULTILINE))
    assert drawn == {kind.__name__: code for code, kind in OURS.items()}


def test_no_code_is_one_of_the_domain() -> None:
    text = (DOC / "reference" / "errors.md").read_text()
    assert not [code for code in OURS if f"`{code}`" in text]


@pytest.mark.parametrize("kind", OURS.values(), ids=lambda kind: kind.__name__)
def test_every_error_is_made_of_one_text(kind: type[PondError]) -> None:
    assert kind("why").message == "why"


@pytest.mark.parametrize("kind", [KeyRevoked, OutOfBounds, TransportGone])
def test_a_refusal_crosses_the_wire(kind: type[PondError]) -> None:
    back = wire_errors.from_wire(wire_errors.to_wire(kind("why")))
    assert type(back) is kind
    assert back.message == "why"


@pytest.mark.parametrize("data", [None, "x", {}, {"code": "pondstack.later"}, {"code": ["x"]}, {"text": "why"}])
def test_a_refusal_of_a_later_version_is_gone(data: object) -> None:
    assert type(wire_errors.from_wire(data)) is TransportGone
