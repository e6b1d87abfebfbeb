"""Routes of lent memory: who lends, what, and who borrows it."""

from pondstack_api import policies, schemas
from pondstack_api.handlers import buffer, lender, loan, share
from pondstack_api.route import Route

LENDING_ROUTES: dict[str, dict[str, Route]] = {
    "/lenders": {
        "GET": Route(
            lender.list_lenders,
            "List the hosts that lend memory",
            policies.lender.LIST,
            schemas.lender.LENDERS,
            query=schemas.lender.LIST_QUERY,
            since=(1, 5),
        )
    },
    "/lenders/{host}": {
        "GET": Route(
            lender.show_lender,
            "Show a host that lends memory",
            policies.lender.SHOW,
            schemas.lender.LENDER,
            since=(1, 5),
        )
    },
    "/lenders/{host}/buffers": {
        "GET": Route(
            buffer.list_buffers,
            "List the buffers of a lender",
            policies.buffer.LIST,
            schemas.buffer.BUFFERS,
            query=schemas.buffer.LIST_QUERY,
            since=(1, 5),
        )
    },
    "/lenders/{host}/buffers/{index}": {
        "GET": Route(
            buffer.show_buffer,
            "Show a buffer",
            policies.buffer.SHOW,
            schemas.buffer.BUFFER,
            since=(1, 5),
        )
    },
    "/loans": {
        "GET": Route(
            loan.list_loans,
            "List who borrows what of whom",
            policies.loan.LIST,
            schemas.loan.LOANS,
            query=schemas.loan.LIST_QUERY,
            since=(1, 18),
        )
    },
    "/loans/{loan}": {
        "GET": Route(loan.show_loan, "Show a loan", policies.loan.SHOW, schemas.loan.LOAN, since=(1, 18))
    },
    "/shares": {
        "GET": Route(
            share.list_shares,
            "List what instances have beside local memory",
            policies.share.LIST,
            schemas.share.SHARES,
            query=schemas.share.LIST_QUERY,
            since=(1, 18),
        )
    },
    "/shares/{consumer}": {
        "GET": Route(
            share.show_share,
            "Show what an instance has beside local memory",
            policies.share.SHOW,
            schemas.share.SHARE,
            since=(1, 18),
        )
    },
}
