"""A running cloud, by answers of its APIs."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import requests_mock as mocked
from keystoneauth1 import adapter, session, token_endpoint

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.planner.traces.cloud import Cloud
from pondstack.planner.traces.imported import Hosts, Options
from pondstack.planner.traces.instances import Window

NOVA, PLACEMENT, MEMORY = "http://nova", "http://placement", "http://memory"
WINDOW = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC))
DAY = 86_400
RECORD = {"reserved": 0, "step_size": 1, "min_unit": 1, "max_unit": 99}


def server(uuid: str, created: str, ended: str | None = None, ram: int = 4096) -> dict[str, Any]:
    """Return what Nova says of a server."""
    return {
        "id": uuid,
        "tenant_id": "blue",
        "name": "web-1",
        "status": "DELETED" if ended else "ACTIVE",
        "created": created,
        "updated": ended or created,
        "flavor": {"original_name": "m1", "ram": ram, "vcpus": 2},
        "OS-SRV-USG:terminated_at": ended,
    }


def service(url: str, microversion: str | None = None) -> adapter.Adapter:
    """Return an adapter without a Keystone."""
    auth = token_endpoint.Token(url, "t")
    return adapter.Adapter(
        session.Session(auth=auth),
        service_type="memory",
        endpoint_override=url,
        raise_exc=False,
        default_microversion=microversion,
    )


@pytest.fixture
def cloud(requests_mock: mocked.Mocker) -> Callable[..., Cloud]:
    """A cloud with three servers, one of them deleted, and two hosts."""
    alive = [server("a", "2026-10-01T00:00:00Z"), server("b", "2026-11-02T00:00:00Z")]
    changed = [server("c", "2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z"), server("b", "2026-11-02T00:00:00Z")]
    pages = [alive, [], changed, []]
    requests_mock.get(f"{NOVA}/servers/detail", [{"json": {"servers": page}} for page in pages])
    hosts = [{"uuid": "h1", "name": "one"}, {"uuid": "h2", "name": "two"}]
    requests_mock.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": hosts})
    inventories = {
        "VCPU": {**RECORD, "total": 48, "allocation_ratio": 2.0},
        "MEMORY_MB": {**RECORD, "total": 262_656, "reserved": 512, "allocation_ratio": 1.0},
        "DISK_GB": {**RECORD, "total": 5, "allocation_ratio": 1.0},
    }
    for uuid in ("h1", "h2"):
        requests_mock.get(f"{PLACEMENT}/resource_providers/{uuid}/inventories", json={"inventories": inventories})
        requests_mock.get(
            f"{PLACEMENT}/resource_providers/{uuid}/usages", json={"usages": {"VCPU": 2, "MEMORY_MB": 3072}}
        )
    return lambda *, history=False: Cloud(
        service(NOVA), service(PLACEMENT), service(MEMORY, "1.12") if history else None
    )


def test_instances_of_a_window_with_their_ends_and_hosts(
    cloud: Callable[..., Cloud], requests_mock: mocked.Mocker
) -> None:
    found = cloud().trace(WINDOW, Options("mine"))
    assert found.trace.servers.rows() == [
        (0, None, 2.0, 4096, None, None, "blue"),
        (DAY // 2, DAY * 3 // 2, 2.0, 4096, None, None, "blue"),
        (DAY, None, 2.0, 4096, None, None, "blue"),
    ]
    assert (found.trace.origin, found.trace.end_of_trace_seconds) == ("nova", 2 * DAY)
    assert found.hosts == Hosts(2, 192, 2 * 262_144)
    assert found.notes[1] == "Placement has 4 of 192 vCPUs and 6,144 of 524,288 MiB of 2 hosts claimed now"
    assert "1 instances began before 2026-11-01 00:00 UTC" in found.notes[2]
    asked = [request.qs for request in requests_mock.request_history if "servers" in request.path]
    assert asked[2]["changes-since"] == ["2026-11-01t00:00:00z"]


def test_untouched_memory_comes_from_pondstacks_history(
    cloud: Callable[..., Cloud], requests_mock: mocked.Mocker
) -> None:
    requests_mock.get(f"{MEMORY}/history/a", json={"trains": True, "untouched_mib": 1024})
    requests_mock.get(f"{MEMORY}/history/b", json={"trains": False, "untouched_mib": 4000})
    requests_mock.get(f"{MEMORY}/history/c", status_code=404)
    found = cloud(history=True).trace(WINDOW, Options("mine"))
    assert found.trace.servers["untouched_percent"].to_list() == [25.0, None, None]
    assert found.trace.origin == "pondstack"
    assert "untouched memory is known of 1 instances" in found.notes[1]
    (asked,) = [request for request in requests_mock.request_history if request.path == "/history/a"]
    assert asked.headers["OpenStack-API-Version"] == "memory 1.12"


@pytest.mark.parametrize(
    "answer", [{"status_code": 403, "text": "no"}, {"status_code": 500}, {"text": "<html>"}, {"json": {"trains": True}}]
)
def test_a_history_that_is_refused_is_no_unknown_one(
    cloud: Callable[..., Cloud], requests_mock: mocked.Mocker, answer: dict[str, Any]
) -> None:
    requests_mock.get(f"{MEMORY}/history/a", **answer)
    with pytest.raises(Unavailable, match="/history/a of pondstack"):
        cloud(history=True).trace(WINDOW, Options("mine"))


def test_a_user_who_may_not_look_is_told(cloud: Callable[..., Cloud], requests_mock: mocked.Mocker) -> None:
    requests_mock.get(f"{NOVA}/servers/detail", status_code=403, text="forbidden")
    with pytest.raises(Unavailable, match="403 forbidden"):
        cloud().trace(WINDOW, Options("mine"))


def test_a_cloud_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/nowhere/clouds.yaml")
    with pytest.raises(BadRequest, match=r"cloud no-such-cloud: .*see --os-cloud"):
        Cloud.connected("no-such-cloud", history=False)
