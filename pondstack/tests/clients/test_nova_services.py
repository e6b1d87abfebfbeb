"""Compute services as Nova's API tells and takes them."""

from datetime import UTC, datetime

import pytest
from keystoneauth1 import adapter, session
from keystoneauth1.token_endpoint import Token

from pondstack.clients.nova import ComputeService, Nova, ServerGroup
from pondstack.domain.errors import NotFound, Unavailable

pytestmark = pytest.mark.unit

URL = "http://nova.test"
SERVICE = ComputeService("service-1", "h1", enabled=True, disabled_reason="", up=True, servers=("vm-1",))


@pytest.fixture
def nova():
    http = adapter.Adapter(session.Session(auth=Token(URL, "token")), endpoint_override=URL, raise_exc=False)
    return Nova(http, http)


def hypervisor(name, **more):
    service = {"id": "service-1", "host": name, "disabled_reason": None}
    return {"hypervisor_hostname": name, "status": "enabled", "state": "up", "service": service, **more}


def test_a_compute_service_is_that_of_the_very_hypervisor(nova, requests_mock):
    """Nova takes the name for a pattern."""
    found = [hypervisor("h10"), hypervisor("h1", servers=[{"uuid": "vm-1", "name": "a"}], hypervisor_type="QEMU")]
    asked = requests_mock.get(f"{URL}/os-hypervisors/detail", json={"hypervisors": found})
    service = nova.compute_service("h1")
    assert service == SERVICE
    assert service.hypervisor_type == "QEMU"
    assert asked.last_request.qs["with_servers"] == ["true"]


@pytest.mark.parametrize(
    ("answer", "expected"), [({"status_code": 404}, None), ({"json": {"hypervisors": [hypervisor("h10")]}}, None)]
)
def test_a_host_that_nova_does_not_know(nova, requests_mock, answer, expected):
    requests_mock.get(f"{URL}/os-hypervisors/detail", **answer)
    assert nova.compute_service("h1") is expected


@pytest.mark.parametrize(
    "answer", [{"status_code": 403}, {"status_code": 500}, {"json": {"hypervisors": [{"hypervisor_hostname": "h1"}]}}]
)
def test_what_is_no_answer(nova, requests_mock, answer):
    requests_mock.get(f"{URL}/os-hypervisors/detail", **answer)
    with pytest.raises(Unavailable):
        nova.compute_service("h1")


def test_a_service_is_disabled_with_its_reason_and_enabled(nova, requests_mock):
    asked = requests_mock.put(f"{URL}/os-services/service-1", json={})
    nova.disable(SERVICE, "lending memory")
    assert asked.last_request.json() == {"status": "disabled", "disabled_reason": "lending memory"}
    nova.enable(SERVICE)
    assert asked.last_request.json() == {"status": "enabled"}


@pytest.mark.parametrize(("status", "error"), [(404, NotFound), (403, Unavailable), (400, Unavailable)])
def test_a_change_that_nova_refuses(nova, requests_mock, status, error):
    requests_mock.put(f"{URL}/os-services/service-1", status_code=status)
    with pytest.raises(error):
        nova.disable(SERVICE, "lending memory")


def test_the_traits_that_a_flavor_wants_come_with_its_server(nova, requests_mock):
    """Unknown where Nova hides them, or where the flavor asks for more than one group of resources."""
    specs = [
        {"trait:B": "required", "trait:A": "forbidden", "trait:C": "other", "pond:policy": "auto"},
        {},
        None,
        {"resources1:VGPU": "1"},
        {"trait_NIC:X": "required"},
    ]
    servers = [
        {"id": f"vm-{number}", "status": "ACTIVE", "OS-EXT-SRV-ATTR:hypervisor_hostname": "h1", "flavor": {}}
        | ({"flavor": {"extra_specs": item}} if item is not None else {})
        for number, item in enumerate(specs)
    ]
    requests_mock.get(f"{URL}/servers/detail", [{"json": {"servers": servers}}, {"json": {"servers": []}}])
    assert [item.traits for item in nova.placed()] == [("!A", "B"), (), None, None, None]


def test_server_groups_are_those_of_all_projects_and_all_pages(nova, requests_mock):
    group = {"id": "g1", "policies": ["anti-affinity"], "members": ["vm-1", "vm-2"]}
    pages = [{"json": {"server_groups": [group]}}, {"json": {"server_groups": []}}]
    asked = requests_mock.get(f"{URL}/os-server-groups", pages)
    assert nova.server_groups() == [ServerGroup("g1", "anti-affinity", frozenset({"vm-1", "vm-2"}))]
    assert asked.last_request.qs["all_projects"] == ["true"]
    assert asked.last_request.qs["offset"] == ["1"]


FAULT = {
    "code": 500,
    "message": "No valid host was found. There are too few",
    "created": "2026-11-27T06:00:00Z",
}
SINCE = datetime(2026, 11, 27, 5, 50, tzinfo=UTC)


def unplaced(uuid, **changes):
    flavor = {"original_name": "m1", "vcpus": 2, "ram": 512, "disk": 5, "ephemeral": 1, "swap": 1500, "extra_specs": {}}
    return {"id": uuid, "tenant_id": "blue", "image": {"id": "i"}, "flavor": flavor, "fault": FAULT, **changes}


def answer_pages(requests_mock, *servers):
    return requests_mock.get(f"{URL}/servers/detail", [{"json": {"servers": list(servers)}}, {"json": {"servers": []}}])


def test_servers_that_found_no_host(nova, requests_mock):
    volume = unplaced("v2", image="")
    volume["flavor"] = volume["flavor"] | {"extra_specs": {"resources:VCPU": "0", "trait:CUSTOM_X": "required"}}
    asked = answer_pages(requests_mock, unplaced("v1"), volume)
    first, second = nova.unplaced(SINCE)
    assert (first.uuid, first.project_id, first.flavor_name, first.traits) == ("v1", "blue", "m1", ())
    assert first.claim == {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 8}
    assert (second.claim, second.traits) == ({"MEMORY_MB": 512, "DISK_GB": 3}, ("CUSTOM_X",))
    query = asked.request_history[0].qs
    assert (query["status"], query["changes-since"]) == (["error"], ["2026-11-27t05:50:00z"])


@pytest.mark.parametrize(
    "changes",
    [
        {"fault": FAULT | {"message": "Build of instance aborted"}},
        {"fault": FAULT | {"created": "2026-11-27T05:49:59Z"}},
        {"fault": None},
        {"OS-EXT-SRV-ATTR:hypervisor_hostname": "h1"},
        {"flavor": {}},
    ],
)
def test_what_failed_otherwise_or_before_is_none_of_them(nova, requests_mock, changes):
    answer_pages(requests_mock, unplaced("v1", **changes))
    assert nova.unplaced(SINCE) == []
