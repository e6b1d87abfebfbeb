"""What the installation guide copies: each option exists, units start programs of ours, no file is without its line."""

import configparser
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import loading
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_config import cfg
from oslo_messaging import opts as messaging_opts
from oslo_policy import policy
from placement import policies as placement_policies

from pondstack.conf import opts

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "etc" / "deploy"
GUIDE = (ROOT / "doc" / "source" / "install" / "install.md").read_text()
OF_NOVA = {"notifications", "oslo_messaging_notifications", "filter_scheduler"}
"""Groups of Nova's own, which tests of the Nova plugins know."""


def _known(lists: Iterable[tuple[Any, Iterable[Any]]]) -> set[tuple[str, str]]:
    """Return (group, option) of lists as oslo.config's generator takes them."""
    return {(str(group or "DEFAULT"), option.dest) for group, options in lists for option in options}


def _used(name: str) -> set[tuple[str, str]]:
    """Return (group, option) of a file of etc/deploy."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, default_section="none")
    parser.read_string((DEPLOY / name).read_text())
    return {(section, option) for section in parser.sections() for option in parser[section]}


@pytest.fixture(scope="module")
def shared() -> set[tuple[str, str]]:
    """What every service has: the message bus, and the options of a password at Keystone."""
    password = loading.get_auth_plugin_conf_options("password")
    return _known(messaging_opts.list_opts()) | _known([("keystone_authtoken", password)])


def test_each_option_of_the_controllers_file_exists(shared: set[tuple[str, str]]) -> None:
    known = shared | _known(opts.list_opts()) | _known(keystonemiddleware_opts.list_auth_token_opts())
    # keystoneauth's own word for "which plugin", and one that our API gives the middleware.
    known |= {("keystone_authtoken", "auth_type"), ("keystone_authtoken", "region_name")}
    assert _used("pondstack.conf") - known == set()


def test_each_option_of_the_agents_file_exists(shared: set[tuple[str, str]]) -> None:
    assert _used("pondstack-agent.conf") - shared - _known(opts.list_agent_opts()) == set()


@pytest.mark.parametrize("name", ["nova.conf", "nova-scheduler.conf", "nova-compute.conf"])
def test_each_option_of_ours_in_novas_files_exists(name: str) -> None:
    ours = {(group, option) for group, option in _used(name) if group not in OF_NOVA | {"DEFAULT"}}
    assert ours - _known(opts.list_nova_opts()) == set()


def test_removal_finds_what_was_appended() -> None:
    for name in ("nova.conf", "nova-scheduler.conf", "nova-compute.conf"):
        lines = (DEPLOY / name).read_text().splitlines()
        assert lines[0].startswith("# pondstack begin"), name
        assert lines[-1] == "# pondstack end", name


def test_units_start_programs_of_the_venv() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    scripts = {line.partition("=")[0].strip() for line in setup["options.entry_points"]["console_scripts"].splitlines()}
    for unit in DEPLOY.glob("*.service"):
        (program,) = re.findall(r"^ExecStart=!?/opt/pondstack/bin/(\S+) ", unit.read_text(), re.MULTILINE)
        assert program in scripts | {"uwsgi"}, unit.name


def test_the_guide_copies_each_file() -> None:
    names = {path.name for path in DEPLOY.iterdir() if path.suffix != ".service"}
    names |= {f"apparmor/{path.name}" for path in (ROOT / "etc" / "apparmor").iterdir()}
    names |= {path.name for path in (ROOT / "etc" / "selinux").iterdir()}
    assert {name for name in names if name not in GUIDE} == set()
    assert {path.name for path in DEPLOY.glob("*.service") if path.name not in GUIDE} == set()


def _blocks(word: str) -> list[str]:
    """Return the shell blocks of the guide that name something."""
    return [block for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL) if word in block]


def test_each_password_has_a_placeholder_of_its_own() -> None:
    ledger = (DEPLOY / "pondstack.conf").read_text()
    assert set(re.findall(r"\b\w+_PASS\b", ledger)) == {"RABBIT_PASS", "DB_PASS", "USER_PASS"}
    for name in ("pondstack-agent.conf", "nova.conf"):
        assert set(re.findall(r"\b\w+_PASS\b", (DEPLOY / name).read_text())) == {"RABBIT_PASS"}
    assert not re.search(r"\bPASSWORD\b", GUIDE + ledger)


def test_compute_hosts_get_no_secret_of_the_database_or_of_keystone() -> None:
    for name in ("pondstack-agent.conf", "nova.conf", "nova-compute.conf"):
        assert not {group for group, _ in _used(name)} & {"database", "keystone_authtoken", "placement", "keystone"}
    (agents,) = _blocks("pondstack-agent.conf /etc/pondstack/")
    assert not re.search(r"pondstack\.conf\b|DB_PASS|USER_PASS", agents.replace("pondstack-agent.conf", ""))
    assert "install -m 600" in agents
    (controllers,) = _blocks("/etc/pondstack/pondstack.conf <<SED")
    assert "pondstack-agent" not in controllers


def test_no_password_is_on_a_command_line() -> None:
    """A variable of one is in input (here-documents, here-strings) only; other users of the machine see arguments."""
    for block in _blocks("_PASS"):
        commands = re.sub(r"(<<(\w+)[^\n]*\n).*?\n\2\n", r"\1", block, flags=re.DOTALL)
        commands = re.sub(r"<<<\S+", "", commands)
        assert not re.search(r"\$\{?\w+_PASS", commands), block


def _asked_of_placement() -> set[tuple[str, str]]:
    """Return (method, path) of each call that the controller's client has; `{}` for what a path is of."""
    source = (ROOT / "pondstack" / "clients" / "placement.py").read_text()
    found = {(method, path) for method, path in re.findall(r'_call\("([A-Z]+)", f?"(/[^"]*)"', source)}
    found |= {("GET", path) for path in re.findall(r'_get\(f?"(/[^"]*)"', source)}
    found |= {("PUT", path) for path in re.findall(r'_put\(f?"(/[^"]*)"', source)}
    return {(method, _unnamed(path)) for method, path in found}


def _unnamed(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_the_role_service_suffices_for_each_call_of_placement() -> None:
    conf = cfg.ConfigOpts()
    conf([])
    rules = placement_policies.list_rules()
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(rules)
    named = {
        (operation["method"], _unnamed(operation["path"])): rule.name
        for rule in rules
        for operation in getattr(rule, "operations", ())
    }
    asked = _asked_of_placement()
    assert len(asked) >= 10
    for call in sorted(asked):
        for role, allowed in (("service", True), ("reader", False)):
            creds = {"roles": [role], "project_id": "service", "user_id": "pondstack"}
            assert enforcer.enforce(named[call], {"project_id": "service"}, creds) is allowed, (call, role)
    assert "for role in service pondstack; do openstack role add --project service --user pondstack" in GUIDE
    assert "--user pondstack admin" not in GUIDE


def test_the_role_for_nova_is_the_policys_and_no_administrator_of_anything_else() -> None:
    """tests/functional/test_roles.py tries it in a real Nova."""
    lines = [line for line in (DEPLOY / "nova-policy.yaml").read_text().splitlines() if not line.startswith("#")]
    assert lines == ['"context_is_admin": "role:admin or role:pondstack"']
    assert "openstack role create pondstack\n" in GUIDE
    assert "/opt/pondstack/share/pondstack/nova-policy.yaml >>/etc/nova/policy.yaml" in GUIDE


def test_uwsgi_drops_no_query_in_silence() -> None:
    """With its default of 4 KiB it drops a longer query and answers 200: a list that was to be filtered comes whole."""
    reference = (ROOT / "doc" / "source" / "reference" / "api.md").read_text()
    for text in ((DEPLOY / "pondstack-uwsgi.ini").read_text(), reference):
        sizes = [int(size) for size in re.findall(r"buffer-size(?: = | )(\d+)", text)]
        assert sizes, text[:80]
        assert min(sizes) >= 65535
    commands = re.findall(r"uwsgi --http-socket(?:[^\n]*\\\n)*[^\n]*", reference)
    assert commands
    assert all("--buffer-size" in command and "--post-buffering" in command for command in commands)


def test_a_boot_starts_the_agent_before_nova_compute() -> None:
    agent = configparser.ConfigParser(strict=False, interpolation=None)
    agent.read_string((DEPLOY / "pondstack-agent.service").read_text())
    # libvirtd binds no guest to a node of the host that came after its own start.
    assert {"nova-compute.service", "libvirtd.service", "virtqemud.service"} <= set(agent["Unit"]["Before"].split())
    # With any other type it counts as started before it has brought memory online and serves.
    assert (agent["Service"]["Type"], agent["Service"]["NotifyAccess"]) == ("notify", "all")
    addition = _used("nova-compute-unit.conf")
    assert addition == {("Unit", "wants"), ("Unit", "after")}
    assert "nova-compute.service.d/pondstack.conf" in GUIDE
