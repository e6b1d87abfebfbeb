"""`pondstack-manage credentials issue|revoke|list`: who may take part on the message bus."""

import argparse
import shutil
from pathlib import Path
from typing import Any

from oslo_config import cfg

from pondstack.db.connection.engine import Database
from pondstack.db.store import revocations
from pondstack.domain.errors import BadRequest, PondError
from pondstack.rpc.identity.credential import AUTHORITY, Credential, file_name, utc_now
from pondstack.rpc.identity.identity import Identity
from pondstack.rpc.identity.issuer import Issuer, write_private, write_public

FOLDER = "/etc/pondstack/credentials"
AUTHORITY_FOLDER = "/etc/pondstack/authority"
AUTHORITY_KEY = "authority.key"
DAYS = 365
RENEW_DAYS = 30
"""A credential that ends sooner is issued anew."""


def issue(conf: cfg.ConfigOpts) -> str:
    """Make the credentials that are missing or end soon, and the authority at the first time; returns what was done."""
    command = conf.command
    identities = [Identity.parse(text) for text in command.identities]
    authority, folder = Path(command.authority), Path(command.folder)
    issuer = Issuer.open(authority / AUTHORITY_KEY, authority / AUTHORITY)
    folder.mkdir(parents=True, exist_ok=True)
    write_public(folder / AUTHORITY, (authority / AUTHORITY).read_bytes())
    return "\n".join(_issue(issuer, folder, identity, command) for identity in identities)


def _issue(issuer: Issuer, folder: Path, identity: Identity, command: Any) -> str:
    path = folder / file_name(identity)
    if not command.renew and (days := _days_left(issuer, path, identity)) is not None and days > RENEW_DAYS:
        done = f"{path}: {identity}, valid for {days} more days; nothing was done"
    else:
        write_private(path, issuer.issue(identity, command.days).pem())
        done = f"{path}: {identity}, valid for {command.days} days"
    if command.owner:
        shutil.chown(path, command.owner)
    return done


def _days_left(issuer: Issuer, path: Path, identity: Identity) -> int | None:
    """Return for how long the credential in a file is good, None for none of this authority and party."""
    if not path.exists():
        return None
    try:
        found = Credential.load(path)
    except BadRequest:
        return None
    if found.identity != identity or not issuer.signed(found):
        return None
    return (found.certificate.not_valid_after_utc - utc_now()).days


def revoke(conf: cfg.ConfigOpts) -> str:
    """Have nobody believe the credentials of a party that were issued until now; returns what to do next."""
    identity = Identity.parse(conf.command.identity)
    database = Database.from_conf(conf)
    try:
        database.write(lambda session: revocations.revoke(session, str(identity)))
    finally:
        database.dispose()
    return (
        f"{identity} is not believed any more: by the controllers within seconds, by the agents from their next "
        f"heartbeat on. `pondstack-manage credentials issue --renew {identity}` lets it in again"
    )


def listed(conf: cfg.ConfigOpts) -> str:
    """Return the credentials in a folder with their ends, one in a line."""
    folder = Path(conf.command.folder)
    lines = []
    for path in sorted(folder.glob("*-*.pem")):
        try:
            found = Credential.load(path)
        except PondError as error:
            lines.append(f"{path.name}: {error}")
        else:
            lines.append(f"{path.name}: {found.identity}, until {found.certificate.not_valid_after_utc:%Y-%m-%d}")
    return "\n".join(lines) or f"{folder} has no credentials"


def add_commands(verbs: Any) -> None:
    """Add the commands of the noun `credentials` to a parser."""
    made = verbs.add_parser("issue", help="make credentials that are missing or end soon; may be repeated")
    made.add_argument("identities", nargs="+", metavar="ROLE/NAME", help="such as agent/compute1, scheduler/node1")
    made.add_argument("--folder", default=FOLDER, help=f"where they go ({FOLDER})")
    made.add_argument("--authority", default=AUTHORITY_FOLDER, help=f"folder of the authority ({AUTHORITY_FOLDER})")
    made.add_argument("--days", type=_days, default=DAYS, help=f"for how many days they are valid ({DAYS})")
    made.add_argument("--owner", help="user whose service reads them (the one who runs this)")
    made.add_argument("--renew", action="store_true", help="make them anew, also where they are good for long")
    made.set_defaults(function=issue)
    ended = verbs.add_parser("revoke", help="have nobody believe a party's present credentials; may be repeated")
    ended.add_argument("identity", metavar="ROLE/NAME")
    ended.set_defaults(function=revoke)
    shown = verbs.add_parser("list", help="list the credentials in a folder")
    shown.add_argument("--folder", default=FOLDER, help=f"which ({FOLDER})")
    shown.set_defaults(function=listed)


def _days(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 3650:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 3650")
    return value
