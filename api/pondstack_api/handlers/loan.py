"""Loans: who borrows which buffers of whom. A project sees its own ones, never a host or a buffer."""

from dataclasses import asdict
from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.ledger.loan_records import LoanRecord
from pondstack_api import render
from pondstack_api.errors import Forbidden
from pondstack_api.ownership import listed_project
from pondstack_api.pagination import page
from pondstack_api.policies import loan as policy
from pondstack_api.request import Reply, Request


def body(loan: LoanRecord, *, with_place: bool) -> dict[str, Any]:
    """Return a loan as the API shows it; `with_place`: who borrows of whom, which only the operator may know."""
    document: dict[str, Any] = {
        "uuid": loan.uuid,
        "consumer_uuid": loan.consumer_uuid,
        "project_id": loan.project_id,
        "user_id": loan.user_id,
        "guaranteed": loan.guaranteed,
        "state": loan.state,
        "lent_mib": loan.lent_mib,
        "created_at": render.time(loan.created_at),
    }
    if with_place:
        document |= {"host": loan.host, "buffers": [asdict(run) for run in loan.buffers]}
    return document


def list_loans(request: Request) -> Reply:
    """List loans by UUID: all projects' for the operator, else the own project's."""
    query, reader = request.query, request.services.reader
    with_place = request.context.can(policy.HOSTS)
    if not with_place and ("host" in query or "lender" in query):
        raise Forbidden("only the operator may filter loans by host or lender; use consumer_uuid")
    project = listed_project(request, policy.ALL_PROJECTS, "loans")
    guaranteed = {"true": True, "false": False}.get(query.get("guaranteed", ""))

    def fetch(limit: int) -> list[LoanRecord]:
        return reader.loans.loans(
            project_id=project,
            consumer_uuid=query.get("consumer_uuid"),
            host=query.get("host"),
            lender=query.get("lender"),
            guaranteed=guaranteed,
            limit=limit,
            marker=query.get("marker"),
        )

    return page(
        request, "loans", "/loans", fetch, lambda loan: loan.uuid, lambda loan: body(loan, with_place=with_place)
    )


def show_loan(request: Request) -> Reply:
    """Show a loan; one of another project does not exist for a project's user."""
    uuid = request.args["loan"]
    unknown = NotFound(f"no loan {uuid}; GET /loans lists those that you may see")
    try:
        loan = request.services.reader.loans.loan(uuid)
    except NotFound:
        raise unknown from None
    if not request.context.can(policy.SHOW, {"project_id": loan.project_id}):
        raise unknown
    return Reply(body(loan, with_place=request.context.can(policy.HOSTS)))
