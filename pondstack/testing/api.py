"""The REST API in process over the sample rack, without Keystone: tokens `user:project`, roles in header X-Roles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import requests
from requests.adapters import BaseAdapter
from sqlalchemy import select, update
from webob import Request

from pondstack.db.ledger import Ledger
from pondstack.db.models import HostRow
from pondstack.db.sql_reader import SqlReader
from pondstack.domain.errors import Conflict, HostUnusable, OperationMismatch
from pondstack.testing import sample_rack
from pondstack_api import config, deploy
from pondstack_api.services import Services

URL = "http://memory.test"


class ControllerStandIn:
    """Answers what the API asks of a controller; hosts change in the real ledger. With `error` set, calls raise it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.error: Exception | None = None
        self.audits: list[bool] = []
        self.failovers: list[tuple[str, str | None]] = []

    def set_host(
        self, *, name: str, enabled: bool, reason: str, generation: int | None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Enable or disable a host."""
        del operation_id
        self._check()
        return {"name": name, "generation": self._ledger.set_host(name, enabled, reason, generation)}

    def fence_host(self, *, name: str, reason: str, force: bool, operation_id: str | None = None) -> dict[str, Any]:
        """Fence a host in the ledger; its devices confirm at once."""
        self._check()
        self._ledger.fence_host(name, reason, force=force, operation_id=operation_id)
        reader = SqlReader(self._ledger.database)
        mine = [item.index for item in reader.slices(sample_rack.POOL, state="quarantined", host=name)]
        self._ledger.audit_slices(sample_rack.POOL, mine, "the device keeps it out")
        return {"name": name, "fenced": True, "pool_mib": 0}

    def unfence_host(self, *, name: str, operation_id: str | None = None) -> dict[str, Any]:
        """Unfence a host in the ledger."""
        self._check()
        self._ledger.unfence_host(name, operation_id)
        return {"name": name, "fenced": False}

    def delegate_host(self, *, name: str, mib: int, kind: str, operation_id: str | None = None) -> dict[str, Any]:
        """Have a host lend; its agent begins, and goes on when `advance` says so."""
        del kind
        return self._begin(name, "lend", mib, operation_id)

    def reclaim_host(
        self, *, name: str, mib: int, seconds: float | None = None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Have a host take memory back, as delegate_host."""
        del seconds
        return self._begin(name, "reclaim", mib, operation_id)

    def advance(self, name: str, operation_id: str, **changes: Any) -> None:
        """Let a host's agent report how far it is: `state`, `done_mib`, `reason`."""
        lending = self._lending(name)
        told = [item | changes if item["operation_id"] == operation_id else item for item in lending["operations"]]
        self._report(name, {**lending, "operations": told})

    def _begin(self, name: str, verb: str, mib: int, operation_id: str | None) -> dict[str, Any]:
        """Note an operation of a host, or answer the one that has its id already."""
        self._check()
        lending = self._lending(name)
        for item in lending["operations"]:
            if item["operation_id"] == operation_id:
                if (item["verb"], item["mib"]) != (verb, mib):
                    raise OperationMismatch(f"operation {operation_id} was used for another request; make a new id")
                return dict(item)
            if item["state"] != "done":
                raise Conflict(f"{item['verb']} {item['operation_id']} is under way on this host; wait for its end")
        begun = {"operation_id": operation_id or str(uuid4()), "verb": verb, "state": "pending", "mib": mib}
        begun |= {"done_mib": 0, "reason": ""}
        self._report(name, {**lending, "operations": [*lending["operations"], begun]})
        return begun

    def _lending(self, name: str) -> dict[str, Any]:
        """Return what a host last reported of lending; raises HostUnusable when it takes no part."""
        query = select(HostRow.lending).where(HostRow.name == name)
        found = self._ledger.database.read(lambda session: session.execute(query).scalar_one_or_none())
        if found is None:
            raise HostUnusable(f"host {name} takes no part in lending; see [lending] of its agent")
        return found

    def _report(self, name: str, lending: dict[str, Any]) -> None:
        change = update(HostRow).where(HostRow.name == name).values(lending=lending)
        self._ledger.database.write(lambda session: session.execute(change))

    def audit(self, *, repair: bool) -> dict[str, Any]:
        """Report the sample rack's quarantined slice; a repair leaves nothing."""
        self._check()
        self.audits.append(repair)
        finding = {
            "code": "quarantined",
            "severity": "warning",
            "subject": "pool0 slice 4",
            "detail": "the agent of host-3 does not answer",
            "action": "none: the host must answer or be fenced first",
        }
        return {
            "clean": repair,
            "findings": [] if repair else [finding],
            "totals": {"pools": 1, "slices": 8, "hosts": 3, "allocations": 3},
        }

    def failover(self, *, leader: str, to: str | None) -> None:
        """Let another controller lead at once."""
        self._check()
        self.failovers.append((leader, to))
        others = [name for name in sample_rack.CONTROLLERS if name != leader]
        self._ledger = sample_rack.hand_over(self._ledger.database, to or others[0])

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


class ApiFixture:
    """One application with a rack of its own, in SQLite in `folder`; its `controller` may be made to fail."""

    def __init__(self, folder: Path, transport_url: str = "fake:/", **options: Any) -> None:
        """Write a pondstack.conf into `folder` and deploy. `options`: of [api]; a dictionary is a group of its own."""
        groups = {name: value for name, value in options.items() if isinstance(value, dict)}
        plain = {name: value for name, value in options.items() if name not in groups}
        groups |= {"DEFAULT": {"transport_url": transport_url}, "api": {"auth_strategy": "noauth2", **plain}}
        file = folder / "pondstack.conf"
        file.write_text("".join(_section(name, values) for name, values in groups.items()))
        self.conf = config.load({config.VARIABLE: str(file)})
        self.database, self.ledger, self.allocations = sample_rack.open_copy(folder)
        self.reader = SqlReader(self.database, sample_rack.DOWN_SECONDS, sample_rack.DOWN_SECONDS)
        self.controller = ControllerStandIn(self.ledger)
        self.services = Services(self.conf, self.reader, self.controller)
        self.application = deploy.deploy(self.conf, self.services)

    def session(self) -> requests.Session:
        """Return a requests session whose every request goes to this application."""
        session = requests.Session()
        session.mount("http://", _WsgiAdapter(self.application))
        return session

    def silence(self, name: str) -> None:
        """Let a controller have ended, whether it led or not."""
        with self.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE controllers SET role = 'down' WHERE name = ?", (name,))
            holder = (sample_rack.HOLDERS[name],)
            connection.exec_driver_sql("UPDATE leadership SET expires_at = 0 WHERE holder = ?", holder)

    def close(self) -> None:
        """Close the database."""
        self.database.dispose()


def _section(name: str, values: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in values.items()), ""])


class _WsgiAdapter(BaseAdapter):
    """Carries requests' requests into a WSGI application."""

    def __init__(self, application: deploy.Application) -> None:
        super().__init__()
        self._application = application

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:  # type: ignore[override]
        """Answer one request."""
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        wsgi = Request.blank(request.url or URL, method=request.method, headers=dict(request.headers), body=body)
        answer = wsgi.get_response(self._application)
        response = requests.Response()
        response.status_code = answer.status_int
        response.reason = answer.status.partition(" ")[2]
        response.headers.update(answer.headers)
        response._content = answer.body
        response.url = request.url or URL
        response.request = request
        return response

    def close(self) -> None:
        """Nothing to close."""
