"""The thin client: pages, paths, errors."""

import pytest
import requests
from keystoneauth1 import session as keystone_session
from keystoneauth1 import token_endpoint

from pondstack.osc import plugin
from pondstack.osc.client import ApiError, MemoryClient
from tests.fixtures.api import URL, ApiFixture


@pytest.fixture
def api(tmp_path):
    """An API whose pages are small."""
    fixture = ApiFixture(tmp_path, page_size=3, page_size_max=3)
    yield fixture
    fixture.close()


def client_of(api, token="admin:ops", version=plugin.DEFAULT_API_VERSION):
    session = keystone_session.Session(token_endpoint.Token(URL, token), session=api.session())
    return MemoryClient(session, version=version)


def test_a_list_is_every_page(api):
    assert [item["index"] for item in client_of(api).list("pools", "pool0", "slices")] == list(range(8))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8, 20])
def test_a_limit_is_of_the_whole_list(api, limit):
    found = list(client_of(api).list("pools", "pool0", "slices", limit=limit))
    assert len(found) == min(limit, 8)


def test_a_limit_asks_for_no_more_than_it_shows(api):
    seen = []
    send = api.services.reader.slices
    api.services.reader.slices = lambda pool, **query: seen.append(query["limit"]) or send(pool, **query)
    assert len(list(client_of(api).list("pools", "pool0", "slices", limit=4))) == 4
    assert seen == [3 + 1, 1 + 1]


def test_names_are_quoted_in_paths(api):
    with pytest.raises(ApiError) as caught:
        client_of(api).get("hosts", "no/such?host")
    assert caught.value.status == 404
    assert caught.value.code in {"pondstack.not_found", "pondstack.route_not_found"}


def test_an_error_has_status_code_detail_and_request_id(api):
    with pytest.raises(ApiError, match=r"there is no host host-9.*HTTP 404, pondstack\.not_found, request req-"):
        client_of(api).get("hosts", "host-9")


def test_an_answer_that_is_not_ours_names_the_address():
    class Proxy:
        def request(self, url, method, **_):
            """Answer like a proxy without a back end."""
            response = requests.Response()
            response.status_code, response.url, response._content = (
                502,
                f"http://proxy{url}",
                f"<html>{method}".encode(),
            )
            return response

    client = MemoryClient(Proxy())
    with pytest.raises(ApiError, match=r"http://proxy/pools.*endpoint of the memory service"):
        client.get("pools")


def test_the_version_is_asked_for(api):
    with pytest.raises(ApiError, match=r"memory 1\.0 to memory 1\.10"):
        client_of(api, version="1.99").get("pools")
