"""Loans and shares: lists, what adds up, what is refused. A guest with remote memory is a scenario."""

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import ADMIN, MEMBER, MemoryTest


class LoansTest(MemoryTest):
    """GET /loans and /shares, and below."""

    min_microversion = "1.18"
    credentials = [ADMIN, MEMBER]

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("17d69c8d-5ddc-4313-a208-863da97cccf8")
    def test_loans_are_listed_and_shown(self) -> None:
        """Each loan's buffers are some lender's; one that is over when it is shown is none any more."""
        client = self.memory("Loans")
        lenders = {lender["host"] for lender in self.memory("Lenders").list_lenders()["lenders"]}
        for loan in client.list_loans()["loans"]:
            try:
                shown = client.show_loan(loan["uuid"])
            except exceptions.NotFound:
                continue
            self.assertEqual(loan["consumer_uuid"], shown["consumer_uuid"])
            self.assertLessEqual({run["lender"] for run in loan["buffers"]}, lenders)
            self.assertLessEqual(loan["lent_mib"], sum(run["mib"] for run in loan["buffers"]))

    @decorators.attr(type="smoke")
    @decorators.idempotent_id("c8bc6ebe-51a4-4abd-baac-dfa36d50d0b5")
    def test_a_project_sees_no_hosts(self) -> None:
        """Neither in what it is shown nor by asking for one."""
        for noun, method, collection in (("Loans", "list_loans", "loans"), ("Shares", "list_shares", "shares")):
            listed = getattr(self.memory(noun, MEMBER), method)
            for item in listed()[collection]:
                self.assertFalse({"host", "hosts", "buffers"} & set(item))
            self.assertRaises(exceptions.Forbidden, listed, host="compute1")

    @decorators.attr(type=["negative", "smoke"])
    @decorators.idempotent_id("4df16a01-0d8c-425e-b497-0cfcf4abbbc1")
    def test_what_is_not_there_is_not_found(self) -> None:
        """404 for an unknown loan and an instance without a share, 400 for a filter that is none."""
        unknown = self.unknown_uuid()
        self.assertRaises(exceptions.NotFound, self.memory("Loans").show_loan, unknown)
        self.assertRaises(exceptions.NotFound, self.memory("Shares").show_share, unknown)
        self.assertRaises(exceptions.BadRequest, self.memory("Loans").list_loans, guaranteed="maybe")
