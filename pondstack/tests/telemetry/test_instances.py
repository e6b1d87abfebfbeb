"""What notifications say of an instance, as Nova's own samples have it."""

import copy
from datetime import UTC, datetime

import pytest

from pondstack.telemetry.instances import facts_of
from pondstack.tests.telemetry.payload import PAYLOAD, UUID


def changed(**more):
    payload = copy.deepcopy(PAYLOAD)
    payload["nova_object.data"].update(more)
    return payload


def test_an_instance():
    facts = facts_of(PAYLOAD, "2012-10-29 13:42:20.100000")
    assert (facts.instance_uuid, facts.flavor_name, facts.memory_mib, facts.vcpus) == (UUID, "test_flavor", 512, 1)
    assert (facts.zone, facts.name, facts.image_os) == ("nova", "some-server", ""), "Glance knows the system better"
    assert facts.created_at == datetime(2012, 10, 29, 13, 42, 11, tzinfo=UTC)
    assert facts.changed_at == datetime(2012, 10, 29, 13, 42, 20, 100000, tzinfo=UTC)
    assert facts.deleted_at is None


def test_one_from_a_volume_says_its_system_itself():
    facts = facts_of(changed(image_uuid="", availability_zone=None), "2012-10-29 13:42:20")
    assert (facts.image_os, facts.image_uuid, facts.zone) == ("linux", "", "")


@pytest.mark.parametrize("field", ["deleted_at", "terminated_at"])
def test_one_that_ended(field):
    facts = facts_of(changed(**{field: "2012-10-29T14:00:00Z"}), "2012-10-29 14:00:05")
    assert facts.deleted_at == datetime(2012, 10, 29, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"nova_object.data": 1},
        changed(uuid="x"),
        changed(uuid=None),
        changed(created_at=None),
        changed(created_at="yesterday"),
        changed(flavor=None),
        changed(flavor={"nova_object.data": {"name": "f", "memory_mb": "much", "vcpus": 1}}),
    ],
)
def test_what_says_too_little(payload):
    assert facts_of(payload, "2012-10-29 13:42:20") is None


def test_a_notification_without_a_time():
    assert facts_of(PAYLOAD, "") is None
