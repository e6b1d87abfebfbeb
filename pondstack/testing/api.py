"""The REST API in process over the sample rack, without Keystone: tokens `user:project`, roles in header X-Roles."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests
from requests.adapters import BaseAdapter
from webob import Request

from pondstack.db.engine import Database
from pondstack.db.ledger import Ledger
from pondstack.db.sql_reader import SqlReader
from pondstack.db.views import ControllerView
from pondstack.testing import sample_rack
from pondstack_api import config, deploy
from pondstack_api.services import Services

URL = "http://memory.test"


class SampleReader(SqlReader):
    """Reads the sample rack, whose three controllers are in `nodes`: one leads, one stands by, one is down."""

    def __init__(self, database: Database, agent_down_seconds: float) -> None:
        super().__init__(database, agent_down_seconds)
        names = {"controller-1": "leader", "controller-2": "standby", "controller-3": "down"}
        self.nodes = {name: self._view(name, role) for name, role in names.items()}

    @staticmethod
    def _view(name: str, role: str) -> ControllerView:
        down = role == "down"
        return ControllerView(
            name=name,
            holder=f"{name}:{100 + int(name[-1])}:5f0a11b2",
            role=role,
            epoch=sample_rack.EPOCH if role == "leader" else 0,
            started_at=time.time() - sample_rack.SILENT_SECONDS,
            seen_seconds=sample_rack.SILENT_SECONDS if down else 0.3,
            followed_sequence=2 if down else 9,
            lag=7 if down else 0,
        )

    def controllers(self) -> list[ControllerView]:
        """List the controllers by name."""
        return [self.nodes[name] for name in sorted(self.nodes)]


class ControllerStandIn:
    """Answers what the API asks of a controller; hosts change in the real ledger. With `error` set, calls raise it."""

    def __init__(self, ledger: Ledger, reader: SampleReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self.error: Exception | None = None
        self.audits: list[bool] = []
        self.failovers: list[tuple[str, str | None]] = []

    def set_host(self, *, name: str, enabled: bool, reason: str, generation: int | None) -> dict[str, Any]:
        """Enable or disable a host."""
        self._check()
        return {"name": name, "generation": self._ledger.set_host(name, enabled, reason, generation)}

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
        nodes = self._reader.nodes
        successor = to or next(name for name, node in nodes.items() if node.role == "standby")
        epoch = nodes[leader].epoch + 1
        nodes[leader] = replace(nodes[leader], role="standby")
        nodes[successor] = replace(nodes[successor], role="leader", epoch=epoch)

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
        self.reader = SampleReader(self.database, sample_rack.DOWN_SECONDS)
        self.controller = ControllerStandIn(self.ledger, self.reader)
        self.services = Services(self.conf, self.reader, self.controller)
        self.application = deploy.deploy(self.conf, self.services)

    def session(self) -> requests.Session:
        """Return a requests session whose every request goes to this application."""
        session = requests.Session()
        session.mount("http://", _WsgiAdapter(self.application))
        return session

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
