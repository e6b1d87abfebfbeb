"""Requests that no client of ours sends: each gets an answer, costs one line of log, and names nobody."""

import io
import logging

import pytest
import webob
from keystonemiddleware.fixture import AuthTokenFixture
from oslo_context import context

from pondstack_api.middleware.edge import LastResort
from tests.fixtures import sample_rack
from tests.fixtures.api import ApiFixture

from .conftest import error_of


def ask(api: ApiFixture, path: str, method: str = "GET", **headers: str) -> webob.Response:
    """Send a request as a server passes it on: no client library has made its path legal."""
    request = webob.Request.blank("/", method=method, headers=headers)
    request.environ["PATH_INFO"], _, request.environ["QUERY_STRING"] = path.partition("?")
    return request.get_response(api.application)


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/hosts", 401), ("/nothing", 401), ("/audits", 401), ("/healthcheck", 200)]
)
def test_head_is_get_without_a_body(keystone, path, status, caplog):
    response = ask(keystone, path, "HEAD")
    assert (response.status_int, response.body) == (status, b"")
    assert response.headers["x-openstack-request-id"].startswith("req-")
    assert "Traceback" not in caplog.text


def test_head_of_a_known_object(api):
    got, headed = (ask(api, "/hosts/host-1", method, **{"X-Auth-Token": "admin:ops"}) for method in ("GET", "HEAD"))
    assert (headed.status_int, headed.body) == (200, b"")
    assert headed.headers["Content-Length"] == got.headers["Content-Length"]
    assert ask(api, "/audits", "HEAD", **{"X-Auth-Token": "admin:ops"}).status_int == 405
    assert api.controller.audits == []


@pytest.mark.parametrize("path", ["/hosts/\xff", "/\xff", "/healthcheck\xff", "/hosts?marker=\xff"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_path_that_is_not_utf_8_is_a_400(api, path, method, caplog):
    caplog.set_level(logging.DEBUG)
    response = ask(api, path, method, **{"X-Auth-Token": "admin:ops"})
    assert response.status_int in {400, 405}
    assert "Traceback" not in caplog.text
    lines = [line for line in caplog.messages if "status:" in line]
    assert len(lines) == 1
    assert "%FF" in lines[0].upper()


def test_whatever_the_layers_raise_is_answered(caplog):
    def broken(*_):
        raise RuntimeError("secret of the house")

    response = webob.Request.blank("/hosts/%0a").get_response(LastResort(broken))
    assert response.status_int == 500
    assert response.json["errors"][0]["code"] == "pondstack.error"
    assert "secret" not in response.text
    assert "GET /hosts/%0A" in caplog.text


def test_no_line_names_who_was_not_checked(keystone, monkeypatch):
    named = []
    monkeypatch.setattr("pondstack_api.middleware.request_log.LOG.log", lambda *_: named.append(context.get_current()))
    forged = {"X-User-Id": "ADMIN-FORGED", "X-Project-Id": "OPS-FORGED", "X-Tenant-Id": "T", "X-User-Domain-Id": "D"}
    assert ask(keystone, "/hosts/zz/fence", "POST", **forged).status_int == 401
    assert ask(keystone, "/", **forged).status_int == 200
    assert [(who.user_id, who.project_id, who.user_domain_id) for who in named] == [(None, None, None)] * 2
    with AuthTokenFixture() as tokens:
        tokens.add_token_data(token_id="t", project_id=sample_rack.BLUE, user_id="joe", role_list=["member", "reader"])
        assert ask(keystone, "/allocations", **forged, **{"X-Auth-Token": "t"}).status_int == 200
    assert (named[-1].user_id, named[-1].project_id) == ("joe", sample_rack.BLUE)


def test_brackets_only_are_a_400(call):
    response = call(
        "POST",
        "/audits",
        {"X-Auth-Token": "admin:ops", "Content-Type": "application/json"},
        data="[" * 100_000,
    )
    assert response.status_code == 400
    assert "nested too deeply" in error_of(response)["detail"]


@pytest.mark.parametrize("reason", ["\U0001f525", "burns\nLeader is mallory", "\x1b[2Jburns", "\ud800", "\u202eburns"])
def test_a_reason_is_printable_text_of_the_basic_plane(call, reason):
    for path, body in (
        ("/hosts/host-1/fence", {"reason": reason, "force": True, "generation": 0}),
        ("/hosts/host-1", {"enabled": False, "disabled_reason": reason, "generation": 0}),
    ):
        response = call("POST" if path.endswith("fence") else "PUT", path, json=body)
        assert response.status_code == 400
        assert "printable" in error_of(response)["detail"]


def test_a_reason_in_any_language(call):
    answer = call(
        "POST",
        "/hosts/host-1/fence",
        json={"reason": "brennt: \u706b\u4e8b, \u043e\u0433\u043e\u043d\u044c", "force": True, "generation": 0},
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("query", ["limit=5%0A", "marker=host-1%0A", "limit=5%00"])
def test_the_end_of_a_pattern_is_the_end(call, query):
    assert call("GET", f"/hosts?{query}").status_code == 400


@pytest.mark.parametrize("name", ["%0a", "a%1b", "%F0%9F%94%A5"])
def test_a_name_in_a_path_is_printable(call, name):
    assert call("GET", f"/hosts/{name}").status_code == 400


def test_links_name_the_public_address(tmp_path):
    api = ApiFixture(tmp_path, public_url="https://memory.example:8780/pond")
    evil = {"X-Auth-Token": "admin:ops", "Host": "evil.example"}
    page = ask(api, "/hosts?limit=1", **evil).json
    assert page["links"][0]["href"].startswith("https://memory.example:8780/pond/hosts?")
    assert ask(api, "/openapi.json", **evil).json["servers"] == [{"url": "https://memory.example:8780/pond"}]
    assert "evil" not in ask(api, "/", **evil).text
    api.close()


def test_noauth2_is_warned_of(tmp_path, caplog):
    ApiFixture(tmp_path).close()
    assert "noauth2" in caplog.text


def test_nobody_without_a_project_lists_all_projects_where_the_policy_forbids_it(tmp_path):
    (tmp_path / "policy.yaml").write_text("memory:allocations:list:all_projects: role:admin\n")
    api = ApiFixture(tmp_path, oslo_policy={"policy_file": str(tmp_path / "policy.yaml")})
    reader = {"X-Auth-Token": "auditor", "X-Roles": "reader", "OpenStack-System-Scope": "all"}
    response = ask(api, "/allocations", **reader)
    assert response.status_int == 403
    assert "without a project" in response.text
    api.close()


def test_nor_their_splits(tmp_path):
    (tmp_path / "policy.yaml").write_text("memory:splits:list:all_projects: role:admin\n")
    api = ApiFixture(tmp_path, oslo_policy={"policy_file": str(tmp_path / "policy.yaml")})
    reader = {"X-Auth-Token": "auditor", "X-Roles": "reader", "OpenStack-System-Scope": "all"}
    response = ask(api, "/splits", **{"OpenStack-API-Version": "memory 1.13"}, **reader)
    assert response.status_int == 403
    assert "without a project" in response.text
    api.close()


def test_a_marker_of_another_project_s_split_is_as_unknown_as_any(call):
    mine = {"X-Auth-Token": f"joe:{sample_rack.BLUE}"}
    foreign, own = sample_rack.CONSUMERS[2], sample_rack.CONSUMERS[0]
    answers = [call("GET", f"/splits?marker={marker}", mine) for marker in (foreign, sample_rack.POOL)]
    texts = [error_of(answer)["detail"].replace(foreign, "X").replace(sample_rack.POOL, "X") for answer in answers]
    assert ([answer.status_code for answer in answers], texts[0]) == ([404, 404], texts[1])
    assert call("GET", f"/splits?marker={own}", mine).json() == {"splits": []}


def test_a_marker_of_another_project_is_as_unknown_as_any(call):
    mine = {"X-Auth-Token": f"joe:{sample_rack.BLUE}"}
    rows = call("GET", "/allocations").json()["allocations"]
    foreign = next(row["uuid"] for row in rows if row["project_id"] != sample_rack.BLUE)
    own = next(row["uuid"] for row in rows if row["project_id"] == sample_rack.BLUE)
    answers = [call("GET", f"/allocations?marker={marker}", mine) for marker in (foreign, sample_rack.POOL)]
    assert [answer.status_code for answer in answers] == [404, 404]
    texts = [error_of(answer)["detail"].replace(foreign, "X").replace(sample_rack.POOL, "X") for answer in answers]
    assert texts[0] == texts[1]
    assert call("GET", f"/allocations?marker={own}", mine).status_code == 200


class Sent(io.BytesIO):
    """A body that arrives as it is read."""

    @property
    def unread(self) -> bytes:
        """What a proxy still has to send."""
        return self.getbuffer()[self.tell() :].tobytes()


def send(application, body: bytes, length: int, path: str = "/audits", **headers: str) -> tuple[webob.Response, bytes]:
    """Post a body; return the answer, and what of the body nobody had read by then."""
    request = webob.Request.blank(path, method="POST", headers={"Content-Type": "application/json", **headers})
    sent = Sent(body)
    request.environ |= {"wsgi.input": sent, "CONTENT_LENGTH": str(length)}
    return request.get_response(application), sent.unread


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"X-Auth-Token": "someone:theirs", "X-Roles": "reader"}, 403)],
    ids=["nobody", "not allowed"],
)
def test_whoever_is_refused_has_sent_the_body(api, headers, status):
    body = b'{"repair": true}'
    answer, unread = send(api.application, body, len(body), **headers)
    assert (answer.status_int, unread) == (status, b"")


def test_a_body_above_the_limit_is_refused_unread(api):
    most = api.conf.oslo_middleware.max_request_body_size
    answer, unread = send(api.application, bytes(most + 1), most + 1, **{"X-Auth-Token": "admin:ops"})
    assert (answer.status_int, len(unread)) == (413, most + 1)


def test_a_body_that_ends_early_is_a_400(api, caplog):
    answer, _ = send(api.application, b"{", 16, **{"X-Auth-Token": "admin:ops"})
    assert answer.status_int == 400
    assert "before its Content-Length" in answer.json["errors"][0]["detail"]
    assert "Traceback" not in caplog.text
