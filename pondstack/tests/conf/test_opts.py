"""Every option of ours says what it is: help, default, unit, bounds; the samples are made from them."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from keystoneauth1 import loading
from oslo_config import cfg, types
from oslo_db import options as database_options

from pondstack.conf import database, opts

ROOT = Path(__file__).resolve().parents[3]
FOREIGN = {
    option.name
    for options in (
        database_options.database_opts,
        loading.get_auth_common_conf_options(),
        loading.get_auth_plugin_conf_options("password"),
        loading.get_session_conf_options(),
        loading.get_adapter_conf_options(),
    )
    for option in options
}
"""Options of oslo.db and keystoneauth, which some of our groups take over."""

UNITS = ("second", "millisecond", "mib", "kib", "slices", "percent", "count", "number of", "bytes", "watts", "no unit")
FILES = {"pondstack": opts.list_opts, "pondstack.agent": opts.list_agent_opts, "pondstack.nova": opts.list_nova_opts}
FILES["pondstack.watcher"] = opts.list_watcher_opts


def ours():
    """Yield (group.option, option)."""
    for listing in FILES.values():
        for group, options in listing():
            for option in options:
                if option.name not in FOREIGN:
                    yield f"{getattr(group, 'name', group)}.{option.name}", option


OURS = dict(ours())


def complaints(option):
    """Return what is missing in the declaration of an option."""
    text = option.help or ""
    found = [] if len(text) > 20 and text.rstrip().endswith(".") else ["no help in whole sentences"]
    # Options with choices explain each of them.
    if option.default is None and not option.required and "nset" not in text:
        found.append("no default, and the help does not say what unset means")
    # A port is a name that looks like a number: it has no unit, and its type has the bounds.
    if isinstance(option.type, types.Number) and not isinstance(option.type, types.Port):
        if not any(unit in f"{option.name} {text}".lower().replace("_", " ") for unit in UNITS):
            found.append(f"no unit in name or help: {', '.join(UNITS)}")
        if (option.type.min is None or option.type.max is None) and "no unit" not in text:
            found.append("no bounds")
    return found


@pytest.mark.parametrize("name", OURS)
def test_option(name):
    assert complaints(OURS[name]) == []


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (cfg.StrOpt("colour", default="blue"), "no help"),
        (cfg.StrOpt("colour", help="The colour of the device, in words."), "no default"),
        (cfg.IntOpt("wait", default=1, min=0, max=2, help="How long to wait for an answer."), "no unit"),
        (cfg.IntOpt("wait_seconds", default=1, min=0, help="How many seconds to wait."), "no bounds"),
    ],
)
def test_a_careless_option_is_found(option, complaint):
    (found,) = complaints(option)
    assert found.startswith(complaint)


def test_every_module_registers_what_it_lists():
    assert set(opts.modules()) >= {"agent", "api", "controller", "database", "scheduler"}
    for name, module in opts.modules().items():
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        module.register_opts(conf)
        module.register_opts(conf)
        for group, options in module.list_opts():
            registered = conf if str(group) == "DEFAULT" else getattr(conf, getattr(group, "name", group))
            missing = [o.name for o in options if o.name not in FOREIGN and o.dest not in registered]
            assert not missing, f"pondstack.conf.{name}"


def test_the_defaults_are_within_the_bounds():
    for name, option in OURS.items():
        if option.default is not None:
            assert option.type(option.default) == option.default, name


def test_the_samples(tmp_path):
    done = subprocess.run(
        [str(ROOT / "tools" / "samples.sh"), str(tmp_path)],
        capture_output=True,
        text=True,
        env={"VENV": str(Path(sys.executable).parents[1]), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.sample")}
    assert len(texts) == 5
    for file, listing in zip(
        (
            "pondstack.conf.sample",
            "pondstack-agent.conf.sample",
            "nova-pondstack.conf.sample",
            "watcher-pondstack.conf.sample",
        ),
        FILES.values(),
        strict=True,
    ):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(texts[file])
        for group, options in listing():
            title = str(getattr(group, "name", group))
            assert title == "DEFAULT" or title in parser.sections(), file
            assert all(f"\n#{option.dest} =" in texts[file] for option in options), file
    assert '#"memory:hosts:update"' in texts["policy.yaml.sample"]
    assert "/allocations/{uuid}" in texts["policy.yaml.sample"]
    assert "[keystone_authtoken]" in texts["pondstack.conf.sample"]


def test_more_connections_stay_open_than_oslo_db_keeps():
    conf = cfg.ConfigOpts()
    database.register_opts(conf)
    conf([], default_config_files=[])
    [theirs] = [option for option in database_options.database_opts if option.name == "max_pool_size"]
    [ours] = [option for _, listed in database.list_opts() for option in listed if option.name == "max_pool_size"]
    assert conf.database.max_pool_size == ours.default == database.POOL_SIZE > theirs.default
