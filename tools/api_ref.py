#!/usr/bin/env python3
"""Draws api-ref/ from the table of routes, the schemas and the policies, so that it cannot fall behind.

`tools/api_ref.py` rewrites the pages; `--check` only says which are out of date (exit code 1); `--samples` also takes
new samples (JSON files in api-ref/samples/) from the real application over the sample rack.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from pondstack_api import microversion, policies  # noqa: E402
from pondstack_api.route import Route  # noqa: E402
from pondstack_api.routes import ROUTES  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "api-ref"
SAMPLES = FOLDER / "samples"
RULES = {rule.name: rule for rule in policies.list_rules()}
BODIES: dict[str, Any] = {
    "update_host": {"enabled": False, "disabled_reason": "memory is replaced", "generation": 0},
    "create_audit": {"repair": False},
    "set_slices": {"purpose": "base", "count": 1, "generation": 0},
    "set_tiering": {"on": False, "generation": 0},
    "fail_over": {"to": "controller-2"},
    "fence_host": {"reason": "its power supply burned", "force": False, "generation": 0},
    "unfence_host": {},
    "promote_model": {},
    "rollback_model": {},
    "mitigate": {"forced": False, "method": "copy"},
    "abort": {},
    "create_plan": {"overload": "mad", "afterwards": "keep", "most_migrations": 50},
    "apply_plan": {},
    "cancel_plan": {},
    "drain_host": {},
    "restore_host": {},
    "create_planner_job": {"source": "cloud", "window_days": 30, "settings": {"seeds": [1, 2, 3]}},
    "cancel_planner_job": {},
    "freeze_consolidation": {"frozen": True, "reason": "kernels are upgraded"},
    "limit_consolidation": {"reserve_percent": 20, "least_awake": 2},
    "record_performance": {"metric": "p99_ms", "value": 12.5, "higher_is_better": False},
    "set_project": {"default_policy": "auto", "max_pool_percent": 40},
    "delegate_host": {"mib": 512, "kind": "zombie", "operation_id": "3f0c1f7e-8a52-4d0e-9c1b-6a7d5e2b4c90"},
    "suspend_host": {"driver": "lowpower-s0", "operation_id": "7d1b0a52-5b8e-4a2c-9d3f-1e6f8c4b2a70"},
    "wake_host": {"operation_id": "c2a4f6e8-0b1d-4c3e-8f5a-7b9d1e3f5a60"},
    "reclaim_host": {"mib": 128, "seconds": 60, "operation_id": "b7d9e2c4-1f36-4e8a-8d5c-0a9b3c6e7f12"},
}
PATH_NAMES = {
    "pool": "name or UUID of the pool",
    "index": "index of the {noun}, from 0",
    "name": "name of the {noun}",
    "host": "name of the {noun}'s host",
    "buffers.host": "name of the host that lends",
    "lenders.host": "name of the host that lends",
    "uuid": "UUID of the allocation",
    "loan": "UUID of the loan",
    "plan": "UUID of the plan",
    "job": "UUID of the job",
    "consumer": "UUID of the instance",
    "version": "version of the model",
    "project_id": "id of the project",
}
VERBS = frozenset(
    [
        "fence",
        "unfence",
        "delegate",
        "reclaim",
        "promote",
        "rollback",
        "mitigate",
        "abort",
        "report",
        "apply",
        "cancel",
        "drain",
        "restore",
        "suspend",
        "wake",
    ]
)
NAMES = {"fence_host": "host-3", "delegate_host": "host-2", "reclaim_host": "host-3"}
"""Whose sample is of another host: of a silent one; of hosts that are asked for nothing yet."""
QUERIES = {"list_slices": "?limit=3", "list_allocations": "?limit=1", "list_buffers": "?limit=3"}


def noun_of(path: str) -> str:
    """Return the page of a path: its last noun; what follows a noun at once is a verb, and so are VERBS."""
    parts = [part for part in path.strip("/").split("/") if part not in VERBS]
    nouns = [part for before, part in zip(["{}", *parts], parts, strict=False) if before[0] == "{" and part[:1] != "{"]
    return nouns[-1] if nouns[-1] and "." not in nouns[-1] else "root"


def routes() -> Iterator[tuple[str, str, Route]]:
    """Yield method, path, route."""
    for path, methods in ROUTES.items():
        for method, route in methods.items():
            yield method, path, route


def pages() -> dict[str, str]:
    """Return every page by file name."""
    nouns: dict[str, list[str]] = {}
    for method, path, route in routes():
        nouns.setdefault(noun_of(path), []).append(section(method, path, route))
    found = {f"{noun}.md": f"# {noun.capitalize()}\n\n" + "\n".join(parts) for noun, parts in nouns.items()}
    return {"index.md": index(), **found}


def index() -> str:
    """Return the table of all routes."""
    lines = [
        "# API reference",
        "",
        "`tools/api_ref.py` writes these pages from the routes, schemas and policies. How to serve the API, and the",
        "conventions of all requests: [The REST API](../doc/source/reference/api.md). Error codes:",
        "[Errors](../doc/source/reference/errors.md).",
        "",
        "| request | what | policy |",
        "|---|---|---|",
    ]
    for method, path, route in routes():
        target = f"{noun_of(path)}.md"
        lines.append(f"| [`{method} {path}`]({target}) | {route.summary} | {code(route.policy) or 'open to all'} |")
    lines += ["", "## Microversions", "", "| version | what it added |", "|---|---|"]
    lines += [f"| {version} | {text} |" for version, text in microversion.VERSIONS.items()]
    return "\n".join(lines) + "\n"


def code(text: str | None) -> str:
    """Return a text set as code."""
    return f"`{text}`" if text else ""


def section(method: str, path: str, route: Route) -> str:
    """Return the section of one route."""
    lines = [f"## {method} {path}", "", (route.handler.__doc__ or "").strip(), ""]
    lines += [f"{access(route)}{came_with(route)}", ""]
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    rows = [(name, "path", "", path_name(noun_of(path), name)) for name in names]
    rows += [(*field[:1], "query", *field[1:]) for field in fields(route.query)]
    rows += [(*field[:1], "body", *field[1:]) for field in fields(route.body or {})]
    if rows:
        lines += ["| parameter | in | type | what |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {place} | {kind or 'string'} | {text} |" for name, place, kind, text in rows]
        lines.append("")
    if route.response:
        lines += ["| field of the answer | type | what |", "|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in fields(route.response)]
        lines.append("")
    lines += [f"Errors: {errors(route, bool(names))}.", ""]
    lines += samples(route)
    return "\n".join(lines)


def path_name(noun: str, name: str) -> str:
    """Return what a name in the path of a noun means."""
    return PATH_NAMES.get(f"{noun}.{name}", PATH_NAMES.get(name, "")).format(noun=noun[:-1])


def access(route: Route) -> str:
    """Return who may."""
    if route.policy is None:
        return "Open to everybody, without a token."
    default = RULES[route.policy].check_str
    return (
        f"Policy {code(route.policy)}, by default {code(default)}: {RULES[default.removeprefix('rule:')].description}"
    )


def came_with(route: Route) -> str:
    """Return the microversion that a later route needs, and the status of an answer that is not 200."""
    text = f" Since microversion {'.'.join(map(str, route.since))}." if route.since > (1, 0) else ""
    return f"{text} Answers {route.status}." if route.status != 200 else text


def errors(route: Route, has_names: bool) -> str:
    """Return the status codes that the route may answer beside its own."""
    codes = [400, 406]
    codes += [401, 403, 503] if route.policy else []
    codes += [404] if has_names or "marker" in route.query["properties"] else []
    codes += [413, 415] if route.body is not None else []
    codes += [409] if "generation" in (route.body or {}).get("properties", {}) else []
    return ", ".join(map(str, sorted({*codes, *route.errors})))


def fields(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (dotted name, type, description) of every property; an array's items have `[]`."""
    for name, item in schema.get("properties", {}).items():
        plain = item.get("anyOf", [item])[0]
        kind = plain["type"] + (" or null" if "anyOf" in item else "")
        text = item.get("description", "")
        if name not in schema.get("required", ()):
            text += " (optional)"
        yield prefix + name, kind, text
        yield from fields(plain, f"{prefix}{name}.")
        yield from fields(plain.get("items", {}), f"{prefix}{name}[].")


def samples(route: Route) -> list[str]:
    """Return the samples of a route as the page shows them."""
    lines = []
    for title, name in (("Request", f"{route.handler.__name__}-request"), ("Answer", route.handler.__name__)):
        file = SAMPLES / f"{name}.json"
        if file.exists():
            lines += [f"{title} ([{file.name}](samples/{file.name})):", "", "```json", file.read_text().rstrip(), "```"]
            lines.append("")
    return lines


def live_samples() -> dict[str, Any]:
    """Return the samples by file name, answered by the real application over the sample rack."""
    from tests.fixtures import sample_jobs, sample_models, sample_plans, sample_rack
    from tests.fixtures.api import URL, ApiFixture

    found: dict[str, Any] = {}
    for method, path, route in routes():
        name = route.handler.__name__
        if path == "/openapi.json" or not route.response:
            continue
        with TemporaryDirectory() as folder:
            api = ApiFixture(Path(folder))
            names = {"pool": "pool0", "index": 4, "name": "host-1", "host": "host-1", "uuid": api.allocations[0]}
            names["consumer"], names["project_id"] = sample_rack.CONSUMERS[name == "abort"], sample_rack.BLUE
            names["version"] = sample_models.CANDIDATE if name == "promote_model" else sample_models.RUNNING
            names["loan"], names["plan"] = sample_rack.LOAN, sample_plans.PROPOSED
            names["job"] = sample_jobs.WAITING if name == "cancel_planner_job" else sample_jobs.ENDED
            if noun_of(path) == "controllers":
                names["name"] = "controller-1"
            names["name"] = NAMES.get(name, names["name"])
            if name == "wake_host":
                api.controller.suspend_host(name=names["name"])
            url = URL + path.format(**names) + QUERIES.get(name, "")
            body = BODIES.get(name)
            headers = {"X-Auth-Token": "admin:ops", "OpenStack-API-Version": f"{microversion.SERVICE_TYPE} latest"}
            answer = api.session().request(method, url, headers=headers, json=body)
            answer.raise_for_status()
            api.close()
        found[f"{name}.json"] = answer.json()
        if body is not None:
            found[f"{name}-request.json"] = body
    return found


def main(arguments: list[str]) -> int:
    """Return 0, or 1 when `--check` finds a page out of date."""
    if "--samples" in arguments:
        SAMPLES.mkdir(exist_ok=True)
        for name, sample in live_samples().items():
            (SAMPLES / name).write_text(json.dumps(sample, indent=2) + "\n")
    stale = []
    fresh = pages()
    for name, text in fresh.items():
        file = FOLDER / name
        if not file.exists() or file.read_text() != text:
            stale.append(name)
            if "--check" not in arguments:
                file.write_text(text)
    stale += [file.name for file in FOLDER.glob("*.md") if file.name not in fresh]
    if "--check" in arguments and stale:
        print(f"api-ref is out of date, run tools/api_ref.py: {', '.join(stale)}", file=sys.stderr)
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
