"""The clients of Nova and Glance against answers of theirs."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg

from pondstack.clients.nova import Nova, ServerState
from pondstack.conf import nova as options
from pondstack.conf import placement
from pondstack.domain.errors import Conflict, NotFound, Unavailable

URL, IMAGES = "http://nova", "http://glance"
SERVER = {
    "id": "0635cccd-1e78-5473-b66a-bacffc433357",
    "tenant_id": "blue",
    "name": "web-1",
    "status": "ACTIVE",
    "created": "2026-11-25T01:00:00Z",
    "updated": "2026-11-25T02:00:00Z",
    "flavor": {"original_name": "m1", "ram": 4096, "vcpus": 2, "extra_specs": {}},
    "image": {"id": "155d900f-4e14-4e4c-a73d-069cbf4541e6"},
    "OS-EXT-AZ:availability_zone": "az1",
    "OS-SRV-USG:terminated_at": None,
}


def moment(hour):
    return datetime(2026, 11, 25, hour, tzinfo=UTC)


@pytest.fixture
def nova():
    def service(url):
        return adapter.Adapter(session.Session(auth=token_endpoint.Token(url, "t")), endpoint_override=url)

    return Nova(service(URL), service(IMAGES), lambda: moment(3))


def test_all_pages_are_read(nova, requests_mock):
    pages = [[SERVER], [{**SERVER, "id": "second", "image": "", "OS-EXT-AZ:availability_zone": ""}], []]
    requests_mock.get(f"{URL}/servers/detail", [{"json": {"servers": page}} for page in pages])
    first, second = nova.instances()
    assert (first[0].flavor_name, first[0].memory_mib, first[0].vcpus, first[0].zone) == ("m1", 4096, 2, "az1")
    assert (first[0].created_at, first[0].changed_at, first[0].deleted_at) == (moment(1), moment(2), None)
    assert (second[0].image_uuid, second[0].zone) == ("", "")
    asked = [request.qs for request in requests_mock.request_history]
    assert [item.get("marker") for item in asked] == [None, [SERVER["id"]], ["second"]]
    assert all(item["all_tenants"] == ["true"] for item in asked)


def test_what_changed_comes_with_its_end(nova, requests_mock):
    known = {**SERVER, "status": "DELETED", "OS-SRV-USG:terminated_at": "2026-11-25T03:00:00.000000"}
    never_started = {**SERVER, "status": "DELETED"}
    hidden = {"id": "x", "status": "UNKNOWN", "created": "2026-11-25T01:00:00Z", "tenant_id": "blue"}
    pages = [[known, never_started, hidden], []]
    requests_mock.get(f"{URL}/servers/detail", [{"json": {"servers": page}} for page in pages])
    found = next(nova.instances(datetime(2026, 11, 25, 6, tzinfo=timezone(timedelta(hours=5)))))
    assert [item.deleted_at for item in found] == [moment(3), moment(2)]
    assert requests_mock.request_history[0].qs["changes-since"] == ["2026-11-25t01:00:00z"]


@pytest.mark.parametrize(
    ("answer", "system"),
    [
        ({"json": {"os_distro": "Ubuntu", "os_type": "linux"}}, "ubuntu"),
        ({"json": {"os_type": "windows"}}, "windows"),
        ({"json": {"os_distro": ""}}, ""),
        ({"status_code": 404}, ""),
    ],
)
def test_the_system_of_an_image(nova, requests_mock, answer, system):
    requests_mock.get(f"{IMAGES}/v2/images/i", **answer)
    assert nova.image_os("i") == system


@pytest.mark.parametrize(
    "answer", [{"status_code": 403, "text": "no"}, {"text": "<html>"}, {"json": {}}, {"json": []}, {"status_code": 500}]
)
def test_what_is_no_answer(nova, requests_mock, answer):
    requests_mock.get(f"{URL}/servers/detail", **answer)
    with pytest.raises(Unavailable, match="/servers/detail"):
        next(nova.instances())


def test_without_a_catalogue_there_is_no_nova():
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    placement.register_opts(conf)
    options.register_opts(conf)
    conf.set_override("auth_type", "none", placement.GROUP)
    with pytest.raises(Unavailable, match="look at"):
        next(Nova.from_conf(conf).instances())


STATE = {
    "status": "ACTIVE",
    "OS-EXT-STS:task_state": None,
    "OS-EXT-SRV-ATTR:hypervisor_hostname": "host-1",
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ServerState("host-1", "", True)),
        ({"OS-EXT-STS:task_state": "migrating", "status": "MIGRATING"}, ServerState("host-1", "migrating", True)),
        ({"status": "SHUTOFF"}, ServerState("host-1", "", False)),
        ({"status": "SUSPENDED"}, ServerState("host-1", "", False)),
        ({"status": "PAUSED"}, ServerState("host-1", "", True)),
        ({"status": "VERIFY_RESIZE"}, ServerState("host-1", "VERIFY_RESIZE", False)),
        (
            {"status": "SHELVED_OFFLOADED", "OS-EXT-SRV-ATTR:hypervisor_hostname": None},
            ServerState("", "", False),
        ),
        ({"status": "DELETED"}, None),
    ],
)
def test_the_state_of_a_server(nova, requests_mock, change, expected):
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", json={"server": {**STATE, **change}})
    requests_mock.get(f"{URL}/servers/{SERVER['id']}/migrations", json={"migrations": []})
    assert nova.server(SERVER["id"]) == expected


@pytest.mark.parametrize(
    ("migration", "busy"),
    [
        ({"created_at": "2026-11-25T02:58:00.000000", "updated_at": None}, "migrating"),
        ({"created_at": "2026-11-25T01:00:00.000000", "updated_at": "2026-11-25T02:58:00.000000"}, "migrating"),
        ({"created_at": "2026-11-25T01:00:00.000000", "updated_at": "2026-11-25T02:54:00.000000"}, ""),
    ],
)
def test_a_server_without_a_task_may_be_migrated_all_the_same(nova, requests_mock, migration, busy):
    """nova-compute was started again before it heard of the migration: it takes the task away, and migrates."""
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", json={"server": STATE})
    requests_mock.get(f"{URL}/servers/{SERVER['id']}/migrations", json={"migrations": [migration]})
    assert nova.server(SERVER["id"]) == ServerState("host-1", busy, True)


def test_a_server_that_goes_between_two_looks_is_not_migrated(nova, requests_mock):
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", json={"server": STATE})
    requests_mock.get(f"{URL}/servers/{SERVER['id']}/migrations", status_code=404)
    assert nova.server(SERVER["id"]) == ServerState("host-1", "", True)


def test_a_server_that_is_gone_is_none(nova, requests_mock):
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", status_code=404)
    requests_mock.get(f"{URL}/servers", json={"servers": []})
    assert nova.server(SERVER["id"]) is None


@pytest.mark.parametrize("status", [403, 503])
def test_a_server_that_is_hidden_is_not_one_that_is_gone(nova, requests_mock, status):
    """A mitigation of one that is gone ends, and that of one that is there must not."""
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", status_code=404)
    requests_mock.get(f"{URL}/servers", status_code=status, text="no")
    with pytest.raises(Unavailable):
        nova.server(SERVER["id"])


def test_a_server_that_hides_its_host_is_no_answer(nova, requests_mock):
    requests_mock.get(f"{URL}/servers/{SERVER['id']}", json={"server": {"status": "ACTIVE"}})
    with pytest.raises(Unavailable, match="administrator"):
        nova.server(SERVER["id"])


def test_a_live_migration_is_asked_for(nova, requests_mock):
    url = f"{URL}/servers/{SERVER['id']}/action"
    requests_mock.post(url, status_code=202)
    nova.live_migrate(SERVER["id"])
    assert requests_mock.last_request.json() == {"os-migrateLive": {"host": None, "block_migration": "auto"}}


@pytest.mark.parametrize(("status", "error"), [(404, NotFound), (409, Conflict), (400, Conflict), (503, Unavailable)])
def test_a_live_migration_that_nova_refuses(nova, requests_mock, status, error):
    requests_mock.post(f"{URL}/servers/{SERVER['id']}/action", status_code=status, text="it says why")
    with pytest.raises(error):
        nova.live_migrate(SERVER["id"])
