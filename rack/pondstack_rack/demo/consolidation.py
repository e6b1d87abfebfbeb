"""Shows on the running rack how an idle host becomes memory: emptied, lending, asleep, serving, and woken again.

Guests, live migrations, Nova, Placement, controllers, agents, lender and data plane are real. Two things are not: the
hosts' CPU loads are SYNTHETIC, played from a file, since all hosts share one machine; and sleep is EMULATED (driver
frozen stands for lowpower-s0): the host's agent and nova-compute are stopped, and nothing is saved. What is made here
is removed at the end.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

from pondstack.domain.host_sleep import DISABLED_REASON
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.demo import demo
from pondstack_rack.demo.host_load import HostLoad, Points, host_load
from pondstack_rack.demo.operator import Json, Operator, told
from pondstack_rack.demo.story import Broken, Say, Story
from pondstack_rack.demo.verified_guest import SLOTS, VerifiedGuest
from pondstack_rack.layout import RackError
from pondstack_rack.rack import Rack
from pondstack_rack.services import image, keystone
from pondstack_rack.services.flavors import FLAVORS
from pondstack_rack.wait import wait_until

BUSY, LOW, IDLE = 60.0, 40.0, 3.0
"""Percent: all hosts at first; hosts that stay awake, and the one that is emptied, once the load has fallen."""
FULL, OVERLOADED = 79.9, 82.0
"""Percent, once it has risen: hosts that take nobody any more, and the one that is to be relieved."""
FALL_SECONDS = 10.0
FLAVOR, NAME = "pond.remote.small", "story-remote"
MEMORY_MIB, REMOTE_MIB = FLAVORS[FLAVOR][1], int(FLAVORS[FLAVOR][2]["pond:remote_mb"])
BOOT_SECONDS = 300.0
SILENT_SECONDS = 120.0


def run(rack: Rack, say: Say) -> Story:
    """Have all of it happen; the story says what held. Raises RackError where there are too few hosts."""
    if len(rack.layout.libvirt_hosts) < 2 or not rack.layout.fake_hosts:
        raise RackError("it takes two libvirt hosts and a fake compute: make rack-down, make rack HOSTS=2 FAKES=4")
    story = Story(say)
    try:
        with ExitStack() as stack:
            _Demonstration(rack, story, say, stack).run()
    except Broken as error:
        say(f"not as it should be: {error}")
    return story


class _Demonstration:
    """One. What is to be taken back at its end is on `stack`."""

    def __init__(self, rack: Rack, story: Story, say: Say, stack: ExitStack) -> None:
        self._rack, self._story, self._say, self._stack = rack, story, say, stack
        self._operator = Operator(rack, say)
        self._load: HostLoad = stack.enter_context(host_load(rack.layout))
        self._lender, self._lent = rack.layout.fake_hosts[0], ""

    def run(self) -> None:
        """Do all steps."""
        first = self._boot_first()
        self._sleeper = first.host
        self._say(f"{self._sleeper} is to fall asleep; it has a guest that verifies its own memory")
        self._stack.callback(self._bring_back)
        self._stack.callback(self._take_back)
        self._is_busy()
        plan = self._falls()
        self._sleeps(plan, first)
        self._is_silent()
        remote = self._serves()
        first.beat(2)
        plan = self._rises(remote)
        self._wakes(plan, remote)
        self._verifies(first, remote)

    # Steps

    def _boot_first(self) -> VerifiedGuest:
        with self._story.step("a guest with local memory and memory of the pool verifies what it writes") as step:
            tenant = self._rack.connection(keystone.TENANT)
            facts = demo.run(self._rack.layout, self._rack.connection(), tenant, self._say)
            guest = VerifiedGuest(self._rack, facts.server)
            step.check(guest.beat(SLOTS + 1) == 0, "no word that it reads is wrong", guest.errors)
            step.told.append(f"it is on {guest.host}, with {facts.ledger['pool_mib']} MiB ({RESOURCE_CLASS})")
            return guest

    def _is_busy(self) -> None:
        with self._story.step(f"all hosts are busy ({BUSY:g} %, SYNTHETIC): a plan finds nothing to do") as step:
            self._play({})
            plan = self._operator.plan("--most-emptied", "1", wanted=lambda plan: _load(plan, self._sleeper) == BUSY)
            step.check(plan["effect"]["hosts_emptied"] == 0, "no host is emptied", told(plan))
            sources = plan["inputs"]["sources"]
            step.check("synthetic" in sources, "the plan says that figures are synthetic", sources)

    def _falls(self) -> Json:
        with self._story.step(f"load falls, on {self._sleeper} to {IDLE:g} % (SYNTHETIC): a plan empties it") as step:
            self._play({self._sleeper: _fall(IDLE)}, _fall(LOW))
            plan = self._operator.plan("--most-emptied", "1", wanted=lambda plan: bool(plan["effect"]["hosts_emptied"]))
            kinds = [item["kind"] for item in plan["actions"] if item["host"] == self._sleeper]
            wanted = kinds[:1] == ["disable"] and "live-migrate" in kinds and kinds[-1:] == ["suspend"]
            step.check(wanted, "its actions are disable, live-migrate, suspend", told(plan))
            moves = plan["effect"]["migrations"]
            step.told.append(f"nothing moves before it is applied: a dry run of {moves} migrations")
            return plan

    def _sleeps(self, plan: Json, guest: VerifiedGuest) -> None:
        with self._story.step(f"the plan is applied: {self._sleeper} is emptied, lends, and sleeps") as step:
            done, seen = self._operator.apply(plan["uuid"], self._sleeper)
            step.check(done["state"] == "done", "the plan is done", told(done))
            moves = [item for item in done["actions"] if item["kind"] == "live-migrate"]
            here = self._operator.servers_on(self._sleeper)
            step.check(not here, f"Nova has no server on {self._sleeper}", here)
            went = guest.live_migrations()[:1]
            step.check(bool(went) and went[0][0] == self._sleeper, "its guest was moved by a real live migration", went)
            step.check(guest.beat(SLOTS) == 0, f"on {guest.host} no word that it reads is wrong", guest.errors)
            before = self._operator.at_lending
            step.check(before == ("disabled", DISABLED_REASON), f'Nova had it as "{DISABLED_REASON}" before', before)
            sleep = self._operator.sleep(self._sleeper)
            step.check(sleep.get("state") == "asleep", f"{self._sleeper} is asleep", sleep)
            step.check(sleep["lent_mib"] > 0, f"it lends {sleep['lent_mib']} MiB", sleep)
            self._figures(seen, {"moved": "host emptied after", "asleep": "host asleep after"})
            self._story.figure("live migrations that emptied it", len(moves))
            self._story.figure("memory that it lends asleep", f"{sleep['lent_mib']} MiB")

    def _is_silent(self) -> None:
        with self._story.step(f"{self._sleeper} sleeps (lowpower-s0, EMULATED: agent and compute frozen)") as step:
            stopped, all_of_it = self._operator.stopped(self._sleeper)
            step.check(stopped == all_of_it > 0, f"{stopped} of its {all_of_it} processes stand still", stopped)
            service = self._operator.service(self._sleeper)
            step.check(service == ("disabled", DISABLED_REASON), f'Nova: disabled, "{DISABLED_REASON}"', service)
            silent = wait_until(lambda: not self._operator.host(self._sleeper)["up"], SILENT_SECONDS, 1.0)
            step.check(silent, "its agent has been silent for longer than others may be")
            found = self._operator.findings()
            step.check(not found, "an audit warns of nothing", found)

    def _serves(self) -> VerifiedGuest:
        with self._story.step(f"a guest of {MEMORY_MIB} MiB boots, {REMOTE_MIB} of them {self._sleeper}'s") as step:
            guest = self._boot_remote()
            lenders = self._operator.lenders_of(guest.server)
            step.check(lenders == {self._sleeper: REMOTE_MIB}, f"all that it borrows is of {self._sleeper}", lenders)
            step.check(guest.beat(SLOTS + 1) == 0 and guest.verify_all() == 0, "no word is wrong", guest.errors)
            sleep, served = self._operator.sleep(self._sleeper), guest.served()
            step.check(sleep["state"] == "asleep", f"{self._sleeper} was asleep all the time", sleep)
            reads, writes = served.store["lender_reads"], served.store["lender_writes"]
            step.check(min(reads, writes) > 0, f"{writes} pages were written to the sleeper, {reads} read back", served)
            step.check(served.store["corrupt"] == 0, "no page failed its seal", served)
            self._story.figure("pages written to the sleeping host", writes)
            self._story.figure("pages read back from it while it slept", reads)
            return guest

    def _rises(self, guest: VerifiedGuest) -> Json:
        with self._story.step(f"load rises, on {guest.host} to {OVERLOADED:g} % (SYNTHETIC): a plan wakes it") as step:
            mib = str(2 * REMOTE_MIB)  # while a server moves, Nova claims it twice
            self._lent = mib
            self._operator.run("host", "delegate", self._lender, "--mib", mib, "--wait")
            step.told.append(f"{self._lender} lends, so that the guest has memory once {self._sleeper} wants its own")
            crowded = {name: [(0.0, FULL)] for name in self._rack.layout.libvirt_hosts}
            self._play(crowded | {guest.host: [(0.0, LOW), (FALL_SECONDS, OVERLOADED)]}, [(0.0, LOW)])
            words = ("--most-emptied", "0", "--selection", "least-memory")
            plan = self._operator.plan(*words, wanted=lambda plan: bool(plan["effect"]["hosts_woken"]))
            kinds = [(item["kind"], item["host"], item["destination"]) for item in plan["actions"]]
            step.check(("wake", self._sleeper, None) in kinds, f"it wakes {self._sleeper}", told(plan))
            moved = [item for item in plan["actions"] if item["server_uuid"] == guest.server]
            step.check(bool(moved), f"and moves the guest with remote memory to {self._sleeper}", told(plan))
            return plan

    def _wakes(self, plan: Json, guest: VerifiedGuest) -> None:
        with self._story.step(f"the plan is applied: {self._sleeper} wakes, reclaims, and takes a guest") as step:
            done, seen = self._operator.apply(plan["uuid"], self._sleeper)
            step.check(done["state"] == "done", "the plan is done", told(done))
            stopped, all_of_it = self._operator.stopped(self._sleeper)
            step.check(stopped == 0 < all_of_it, f"all of its {all_of_it} processes run", stopped)
            host = self._operator.host(self._sleeper)
            step.check(host["sleep"]["state"] == "awake", f"{self._sleeper} is awake", host["sleep"])
            step.check(host["lending"]["lent_mib"] == 0, "all of its memory is its own again", host["lending"])
            service = self._operator.service(self._sleeper)
            step.check(service[0] == "enabled", "Nova may place servers there", service)
            went = guest.live_migrations()[:1]
            step.check(guest.host == self._sleeper, "the guest was moved there by a real live migration", went)
            lenders = self._operator.lenders_of(guest.server)
            of = ", ".join(lenders) or "its mirror"
            step.check(self._sleeper not in lenders, f"its remote memory is of {of} now", lenders)
            self._figures(seen, {"awake": "host woken, its memory its own, after", "ended": "guest there after"})

    def _verifies(self, first: VerifiedGuest, remote: VerifiedGuest) -> None:
        with self._story.step("no guest lost a byte") as step:
            for guest, beats in ((first, first.beat(SLOTS)), (remote, remote.verify_all())):
                step.check(beats == 0, f"{guest.server}: {guest.verified} times verified, none wrong", beats)
            served = remote.served()
            step.check(served.store["corrupt"] == 0, "no page failed its seal", served)
            verified, wrong = first.verified + remote.verified, first.errors + remote.errors
            self._story.figure("verifications of 1 MiB or more by the two guests", verified)
            self._story.figure("of these wrong", wrong)

    # What they are made of

    def _play(self, loads: Mapping[str, Points], others: Points = ((0.0, BUSY),)) -> None:
        self._load.play({name: others for name in self._rack.layout.all_hosts} | dict(loads))

    def _figures(self, seen: Mapping[str, float], names: Mapping[str, str]) -> None:
        for key, name in names.items():
            if key in seen:
                self._story.figure(name, f"{seen[key]:.1f} s from the order")

    def _boot_remote(self) -> VerifiedGuest:
        tenant = self._rack.connection(keystone.TENANT)
        flavor = tenant.compute.find_flavor(FLAVOR, ignore_missing=False)
        picture = tenant.image.find_image(image.IMAGE, ignore_missing=False)
        made = tenant.compute.create_server(name=NAME, flavor_id=flavor.id, image_id=picture.id, networks="none")
        self._stack.callback(self._delete, str(made.id))
        guest = VerifiedGuest(self._rack, str(made.id))
        wait_until(lambda: guest.status in ("ACTIVE", "ERROR"), BOOT_SECONDS, 0.5)
        if guest.status != "ACTIVE":
            raise Broken(f"{NAME} does not boot, it is {guest.status}; logs: {self._rack.layout.log}")
        return guest

    def _delete(self, server: str) -> None:
        compute = self._rack.connection().compute
        compute.delete_server(server, ignore_missing=True)
        wait_until(lambda: compute.find_server(server, all_projects=True) is None, BOOT_SECONDS, 0.5)

    def _take_back(self) -> None:
        if self._lent:
            self._operator.run("host", "reclaim", self._lender, "--mib", self._lent, "--wait")

    def _bring_back(self) -> None:
        if self._operator.sleep(self._sleeper).get("ended_at", "never") is None:
            self._operator.run("host", "wake", self._sleeper, "--wait")


def _fall(percent: float) -> Points:
    return [(0.0, BUSY), (FALL_SECONDS, percent)]


def _load(plan: Any, host: str) -> float | None:
    """Return the load by which a plan leaves a host as it is."""
    words = str(plan["left_out"].get(host, "")).split()
    return next((float(word) for word, unit in pairwise(words) if unit.startswith("%")), None)
