"""`pondstack-status --config-file FILE upgrade check`: 0 ready, 1 warnings, 2 failures."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from pondstack import native_threads

native_threads.use()

from oslo_config import cfg  # noqa: E402 (threading first)

from pondstack.cmd import model_text  # noqa: E402
from pondstack.controller.pool.devices import parse_spec  # noqa: E402
from pondstack.controller.service import register_opts  # noqa: E402
from pondstack.db.connection import migration  # noqa: E402
from pondstack.db.connection.engine import Database  # noqa: E402
from pondstack.db.read.reader import SqlReader  # noqa: E402
from pondstack.db.store import registry  # noqa: E402
from pondstack.domain.errors import BadRequest, PondError  # noqa: E402
from pondstack.rpc import transport as identity  # noqa: E402
from pondstack.rpc.identity.identity import Identity, Role  # noqa: E402

SOON_DAYS = 14


class Code(IntEnum):
    """Results as Nova's and Placement's status commands have them; the worst one is the exit code."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of one check."""

    code: Code
    detail: str = ""


def check_schema(conf: cfg.ConfigOpts) -> Result:
    """The database answers and its schema is the newest."""
    try:
        database = Database.from_conf(conf)
        database.ping()
        found, newest = migration.version(database), migration.head()
    except (PondError, cfg.Error) as error:
        return Result(Code.FAILURE, str(error))
    if found != newest:
        return Result(Code.FAILURE, f"the schema is at {found}, not {newest}; run pondstack-manage db sync")
    return Result(Code.SUCCESS)


def check_devices(conf: cfg.ConfigOpts) -> Result:
    """[controller] pool_devices can be parsed and is not empty."""
    try:
        specs = [parse_spec(text) for text in conf.controller.pool_devices]
    except BadRequest as error:
        return Result(Code.FAILURE, str(error))
    return Result(Code.SUCCESS) if specs else Result(Code.WARNING, "[controller] pool_devices is empty: no pool memory")


def check_quarantine(conf: cfg.ConfigOpts) -> Result:
    """No slice is quarantined: an upgrade is a bad moment to have unexplained ones."""
    try:
        pools = SqlReader.from_conf(conf).pools()
    except (PondError, cfg.Error) as error:
        return Result(Code.FAILURE, str(error))
    held = {pool.name: pool.slices["quarantined"] for pool in pools if pool.slices["quarantined"]}
    if held:
        return Result(Code.WARNING, f"quarantined slices: {held}; run openstack memory audit")
    return Result(Code.SUCCESS)


def check_model(conf: cfg.ConfigOpts) -> Result:
    """No model that runs, of any kind, is corrupt or stale, and their budget holds; none at all is no fault."""
    try:
        database = Database.from_conf(conf)
        found = database.read(registry.models)
        broken = database.read(registry.corrupt)
    except (PondError, cfg.Error) as error:
        return Result(Code.FAILURE, str(error))
    if broken:
        version, why = next(iter(broken.items()))
        return Result(
            Code.WARNING, f"model {version} is corrupt: {why}; run pondstack-manage model rollback, and train"
        )
    now, most = datetime.now(UTC), conf.model.max_age_days
    for item in found:
        if used_up := model_text.used_up(item):
            return Result(Code.WARNING, f"{used_up}; see pondstack-manage model show")
    told = [(item, why) for item in found if (why := model_text.stale(item, most, now))]
    if not told:
        return Result(Code.SUCCESS)
    stale = "; ".join(f"model {item.version} is stale (kind {item.kind}): {why}" for item, why in told)
    return Result(Code.WARNING, f"{stale}; see pondstack-manage model list")


def check_identity(conf: cfg.ConfigOpts) -> Result:
    """This controller has a credential that does not end soon, and lets nothing in that nobody signed."""
    try:
        border = identity.border_of(conf, Identity(Role.CONTROLLER, conf.controller.name))
    except PondError as error:
        return Result(Code.FAILURE, str(error))
    if border is None:
        return Result(Code.SUCCESS)
    if border.permissive:
        until = conf.pondstack_identity.permissive_until
        return Result(
            Code.WARNING,
            f"[pondstack_identity] permissive_until = {until}: until then whoever has a password of the broker may "
            "free and fence all memory of the rack; upgrade all services, then take the option out",
        )
    if (days := border.days_left) < SOON_DAYS:
        return Result(
            Code.WARNING,
            f"the credential of {border.identity} ends in {days} days; run pondstack-manage credentials issue "
            f"{border.identity}",
        )
    return Result(Code.SUCCESS)


CHECKS: dict[str, Callable[[cfg.ConfigOpts], Result]] = {
    "Schema": check_schema,
    "Identity": check_identity,
    "Pool devices": check_devices,
    "Quarantine": check_quarantine,
    "Model": check_model,
}


def upgrade_check(conf: cfg.ConfigOpts) -> int:
    """Run all checks, print their results, return the worst."""
    worst = Code.SUCCESS
    for name, check in CHECKS.items():
        # The later checks need the schema.
        result = check(conf) if worst is not Code.FAILURE else Result(Code.FAILURE, "not tried")
        print(f"{name:14} {result.code.name.title():8} {result.detail}".rstrip())
        worst = max(worst, result.code)
    return int(worst)


def run(arguments: Sequence[str]) -> int:
    """Run one command."""
    conf = cfg.ConfigOpts()

    def add(commands: object) -> None:
        parser = commands.add_parser("upgrade", help="upgrades")  # type: ignore[attr-defined]
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("check", help="is this installation ready?").set_defaults(function=upgrade_check)

    conf.register_cli_opt(cfg.SubCommandOpt("command", title="commands", handler=add))
    register_opts(conf)
    conf(list(arguments), project="pondstack", prog="pondstack-status")
    return int(conf.command.function(conf))


def main() -> int:
    """Run the command of the command line."""
    return run(sys.argv[1:])
