"""`pondstack-manage --config-file FILE NOUN VERB ...`: see `--help` of each."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondstack import native_threads

native_threads.use()

from oslo_config import cfg  # noqa: E402 (threading first)

from pondstack.cmd import broker, credentials, escrow, models  # noqa: E402
from pondstack.cmd import nova_link as link  # noqa: E402
from pondstack.conf import database as database_conf  # noqa: E402
from pondstack.db.connection import migration  # noqa: E402
from pondstack.db.connection.engine import Database  # noqa: E402
from pondstack.devices.emulated import EmulatedDevice, create_device  # noqa: E402
from pondstack.devices.heads import Head, machine_id, set_head  # noqa: E402
from pondstack.devices.identity import pool_uuid  # noqa: E402
from pondstack.domain.errors import BadRequest, PondError  # noqa: E402
from pondstack.domain.units import DEFAULT_SLICE_MIB  # noqa: E402
from pondstack.domain.zeroing import DeviceMemory  # noqa: E402


def db_sync(conf: cfg.ConfigOpts) -> str:
    """Bring the schema up to date; returns its version. A large table may take its time."""
    database = Database.from_conf(conf, answer_seconds=None)
    try:
        return migration.sync(database, conf.command.revision) or "empty"
    finally:
        database.dispose()


def db_version(conf: cfg.ConfigOpts) -> str:
    """Return the schema's version and the newest that this program knows."""
    database = Database.from_conf(conf)
    try:
        return f"{migration.version(database) or 'empty'} (newest: {migration.head()})"
    finally:
        database.dispose()


def device_create(conf: cfg.ConfigOpts) -> str:
    """Make an emulated pool device; returns what it is."""
    command = conf.command
    info = create_device(
        command.path, command.slices, command.slice_mib, command.serial, command.memory and DeviceMemory(command.memory)
    ).info()
    return (
        f"{command.path}: device {info.serial}, {info.slices_total} slices of {info.slice_mib} MiB, "
        f"pool {pool_uuid(info.serial)}"
    )


def device_head(conf: cfg.ConfigOpts) -> str:
    """List the head by which a host reaches a device with dynamic capacity, or strike it out; returns what was done."""
    command = conf.command
    EmulatedDevice(command.path).info()
    if command.remove:
        set_head(Path(command.path), command.host, None)
        return f"{command.path}: host {command.host} has no head"
    if not command.monitor or not command.device:
        raise BadRequest("give --monitor and --device, or --remove")
    monitor = str(Path(command.monitor).absolute())
    set_head(Path(command.path), command.host, Head(monitor, command.device, machine_id()))
    return f"{command.path}: host {command.host} has the head {command.device} at {monitor}"


def nova_link(_: cfg.ConfigOpts) -> str:
    """Let the Nova of this environment load our compute drivers; returns what was written."""
    return link.link(link.nova_folder())


def nova_unlink(_: cfg.ConfigOpts) -> str:
    """Take that back; returns what was removed."""
    return link.unlink(link.nova_folder())


def _add_commands(commands: Any) -> None:
    nouns = {
        noun: commands.add_parser(noun, help=text).add_subparsers(dest="verb", required=True)
        for noun, text in (
            ("broker", "users of RabbitMQ"),
            ("credentials", "who may take part on the message bus"),
            ("db", "the ledger's schema"),
            ("device", "emulated pool devices"),
            ("escrow", "keys of lent memory that the controllers keep"),
            ("model", "prediction models"),
            ("nova", "the Nova of this environment"),
        )
    }
    sync = nouns["db"].add_parser("sync", help="bring the schema up to date; may be repeated")
    sync.add_argument("revision", nargs="?", default="head", help="schema version to reach (default: the newest)")
    sync.set_defaults(function=db_sync)
    nouns["db"].add_parser("version", help="show the schema's version").set_defaults(function=db_version)
    create = nouns["device"].add_parser("create", help="make an emulated pool device; may be repeated")
    create.add_argument("path", help="folder of the device; all its hosts must see it")
    create.add_argument("--slices", type=_positive, required=True, help="number of slices")
    create.add_argument("--slice-mib", type=_positive, default=DEFAULT_SLICE_MIB, help="size of a slice in MiB")
    create.add_argument("--serial", help="serial number (default: a new one)")
    create.add_argument(
        "--memory",
        choices=[str(kind) for kind in DeviceMemory],
        help="its memory: a file that hosts map (default), that their CXL devices are made of, or memory elsewhere",
    )
    create.set_defaults(function=device_create)
    head = nouns["device"].add_parser("head", help="list the head of a host (driver dcd); may be repeated")
    head.add_argument("path", help="folder of the device")
    head.add_argument("host", help="name of the host, as Nova has it")
    head.add_argument("--monitor", help="QMP socket of the host's QEMU, for pondstack alone")
    head.add_argument("--device", help="id of its cxl-type3 device")
    head.add_argument("--remove", action="store_true", help="strike the head out")
    head.set_defaults(function=device_head)
    broker.add_commands(nouns["broker"])
    credentials.add_commands(nouns["credentials"])
    escrow.add_commands(nouns["escrow"])
    models.add_commands(nouns["model"])
    linked = nouns["nova"].add_parser("link", help="let nova-compute load our drivers; may be repeated")
    linked.set_defaults(function=nova_link)
    unlinked = nouns["nova"].add_parser("unlink", help="take that back; may be repeated")
    unlinked.set_defaults(function=nova_unlink)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def run(arguments: Sequence[str]) -> int:
    """Run one command; 0 when it worked, 1 with the reason on stderr otherwise."""
    conf = cfg.ConfigOpts()
    conf.register_cli_opt(cfg.SubCommandOpt("command", title="commands", handler=_add_commands))
    database_conf.register_opts(conf)
    conf(list(arguments), project="pondstack", prog="pondstack-manage")
    try:
        print(conf.command.function(conf))
    except (PondError, cfg.Error, OSError) as error:
        print(f"pondstack-manage: {error}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Run the command of the command line."""
    return run(sys.argv[1:])
