"""The stock tests with pondstack in Nova and without: what passes without must pass with it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from keystoneauth1.adapter import Adapter

from pondstack_rack import config
from pondstack_rack.layout import Layout, RackError
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.tempest import conf, run
from pondstack_rack.tempest.results import Comparison
from pondstack_rack.tempest.run import Choice

STOCK_DRIVERS = {
    "pond.PondLibvirtDriver": "libvirt.LibvirtDriver",
    "pond.PondFakeDriver": "fake.FakeDriverWithoutFakeNodes",
}
"""Nova's own drivers in place of ours, which are subclasses of them."""


def compare(rack: Rack, choice: Choice, say: Callable[[str], None]) -> Comparison:
    """Run the chosen stock tests with our plugins and without.

    RackError for a pass that is not stock, or that ran no test.
    """
    stock = [one.name for one in conf.passes(rack.layout) if one.stock]
    if others := set(choice.passes) - set(stock):
        raise RackError(f"{', '.join(sorted(others))}: only stock passes can be compared: {', '.join(stock)}")
    if choice.flavors != "plain":
        raise RackError("a Nova without our plugins has no pool memory: compare with plain flavors")
    choice = replace(choice, passes=choice.passes or stock)
    # First without: what stands in the way of that is said before minutes have passed.
    with without_plugins(rack, say):
        without = run.run(rack, choice, say)
    return Comparison(without, run.run(rack, choice, say))


@contextmanager
def without_plugins(rack: Rack, say: Callable[[str], None]) -> Iterator[None]:
    """Run Nova's scheduler and computes without our filter, weighers and drivers for a while.

    What stays: nova-api's validators of `pond:` specs, which come with the installed package. RackError while servers
    have pool memory: their hosts could not give it back.
    """
    memory = Adapter(keystone.session(rack.layout), service_type="memory", region_name="RegionOne")
    if held := memory.get("/allocations").json()["allocations"]:
        raise RackError(f"{len(held)} servers have pool memory, such as {held[0]['consumer_uuid']}: delete them first")
    kept = {path: path.read_text() for path in _files(rack.layout)}
    try:
        for path, text in kept.items():
            config.write(path, plain(text))
        say("restarting Nova without pondstack")
        _restart(rack)
        yield
    finally:
        for path, text in kept.items():
            config.write(path, text)
        say("restarting Nova with pondstack")
        _restart(rack)


def plain(text: str) -> str:
    """Return a configuration of Nova without us; RackError when there is nothing of us in it."""
    lines = [line for line in text.splitlines() if "pondstack_nova." not in line]
    found = "\n".join(lines).replace(",PondFilter", "") + "\n"
    for ours, stock in STOCK_DRIVERS.items():
        found = found.replace(f"compute_driver = {ours}", f"compute_driver = {stock}")
    if found == text:
        raise RackError("a configuration of Nova has nothing of pondstack in it: the comparison would be with itself")
    return found


def _files(layout: Layout) -> list[Path]:
    return [layout.etc / "nova.conf", *(layout.etc / f"nova-compute-{host}.conf" for host in layout.all_hosts)]


def _restart(rack: Rack) -> None:
    names = ["nova-scheduler", *(f"nova-compute-{host}" for host in rack.layout.all_hosts)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: rack.service(name).restart(), names))
