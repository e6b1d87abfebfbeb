"""Every URL of the API, in one table: who handles it, who may, what goes in, what comes out.

No regular expressions in paths: a 404 of the router could not say what is wrong. To add a route: handler, policy,
schemas, this table, api-ref (page and sample), a gabbi file; api/tests fails for each one that is missing.
"""

from pondstack_api import policies, schemas
from pondstack_api.handlers import (
    agent,
    allocation,
    audit,
    controller,
    history,
    host,
    leader,
    model,
    pool,
    project,
    root,
    slice,
    split,
    telemetry,
)
from pondstack_api.lending_routes import LENDING_ROUTES
from pondstack_api.plan_routes import PLAN_ROUTES
from pondstack_api.planner_routes import PLANNER_ROUTES
from pondstack_api.qos_routes import QOS_ROUTES
from pondstack_api.route import Route

ROUTES: dict[str, dict[str, Route]] = {
    "/": {"GET": Route(root.versions, "Show the API's versions", None, schemas.root.VERSIONS)},
    "/openapi.json": {"GET": Route(root.openapi, "Show this API as an OpenAPI document", None, schemas.root.OPENAPI)},
    "/pools": {
        "GET": Route(
            pool.list_pools, "List pools", policies.pool.LIST, schemas.pool.POOLS, query=schemas.pool.LIST_QUERY
        )
    },
    "/pools/{pool}": {
        "GET": Route(pool.show_pool, "Show a pool", policies.pool.SHOW, schemas.pool.POOL),
        "DELETE": Route(
            pool.remove_pool,
            "Remove a pool",
            policies.pool.DELETE,
            schemas.base.NOTHING,
            status=204,
            since=(1, 7),
            errors=(409,),
        ),
    },
    "/pools/{pool}/slices": {
        "GET": Route(
            slice.list_slices,
            "List the slices of a pool",
            policies.slice.LIST,
            schemas.slice.SLICES,
            query=schemas.slice.LIST_QUERY,
        )
    },
    "/pools/{pool}/slices/{index}": {
        "GET": Route(slice.show_slice, "Show a slice", policies.slice.SHOW, schemas.slice.SLICE)
    },
    "/hosts": {
        "GET": Route(
            host.list_hosts, "List hosts", policies.host.LIST, schemas.host.HOSTS, query=schemas.host.LIST_QUERY
        )
    },
    "/hosts/{name}": {
        "GET": Route(host.show_host, "Show a host", policies.host.SHOW, schemas.host.HOST),
        "PUT": Route(
            host.update_host,
            "Enable or disable a host",
            policies.host.UPDATE,
            schemas.host.HOST,
            body=schemas.host.UPDATE,
            errors=(409,),
        ),
        "DELETE": Route(
            host.remove_host,
            "Remove a host",
            policies.host.DELETE,
            schemas.base.NOTHING,
            status=204,
            since=(1, 7),
            errors=(409,),
        ),
    },
    "/hosts/{name}/fence": {
        "POST": Route(
            host.fence_host,
            "Fence a dead host",
            policies.host.FENCE,
            schemas.host.HOST,
            body=schemas.host.FENCE,
            since=(1, 1),
            errors=(409,),
        )
    },
    "/hosts/{name}/unfence": {
        "POST": Route(
            host.unfence_host,
            "Unfence a host",
            policies.host.UNFENCE,
            schemas.host.HOST,
            body=schemas.host.UNFENCE,
            since=(1, 1),
            errors=(409,),
        )
    },
    "/hosts/{name}/delegate": {
        "POST": Route(
            host.delegate_host,
            "Have a host lend memory",
            policies.host.DELEGATE,
            schemas.lender.OPERATION,
            body=schemas.lender.DELEGATE,
            status=202,
            since=(1, 5),
            errors=(409,),
        )
    },
    "/hosts/{name}/reclaim": {
        "POST": Route(
            host.reclaim_host,
            "Have a host take back what it lends",
            policies.host.RECLAIM,
            schemas.lender.OPERATION,
            body=schemas.lender.RECLAIM,
            status=202,
            since=(1, 5),
            errors=(409,),
        )
    },
    "/hosts/{name}/suspend": {
        "POST": Route(
            host.suspend_host,
            "Put an empty host to sleep",
            policies.host.SUSPEND,
            schemas.host.HOST,
            body=schemas.host.SUSPEND,
            status=202,
            since=(1, 19),
            errors=(409,),
        )
    },
    "/hosts/{name}/wake": {
        "POST": Route(
            host.wake_host,
            "Wake a host",
            policies.host.WAKE,
            schemas.host.HOST,
            body=schemas.host.WAKE,
            status=202,
            since=(1, 19),
            errors=(409,),
        )
    },
    "/hosts/{name}/slices": {
        "PUT": Route(
            host.set_slices,
            "Have a host hold slices for itself",
            policies.host.SET_SLICES,
            schemas.host.HOST,
            body=schemas.host.SET_SLICES,
            status=202,
            since=(1, 11),
            errors=(409,),
        )
    },
    "/hosts/{name}/tiering": {
        "PUT": Route(
            host.set_tiering,
            "Have a host's kernel tier, or not",
            policies.host.SET_TIERING,
            schemas.host.HOST,
            body=schemas.host.SET_TIERING,
            since=(1, 11),
            errors=(409,),
        )
    },
    **LENDING_ROUTES,
    "/agents": {
        "GET": Route(
            agent.list_agents, "List agents", policies.agent.LIST, schemas.agent.AGENTS, query=schemas.agent.LIST_QUERY
        )
    },
    "/agents/{host}": {
        "GET": Route(agent.show_agent, "Show the agent of a host", policies.agent.SHOW, schemas.agent.AGENT)
    },
    "/allocations": {
        "GET": Route(
            allocation.list_allocations,
            "List allocations",
            policies.allocation.LIST,
            schemas.allocation.ALLOCATIONS,
            query=schemas.allocation.LIST_QUERY,
        )
    },
    "/allocations/{uuid}": {
        "GET": Route(
            allocation.show_allocation, "Show an allocation", policies.allocation.SHOW, schemas.allocation.ALLOCATION
        )
    },
    "/audits": {
        "POST": Route(
            audit.create_audit,
            "Audit the ledger",
            policies.audit.CREATE,
            schemas.audit.AUDIT,
            body=schemas.audit.CREATE,
            errors=(409,),
        )
    },
    "/leader": {"GET": Route(leader.show_leader, "Show the leader", policies.leader.SHOW, schemas.leader.LEADER)},
    "/controllers": {
        "GET": Route(
            controller.list_controllers,
            "List controllers",
            policies.controller.LIST,
            schemas.controller.CONTROLLERS,
            query=schemas.controller.LIST_QUERY,
            since=(1, 1),
        )
    },
    # Before the path with a name: the first that fits is taken.
    "/controllers/failover": {
        "POST": Route(
            controller.fail_over,
            "Have another controller lead",
            policies.controller.FAILOVER,
            schemas.controller.FAILOVER_BEGUN,
            body=schemas.controller.FAILOVER,
            status=202,
            since=(1, 1),
            errors=(404, 409),
        )
    },
    "/controllers/{name}": {
        "GET": Route(
            controller.show_controller,
            "Show a controller",
            policies.controller.SHOW,
            schemas.controller.CONTROLLER,
            since=(1, 1),
        )
    },
    "/telemetry/{consumer}": {
        "GET": Route(
            telemetry.show_telemetry,
            "Show what was measured of a guest",
            policies.telemetry.SHOW,
            schemas.telemetry.TELEMETRY,
            query=schemas.telemetry.QUERY,
            since=(1, 3),
        )
    },
    "/history/{consumer}": {
        "GET": Route(
            history.show_history,
            "Show the history of an instance",
            policies.history.SHOW,
            schemas.history.HISTORY,
            since=(1, 12),
        )
    },
    "/models": {
        "GET": Route(
            model.list_models,
            "List prediction models",
            policies.model.LIST,
            schemas.model.MODELS,
            query=schemas.model.LIST_QUERY,
            since=(1, 13),
        )
    },
    "/models/{version}": {
        "GET": Route(
            model.show_model,
            "Show a prediction model",
            policies.model.SHOW,
            schemas.model.MODEL,
            since=(1, 13),
        )
    },
    "/models/{version}/promote": {
        "POST": Route(
            model.promote_model,
            "Have a prediction model serve",
            policies.model.PROMOTE,
            schemas.model.CHANGED,
            body=schemas.model.NOTHING_MORE,
            since=(1, 13),
            errors=(409,),
        )
    },
    "/models/{version}/rollback": {
        "POST": Route(
            model.rollback_model,
            "Have the model before serve again",
            policies.model.ROLLBACK,
            schemas.model.CHANGED,
            body=schemas.model.NOTHING_MORE,
            since=(1, 13),
            errors=(409,),
        )
    },
    "/projects": {
        "GET": Route(
            project.list_projects,
            "List what is set for projects",
            policies.project.LIST,
            schemas.project.PROJECTS,
            query=schemas.project.LIST_QUERY,
            since=(1, 14),
        )
    },
    "/projects/{project_id}": {
        "GET": Route(
            project.show_project,
            "Show what is set for a project",
            policies.project.SHOW,
            schemas.project.PROJECT,
            since=(1, 14),
        ),
        "PUT": Route(
            project.set_project,
            "Set something for a project",
            policies.project.SET,
            schemas.project.PROJECT,
            body=schemas.project.CHANGES,
            since=(1, 14),
        ),
    },
    "/splits": {
        "GET": Route(
            split.list_splits,
            "List what instances were placed with",
            policies.split.LIST,
            schemas.split.SPLITS,
            query=schemas.split.LIST_QUERY,
            since=(1, 13),
        )
    },
    "/splits/{consumer}": {
        "GET": Route(
            split.show_split,
            "Show what an instance was placed with",
            policies.split.SHOW,
            schemas.split.SPLIT,
            since=(1, 9),
        )
    },
    **QOS_ROUTES,
    **PLAN_ROUTES,
    **PLANNER_ROUTES,
}

PUBLIC_PATHS = frozenset(path for path, methods in ROUTES.items() if any(r.policy is None for r in methods.values()))
"""Paths that need no token."""
