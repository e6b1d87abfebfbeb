"""`pondstack-manage escrow key NAME`: a sealing key of the controllers, for [controller] sealing_keys_file."""

from typing import Any

from oslo_config import cfg

from pondstack.controller.lending.sealing import new_line


def new_key(conf: cfg.ConfigOpts) -> str:
    """Return a line with a new key; nothing is written."""
    return new_line(conf.command.name)


def add_commands(commands: Any) -> None:
    """Add the verbs."""
    key = commands.add_parser("key", help="print a line with a new sealing key, for [controller] sealing_keys_file")
    key.add_argument("name", help="name of the key, such as its date")
    key.set_defaults(function=new_key)
