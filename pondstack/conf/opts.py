"""All options by the file that they belong to, found by walking pondstack.conf: a new module needs no line here.

Every module of pondstack.conf has `register_opts(conf)` and `list_opts()`. Entry points oslo.config.opts.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from oslo_config import cfg

import pondstack.conf

Options = list[tuple[Any, list[cfg.Opt]]]

AGENT_FILE = frozenset({"agent", "data_plane", "lending", "power", "tiering"})
"""Modules whose options are in pondstack-agent.conf."""

BOTH_FILES = frozenset({"rpc"})
"""Modules whose options are in pondstack.conf and in pondstack-agent.conf."""

ALL_FILES = frozenset({"identity"})
"""Modules whose options are in nova.conf, too."""

NOVA_FILE = frozenset({"compute", "scheduler"})
"""Modules whose options are in nova.conf."""

WATCHER_FILE = frozenset({"watcher"})
"""Modules whose options are in watcher.conf."""


def modules() -> dict[str, ModuleType]:
    """Return the modules that declare options, by name."""
    names = [module.name for module in pkgutil.iter_modules(pondstack.conf.__path__) if module.name != "opts"]
    return {name: importlib.import_module(f"pondstack.conf.{name}") for name in sorted(names)}


def _of(names: frozenset[str]) -> Options:
    return [entry for name, module in modules().items() if name in names for entry in module.list_opts()]


def list_opts() -> Options:
    """Return the options of pondstack.conf: controller and API."""
    return _of(frozenset(modules()) - AGENT_FILE - NOVA_FILE - WATCHER_FILE)


def list_agent_opts() -> Options:
    """Return the options of pondstack-agent.conf."""
    return _of(AGENT_FILE | BOTH_FILES | ALL_FILES)


def list_nova_opts() -> Options:
    """Return our options in nova.conf."""
    return _of(NOVA_FILE | ALL_FILES)


def list_watcher_opts() -> Options:
    """Return our options in watcher.conf."""
    return _of(WATCHER_FILE)
