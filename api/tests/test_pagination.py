"""Pages: every object once, whatever the page size; the operator's bound holds."""

import pytest

from pondstack.testing.api import URL, ApiFixture

LISTS = [("/pools", "pools", 1), ("/pools/pool0/slices", "slices", 8), ("/hosts", "hosts", 3), ("/agents", "agents", 3)]
OPERATOR = {"X-Auth-Token": "admin:ops"}


@pytest.mark.parametrize(("path", "collection", "total"), [*LISTS, ("/allocations", "allocations", 3)])
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


def test_page_size_and_its_bound(tmp_path):
    api = ApiFixture(tmp_path, page_size=2, page_size_max=4)
    session = api.session()
    assert len(session.get(URL + "/pools/pool0/slices", headers=OPERATOR).json()["slices"]) == 2
    assert len(session.get(URL + "/pools/pool0/slices?limit=99", headers=OPERATOR).json()["slices"]) == 4
    api.close()
