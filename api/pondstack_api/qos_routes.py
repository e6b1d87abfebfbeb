"""The part of the table of routes (pondstack_api.routes) that is of mitigations and of the QoS monitor."""

from pondstack_api import policies, schemas
from pondstack_api.handlers import mitigation, performance, qos
from pondstack_api.route import Route

QOS_ROUTES: dict[str, dict[str, Route]] = {
    "/allocations/{consumer}/mitigate": {
        "POST": Route(
            mitigation.mitigate,
            "Take an instance's pool memory away for good",
            policies.mitigation.BEGIN,
            schemas.mitigation.MITIGATION,
            body=schemas.mitigation.BEGIN,
            status=202,
            since=(1, 16),
            errors=(409,),
        )
    },
    "/allocations/{consumer}/abort": {
        "POST": Route(
            mitigation.abort,
            "Put an end to a mitigation",
            policies.mitigation.ABORT,
            schemas.mitigation.MITIGATION,
            body=schemas.mitigation.ABORT,
            status=202,
            since=(1, 16),
            errors=(409,),
        )
    },
    "/mitigations": {
        "GET": Route(
            mitigation.list_mitigations,
            "List mitigations",
            policies.mitigation.LIST,
            schemas.mitigation.MITIGATIONS,
            query=schemas.mitigation.LIST_QUERY,
            since=(1, 16),
        )
    },
    "/qos": {
        "GET": Route(
            qos.list_decisions,
            "List the decisions of the QoS monitor",
            policies.qos.LIST,
            schemas.qos.DECISIONS,
            query=schemas.qos.LIST_QUERY,
            since=(1, 16),
        )
    },
    # Before the path with an instance: the first that fits is taken.
    "/qos/report": {
        "GET": Route(
            qos.show_report,
            "Compare the control group with the others",
            policies.qos.REPORT,
            schemas.qos.REPORT,
            since=(1, 16),
        )
    },
    "/qos/{consumer}": {
        "GET": Route(
            qos.show_qos,
            "Show whether an instance was corrected",
            policies.qos.SHOW,
            schemas.qos.QOS,
            since=(1, 16),
        )
    },
    "/performance/{consumer}": {
        "PUT": Route(
            performance.record_performance,
            "Tell a figure of an instance's performance",
            policies.performance.RECORD,
            schemas.qos.PERFORMANCE,
            body=schemas.qos.PERFORM,
            since=(1, 16),
            errors=(409,),
        )
    },
}
