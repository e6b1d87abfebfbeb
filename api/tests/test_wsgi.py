"""The module path that servers load, in a process of its own, as a server has it."""

import os
import subprocess
import sys
import textwrap

import pytest

from pondstack_api import config

PROGRAM = textwrap.dedent(
    """
    from pondstack_api.wsgi import application
    from oslo_service import backend
    from webob import Request
    assert backend.get_backend_type() is backend.BackendType.THREADING
    for path in ("/", "/healthcheck", "/hosts"):
        request = Request.blank(path, headers={"X-Auth-Token": "admin:ops", "Accept": "text/plain"})
        answer = request.get_response(application)
        print(answer.status_int, " ".join(answer.text.split()))
    """
)


def run(**environment):
    variables = {name: value for name, value in os.environ.items() if name != config.VARIABLE}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    return subprocess.run(
        command, capture_output=True, text=True, env={**variables, **environment}, timeout=120, check=False
    )


def test_served_from_the_file_that_the_variable_names(api, tmp_path):
    file = tmp_path / "pondstack.conf"
    # The process needs its time to start, and nobody renews the sample rack's lease meanwhile.
    own = f"\n[database]\nconnection = {api.database.engine.url}\n[api]\nleader_max_age_seconds = 600\n"
    file.write_text(file.read_text() + own)
    done = run(**{config.VARIABLE: str(file)})
    assert done.returncode == 0, done.stderr
    warning, root, health, hosts = done.stdout.splitlines()
    assert "auth_strategy = noauth2" in warning
    assert root.startswith("200")
    assert health.startswith("200 database: OK broker: OK leader: OK, epoch 1, renewed ")
    assert '"host-1"' in hosts


def test_a_file_that_is_not_there_stops_the_server(tmp_path):
    done = run(**{config.VARIABLE: str(tmp_path / "nothing.conf")})
    assert done.returncode != 0
    assert "nothing.conf" in done.stderr


def test_an_option_out_of_bounds_stops_the_server(tmp_path):
    file = tmp_path / "pondstack.conf"
    file.write_text("[api]\npage_size = 0\n")
    done = run(**{config.VARIABLE: str(file)})
    assert done.returncode != 0
    assert "page_size" in done.stderr


def test_without_any_file_it_says_what_to_set():
    if os.path.exists(config.DEFAULT_FILE):
        pytest.skip(f"this machine has a {config.DEFAULT_FILE}")
    done = run()
    assert done.returncode == 0, done.stderr
    assert config.VARIABLE in done.stderr
    assert "503 " in done.stdout
    assert "connection" in done.stdout
