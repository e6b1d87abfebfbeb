"""Keystone's token check in the pipeline, and what can be forged without it: nothing."""

import pytest
import webob
from keystonemiddleware.fixture import AuthTokenFixture
from oslo_config import cfg

from pondstack_api.middleware.auth import TokenCheck
from tests.fixtures import sample_rack
from tests.fixtures.api import URL

from .conftest import error_of


def get(api, path, **headers):
    return api.session().get(URL + path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_no_token(keystone):
    response = get(keystone, "/pools")
    assert response.status_code == 401
    assert "keystone.test" in response.headers["WWW-Authenticate"]
    assert error_of(response)["code"] == "pondstack.unauthorized"


def test_forged_headers_are_no_token(keystone):
    assert get(keystone, "/pools", X_User_Id="root", X_Roles="admin", X_Project_Id="ops").status_code == 401


def test_public_paths_need_none(keystone):
    assert get(keystone, "/").status_code == 200
    assert get(keystone, "/openapi.json").status_code == 200
    assert get(keystone, "/healthcheck").status_code == 200


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html"])
def test_keystone_is_down(keystone, accept):
    response = get(keystone, "/pools", X_Auth_Token="something", Accept=accept)
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert error_of(response)["code"] == "pondstack.unavailable"
    assert "identity service" in error_of(response)["detail"]


def test_tokens(keystone):
    tokens = AuthTokenFixture()
    with tokens:
        tokens.add_token_data(
            token_id="admin-token", project_id="ops", user_id="root", role_list=["admin", "member", "reader"]
        )
        tokens.add_token_data(
            token_id="member-token", project_id=sample_rack.BLUE, user_id="joe", role_list=["member", "reader"]
        )
        assert get(keystone, "/pools", X_Auth_Token="admin-token").status_code == 200
        assert get(keystone, "/pools", X_Auth_Token="member-token").status_code == 403
        assert get(keystone, "/pools", X_Auth_Token="member-token", X_Roles="admin").status_code == 403
        mine = get(keystone, "/allocations", X_Auth_Token="member-token", X_Project_Id=sample_rack.GREEN).json()
        assert {item["project_id"] for item in mine["allocations"]} == {sample_rack.BLUE}
        assert get(keystone, "/pools", X_Auth_Token="expired").status_code == 401


def test_noauth_is_never_the_default():
    from pondstack_api import config

    conf = cfg.ConfigOpts()
    config.register(conf)
    assert conf.api.auth_strategy == "keystone"


def test_on_a_public_path_nobody_is_who_they_say(keystone):
    seen = []

    def application(environ, start_response):
        seen.append({name: value for name, value in environ.items() if name.startswith(("HTTP_X_", "HTTP_OPENSTACK"))})
        return webob.Response()(environ, start_response)

    check = TokenCheck(application, keystone.conf, frozenset({"/"}))
    forged = {"X-User-Id": "root", "X-Roles": "admin", "X-Project-Id": "ops", "OpenStack-System-Scope": "all"}
    webob.Request.blank("/", headers=forged).get_response(check)
    assert seen == [{}]
