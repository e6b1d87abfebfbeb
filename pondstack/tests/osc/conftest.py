"""OpenStackClient's own shell against the real API in process."""

import json
import logging
from contextlib import contextmanager

import pytest
from keystoneauth1 import session as keystone_session

from pondstack.osc import plugin
from tests.fixtures.api import URL, ApiFixture
from tests.fixtures.keystone import IdentityStandIn


@contextmanager
def kept_loggers():
    """Take away the log handlers that a shell adds: they write to streams that are closed when the next one runs."""
    before = list(logging.root.handlers)
    try:
        yield
    finally:
        logging.root.handlers[:] = before


@pytest.fixture
def api(tmp_path):
    """An API whose pages are small, so that lists span several."""
    fixture = ApiFixture(tmp_path, page_size=2)
    yield fixture
    fixture.close()


@pytest.fixture
def identity(api):
    """What Keystone tells of projects and domains."""
    return IdentityStandIn(api.session().get_adapter(URL))


@pytest.fixture
def openstack(api, identity, monkeypatch, capsys):
    """Run one command line; returns (exit status, stdout, stderr)."""
    shell = pytest.importorskip("openstackclient.shell", reason="python-openstackclient is of the extra rack")
    from openstackclient.common import clientmanager
    from openstackclient.identity import client as identity_client
    from osc_lib import clientmanager as base

    def session(*_, **__):
        made = api.session()
        for collection in ("projects", "domains"):
            made.mount(f"{URL}/{collection}", identity)
        return made

    monkeypatch.setattr(keystone_session, "_construct_session", session)

    def run(line, token="admin:ops"):
        # A process has one command line; here the clients of the one before must go.
        clientmanager.ClientManager.memory = base.ClientCache(plugin.make_client)
        clientmanager.ClientManager.identity = base.ClientCache(identity_client.make_client)
        words = line.split() if isinstance(line, str) else list(line)
        account = ["--os-auth-type", "admin_token", "--os-endpoint", URL, "--os-token", token]
        with kept_loggers():
            status = shell.OpenStackShell().run([*account, *words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def json_of(openstack):
    """Run one command line that must succeed; returns its JSON."""

    def run(line, **arguments):
        status, out, err = openstack(f"{line} -f json", **arguments)
        assert status == 0, err
        return json.loads(out)

    return run
