"""Faults planted in what hosts hold for themselves, from the ledger to the agent."""

from tests.mutants.mutant import Mutant

_DOMAIN = "pondstack/tests/domain/test_host_slices.py"
_KEEPER = "pondstack/tests/controller/pool/test_host_slices.py"
_LEDGER = "pondstack/tests/ledger/test_holdings.py"
_AGENT = "agent/tests/test_host_slices.py"
_SWITCH = "agent/tests/tiering/test_switch.py"

MUTANTS = (
    Mutant(
        "keepers_claim_keeps_quarantined",
        "pondstack/controller/reconcile/rules/reports.py",
        "    return guests and bool(observation.claimed.get(uuid))",
        "    return bool(observation.claimed.get(uuid))",
        (
            "pondstack/tests/controller/reconcile/rules/test_rules.py"
            "::test_what_a_host_was_to_hold_for_itself_comes_back_though_it_is_claimed",
        ),
        "a slice that its host never got stays quarantined for ever, since its keeper claims it",
    ),
    Mutant(
        "base_as_tier",
        "pondstack/domain/purpose.py",
        "Purpose.TIER: Purpose.GUEST}",
        "Purpose.TIER: Purpose.GUEST, Purpose.BASE: Purpose.GUEST}",
        (_DOMAIN,),
        "libvirt hosts with guests get no base slice",
    ),
    Mutant(
        "tier_beside_guests",
        "pondstack/ledger/slices.py",
        "        check_node(request.purpose, present.values(), request.host, pool)\n",
        "",
        (_KEEPER, f"{_LEDGER}::test_a_node_is_for_guests_or_for_tiering[sqlite]"),
        "the kernel demotes pages to memory of guests",
    ),
    Mutant(
        "held_twice",
        "pondstack/ledger/slices.py",
        " or request.consumer_uuid in present:",
        ":",
        (f"{_LEDGER}::test_only_a_host_slice_that_is_wanted_and_missing_is_assigned[sqlite]",),
        "two commands for one host slice take two slices, and one of them is never claimed",
    ),
    Mutant(
        "late_order_counts",
        "pondstack/ledger/slices.py",
        "        if not key.is_order(operation_id, now):\n",
        "        if not key.is_order(operation_id, now) and now < 0:\n",
        (f"{_LEDGER}::test_an_order_is_void_once_its_host_was_fenced_or_was_to_hold_nothing[sqlite]",),
        "a late order takes a slice whose claim has gone, and which Placement may have promised to a guest",
    ),
    Mutant(
        "order_without_generation",
        "pondstack/domain/host_slices.py",
        "return operation_id.startswith(_prefix(_ORDERS, self, generation))",
        "return operation_id.startswith(_prefix(_ORDERS, self, generation)[:0])",
        (_DOMAIN,),
        "an order that was given for another state of the host passes for one of now",
    ),
    Mutant(
        "fingerprint_of_guests",
        "pondstack/domain/requests.py",
        '            del found["purpose"]\n',
        "            pass\n",
        ("pondstack/tests/domain/test_host_slices.py::test_a_guests_request_is_what_it_was",),
        "a start that was under way at the upgrade is refused as another one, and a former controller knows no purpose",
    ),
    Mutant(
        "tier_hosts_offered",
        "pondstack/controller/pool/inventory.py",
        "{aggregate_uuid(uuid) for uuid in view.guest_pools(host)}",
        "{aggregate_uuid(uuid) for uuid in view.hosts[host].pools}",
        (_KEEPER,),
        "Nova places guests on a host that refuses them",
    ),
    Mutant(
        "host_claims_unseen",
        "pondstack/controller/reconcile/holders.py",
        "here = item.purpose is not Purpose.GUEST or item.consumer_uuid in self.hosts.get(item.host, {})\n"
        "        return here and",
        "here = item.consumer_uuid in self.hosts.get(item.host, {})\n        return here and",
        (_KEEPER,),
        "host slices are taken offline as nobody's",
    ),
    Mutant(
        "claimed_before_guests_left",
        "pondstack/controller/pool/host_slices.py",
        "        check_node(holding.purpose, _purposes(view, holding), holding.host, "
        "view.pools[holding.pool_uuid].pool.name)\n",
        "",
        (_KEEPER,),
        "a tier that waits for guests to leave claims memory that nobody can use",
    ),
    Mutant(
        "stuck_slice_commanded",
        "pondstack/controller/pool/host_slices.py",
        "        if stuck is not None:\n",
        "        if False:\n",
        (f"{_KEEPER}::test_a_slice_that_does_not_go_offline_is_left_to_its_host",),
        "each round commands a host to do what it tries already, and nobody reads why it fails",
    ),
    Mutant(
        "removed_with_claims",
        "pondstack/controller/pool/remover.py",
        "        self._unclaim(placement, lambda key: key.host == host)\n",
        "",
        (_KEEPER,),
        "claims of a host that was removed keep memory from guests for ever",
    ),
    Mutant(
        "host_slice_as_guests_memory",
        "pondstack/controller/pool/snapshot.py",
        "        if aged.item.purpose is not Purpose.GUEST:\n            continue\n",
        "",
        (_KEEPER,),
        "the weigher takes host slices for guests' memory on that host",
    ),
    Mutant(
        "hold_begins_anew",
        "agent/pondstack_agent/host_slices.py",
        "self._begun(wanted) or self._operations",
        "self._operations",
        (_AGENT,),
        "a command that a dead leader gave and its successor's take two slices",
    ),
    Mutant(
        "agent_mixes_nodes",
        "agent/pondstack_agent/drivers/emulated.py",
        "                check_purpose(grant, self._records.all().values())\n",
        "",
        (_AGENT,),
        "what the ledger does not know of is mixed with what it assigns",
    ),
    Mutant(
        "order_forgotten",
        "agent/pondstack_agent/tiering/switch.py",
        "        tiering.switch(self._ordered)\n",
        "",
        (_SWITCH,),
        "a restart of the agent ends what an operator ordered",
    ),
    Mutant(
        "former_controllers_order",
        "agent/pondstack_agent/reporter.py",
        '            if "tiering" in answer:  # a controller of the former release gives no orders\n'
        '                self._switch.follow(answer["tiering"])\n',
        '            self._switch.follow(answer.get("tiering"))\n',
        (_SWITCH,),
        "a fail-over to a controller of the former release switches tiering",
    ),
    Mutant(
        "tiering_over_guests",
        "pondstack/ledger/hosts.py",
        "        if guests:\n",
        "        if False:\n",
        (_KEEPER,),
        "the kernel demotes pages to memory of guests",
    ),
    Mutant(
        "claims_before_it_lets_go",
        "pondstack/domain/host_slices.py",
        ", key=lambda number: (number < wanted, number)",
        "",
        (_DOMAIN,),
        "a claim that is wanted no more keeps Placement from the one that is, for ever",
    ),
    Mutant(
        "release_told_once",
        "agent/pondstack_agent/pool/releases.py",
        "        self._offline(allocation_uuid)\n        return True\n",
        "        self._offline(allocation_uuid)\n        self._put(allocation_uuid, SETTLED)\n        return True\n",
        ("agent/tests/test_offline.py::test_offline_by_the_controller",),
        "a release that only a deposed leader heard of is lost, and the slice is set aside",
    ),
    Mutant(
        "order_of_before_the_wait",
        "agent/pondstack_agent/endpoint.py",
        "            self._epoch.check(epoch)  # another may lead since we wait\n",
        "",
        ("agent/tests/test_offline.py::test_an_order_that_waited_while_another_took_over_is_refused",),
        "a deposed leader's order takes what the next one wants to stay",
    ),
)
