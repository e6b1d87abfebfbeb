"""What the agent's records have to be: declared for each folder, and neither written nor believed otherwise."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import BadRequest, DeviceFailed
from pondstack.domain.purpose import Purpose
from pondstack.domain.shape import Fields, OneOf
from pondstack_agent import state_shapes
from pondstack_agent.borrower.records import Held
from pondstack_agent.drivers.cxl import allocations
from pondstack_agent.lending import records as lending
from pondstack_agent.mitigation import records as mitigation
from pondstack_agent.pool import operations, releases
from pondstack_agent.records import Records
from pondstack_agent.remote import records as remote
from pondstack_agent.state_check import check_state
from tests.security.fuzzers import state_samples
from tests.security.fuzzers.state_samples import ALLOCATION, CONSUMER, OPERATION, SAMPLES

SHAPES = state_shapes.SHAPES


def shape(folder: str) -> Fields:
    found = state_shapes.shape_of(folder, "")
    assert found
    assert isinstance(found.shape, Fields)
    return found.shape


def words(found: Fields, name: str) -> set[str]:
    one_of = {**found.required, **found.optional}[name]
    assert isinstance(one_of, OneOf)
    return set(one_of.words)


def test_each_folder_has_a_sample_and_each_sample_is_right(tmp_path: Path) -> None:
    assert set(SAMPLES) == set(SHAPES)
    state_samples.write(tmp_path)
    assert check_state(tmp_path) == sum(map(len, SAMPLES.values()))
    for folder, records in SAMPLES.items():
        assert Records(tmp_path / folder).all() == records


def test_each_folder_that_an_agent_opens_is_declared(rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: set[str] = set()
    init = Records.__init__

    def noted(self: Records, folder: Path) -> None:
        opened.add(folder.name)
        init(self, folder)

    monkeypatch.setattr(Records, "__init__", noted)
    rig.conf.set_override("transport", "tcp", group="lending")
    rig.restart()
    allocations.Allocations(tmp_path, lambda _step: None)
    assert opened | {"damon"} == set(SHAPES)


def test_the_words_are_those_of_the_classes() -> None:
    operation = shape("operations")
    assert words(operation, "kind") == set(operations.Kind)
    assert words(operation, "status") == set(operations.Status)
    assert words(shape("releases"), "state") == {releases.RELEASING, releases.RELEASED, releases.SETTLED}
    assert words(shape("lending"), "verb") == set(lending.Verb)
    assert words(shape("lending"), "state") == set(lending.State)
    assert words(shape("remote"), "state") == set(remote.State)
    assert words(shape("mitigations"), "state") == set(mitigation.State)
    assert words(shape("cxl"), "purpose") == set(Purpose)
    assert words(shape("cxl-states"), "state") == {
        allocations.ATTACHING,
        allocations.ONLINE,
        allocations.OFFLINING,
        allocations.OFFLINE_FAILED,
    }


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("operations", operations.Operation),
        ("lending", lending.Entry),
        ("mitigations", mitigation.Entry),
        ("remote", remote.Consumer),
        ("borrowing", Held),
    ],
)
def test_the_fields_are_those_of_the_classes(folder: str, kind: Any) -> None:
    found = shape(folder)
    assert {item.name for item in fields(kind)} == set(found.required) | set(found.optional)


def changed(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = json.loads(json.dumps(record))
    *above, last = path.split("/")
    place = made
    for part in above:
        place = place[int(part) if isinstance(place, list) else part]
    place[int(last) if isinstance(place, list) else last] = value
    return dict(made)


WRONG: list[tuple[str, str, Any]] = [
    ("attachments", "extents/0/count", 10**15),
    ("attachments", "extents/0/start", -1),
    ("attachments", "extents", []),
    ("attachments", "extents", [{"start": 0, "count": 2}, {"start": 1, "count": 1}]),
    ("attachments", "backings", []),
    ("attachments", "backings/0/offset_bytes", 0),
    ("attachments", "backings/0/path", "/etc/shadow"),
    ("attachments", "device_path", "/elsewhere"),
    ("attachments", "allocation_uuid", CONSUMER),
    ("attachments", "consumer_uuid", None),
    ("borrowing", "buffers/3/key/number", True),
    ("borrowing", "buffers/3/key/token", "zz"),
    ("borrowing", "released/2", -1),
    ("borrowing", "ticket", {}),
    ("borrowing", "lender", "host3"),
    ("cxl", "extents/0/count", 2**21),
    ("cxl", "slice_mib", 0),
    ("cxl-dirty", "indexes", [1, "2"]),
    ("cxl-states", "vacated", [0, 0]),
    ("cxl-states", "vacated/0", -1),
    ("damon", "pid", 0),
    ("lending", "mib", 2**40),
    ("lending", "at", float("nan")),
    ("marks", "seen", 2**63),
    ("mitigations", "pool_node", -2),
    ("operations", "grant/consumer_uuid", OPERATION),
    ("operations", "grant", None),
    ("operations", "error", ["os", "text"]),
    ("operations", "kind", "detach"),
    ("operations", "online_at", "3"),
    ("releases", "not_zero", {"4": 1}),
    ("remote", "consumer_uuid", "../../etc"),
    ("remote", "mirror", "mirror"),
    ("remote", "mirror", "/var/../etc/shadow"),
    ("revocations", "agent/host3", "now"),
    ("tiering", "path", "../../etc/cron.d/x"),
    ("tiering", "path", "sys/../etc/shadow"),
    ("tiering", "path", "etc/shadow"),
    ("tiering-order", "on", 1),
]


@pytest.mark.parametrize(("folder", "path", "value"), WRONG)
def test_what_no_agent_writes_is_refused_by_the_name_of_its_file(
    tmp_path: Path, folder: str, path: str, value: Any
) -> None:
    key, record = next(iter(SAMPLES[folder].items()))
    damaged = {**record, path: value} if path in record or folder == "revocations" else changed(record, path, value)
    records = Records(tmp_path / folder)
    with pytest.raises(BadRequest, match="cannot be put on record"):
        records.put(key, damaged)
    assert records.all() == {}
    records.path(key).write_text(json.dumps(damaged))
    reads: list[Callable[[], object]] = [records.all, lambda: records.get(key), lambda: check_state(tmp_path)]
    for read in reads:
        with pytest.raises(DeviceFailed, match=r"is damaged .*(move the file away|remove the file)") as raised:
            read()
        assert str(records.path(key)) in raised.value.message


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"on": NaN}', '{"on": 1e999}', "9" * 5000, "\x00", '{"on": "\\ud800"}']
)
def test_what_is_hardly_json_is_refused_as_well(tmp_path: Path, content: str) -> None:
    records = Records(tmp_path / "tiering-order")
    records.path("order").write_text(content)
    with pytest.raises(DeviceFailed, match=r"order\.json is damaged"):
        records.all()
    records.path("order").unlink()
    records.path("order").mkdir()
    with pytest.raises(DeviceFailed, match=r"order\.json is damaged"):
        records.all()


def test_a_record_in_the_file_of_another_is_not_believed(tmp_path: Path) -> None:
    records = Records(tmp_path / "cxl")
    records.put(ALLOCATION, SAMPLES["cxl"][ALLOCATION])
    records.path(ALLOCATION).rename(records.path(CONSUMER))
    with pytest.raises(DeviceFailed, match="in the file of another"):
        records.all()
    records.path(CONSUMER).rename(records.folder / f"%{ord(ALLOCATION[0]):x}{ALLOCATION[1:]}.json")
    with pytest.raises(DeviceFailed, match="its name"):
        records.all()


def test_a_record_of_a_former_release_lacks_newer_fields() -> None:
    """All that has a default may be missing: the agent before it wrote none."""
    former = {
        "lending": lending.Entry("op", "lend", 64, 1.0),
        "mitigations": mitigation.Entry("op", "vm", "op", 1, 1.0),
    }
    for folder, entry in former.items():
        found = shape(folder)
        record = {name: getattr(entry, name) for name in found.required}
        found.check(record)
