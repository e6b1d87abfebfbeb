"""Pages: every object once, whatever the page size; the operator's bound holds."""

import pytest

from pondstack.domain.lending import Lender, LenderKind
from tests.fixtures.api import URL, ApiFixture

LISTS = [("/pools", "pools", 1), ("/pools/pool0/slices", "slices", 8), ("/hosts", "hosts", 3), ("/agents", "agents", 3)]
LENT = [
    ("/lenders", "lenders", 2),
    ("/lenders/host-1/buffers", "buffers", 8),
    ("/lenders/host-3/buffers", "buffers", 4),
]
OPERATOR = {"X-Auth-Token": "admin:ops", "OpenStack-API-Version": "memory latest"}


@pytest.mark.parametrize(("path", "collection", "total"), [*LISTS, *LENT, ("/allocations", "allocations", 3)])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_every_object_once(api, path, collection, total, limit):
    session, url, seen, pages = api.session(), f"{URL}{path}?limit={limit}", [], 0
    while url:
        page = session.get(url, headers=OPERATOR).json()
        assert 0 < len(page[collection]) <= limit
        seen += page[collection]
        pages += 1
        url = next((link["href"] for link in page.get("links", []) if link["rel"] == "next"), None)
    assert len(seen) == total
    assert len({str(item) for item in seen}) == total
    assert pages == -(-total // limit)


def test_the_filters_stay_in_the_next_link(call):
    page = call("GET", "/pools/pool0/slices?state=free&limit=1").json()
    assert "state=free" in page["links"][0]["href"]


def test_two_buffers_of_one_index_are_on_two_pages(api, call):
    """A host whose lending process was killed: what of its former life has owners is there until they let go."""
    life = "00000000-0000-4000-8000-000000000001"
    api.ledger.buffers.delegate(Lender("host-1", life, LenderKind.ACTIVE, 64), 2, {0: 0, 5: 320})
    pages, marker = [], ""
    for _ in range(5):
        (buffer,) = call("GET", f"/lenders/host-1/buffers?limit=1{marker}").json()["buffers"]
        marker = f"&marker={buffer['index']}:{buffer['incarnation']}"
        pages.append((buffer["index"], buffer["incarnation"] == life, buffer["state"]))
    assert pages == [
        (0, True, "free"),
        (0, False, "quarantined"),
        (1, False, "quarantined"),
        (2, False, "quarantined"),
        (5, True, "free"),
    ]
    assert call("GET", "/lenders/host-1/buffers/0").json()["incarnation"] == life
    assert call("GET", "/lenders/host-1/buffers/1").json()["reason"].startswith("lender_lost")


def test_page_size_and_its_bound(tmp_path):
    api = ApiFixture(tmp_path, page_size=2, page_size_max=4)
    session = api.session()
    assert len(session.get(URL + "/pools/pool0/slices", headers=OPERATOR).json()["slices"]) == 2
    assert len(session.get(URL + "/pools/pool0/slices?limit=99", headers=OPERATOR).json()["slices"]) == 4
    api.close()
