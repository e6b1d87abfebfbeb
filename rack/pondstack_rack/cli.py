"""`python -m pondstack_rack COMMAND`: sizes are options, or the variables of `make rack`."""

import argparse
import os
import sys
from pathlib import Path

from keystoneauth1.exceptions import ClientException
from openstack.exceptions import SDKException

from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.layout import Layout, RackError, Sizes
from pondstack_rack.services import pondstack_services

COMMANDS = "up|down|status|demo|predictions|consolidation|failover|service|tempest"


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 when it did what it says."""
    options = _parser().parse_args(argv)
    try:
        return int(options.command(options))
    except (RackError, DaemonFailed) as error:
        print(f"\n{error}", file=sys.stderr)
    except (ClientException, SDKException) as error:
        print(f"\nthe cloud does not answer as it should: {error}", file=sys.stderr)
        print(f"  `make rack` starts what does not run; logs: {options.directory}/log", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted: `make rack` goes on from here, `make rack-down` removes what there is", file=sys.stderr)
        return 130
    return 1


def _up(options: argparse.Namespace) -> int:
    from pondstack_rack.rack import Rack

    if os.geteuid() != 0:
        raise RackError("the rack needs root (namespaces, libvirt): run as root")
    sizes = Sizes(options.hosts, options.fakes, options.slices, options.port_base, options.tls)
    if sizes.hosts + sizes.fakes == 0:
        raise RackError("HOSTS=0 and FAKES=0: choose one host at least")
    rack = Rack(options.directory, sizes)
    if rack.up():
        rack.progress.say(f"the rack is up: {_summary(rack.layout)}")
    else:
        rack.progress.say(f"the rack was up already and is well: {_summary(rack.layout)}")
    return 0


def _down(options: argparse.Namespace) -> int:
    from pondstack_rack.rack import Rack

    if not (options.directory / "rack.json").exists():
        print(f"no rack in {options.directory}: nothing to do")
        return 0
    rack = Rack.open(options.directory)
    rack.down()
    rack.progress.say(f"stopped, and {rack.layout.root} removed")
    return 0


def _status(options: argparse.Namespace) -> int:
    from pondstack_rack.rack import Rack

    rack = Rack.open(options.directory)
    states = {name: service.running for name, service in rack.services.items()}
    for name, running in states.items():
        print(f"{name:28} {'running' if running else 'STOPPED'}")
    return 0 if all(states.values()) else 1


def _demo(options: argparse.Namespace) -> int:
    from pondstack_rack.demo import demo, view
    from pondstack_rack.rack import Rack
    from pondstack_rack.services import keystone

    rack = Rack.open(options.directory)
    facts = demo.run(rack.layout, rack.connection(), rack.connection(keystone.TENANT), rack.progress.say)
    wrong = demo.check(facts)
    view.show(facts, wrong, rack.layout)
    return 1 if wrong else 0


def _predictions(options: argparse.Namespace) -> int:
    from pondstack_rack.demo import predictions, predictions_view
    from pondstack_rack.rack import Rack

    rack = Rack.open(options.directory)
    with rack.locked():
        outcome = predictions.run(rack.layout, rack.progress.say)
    wrong = predictions.check(outcome)
    predictions_view.show(outcome, wrong)
    return 1 if wrong else 0


def _consolidation(options: argparse.Namespace) -> int:
    from pondstack_rack.demo import consolidation, consolidation_view
    from pondstack_rack.rack import Rack

    rack = Rack.open(options.directory)
    with rack.locked():
        story = consolidation.run(rack, rack.progress.say)
    consolidation_view.show(story)
    return 0 if story.holds else 1


def _failover(options: argparse.Namespace) -> int:
    from pondstack_rack.demo import failover
    from pondstack_rack.rack import Rack

    rack = Rack.open(options.directory)
    with rack.locked():
        outcomes, wrong = failover.repeat(rack, options.times, kill=options.kill, say=rack.progress.say)
    for text in wrong:
        print(f"not as it should be: {text}", file=sys.stderr)
    if not wrong:
        rack.progress.say(failover.summary(outcomes))
    return 1 if wrong else 0


def _service(options: argparse.Namespace) -> int:
    from pondstack_rack.rack import Rack

    service = Rack.open(options.directory).service(pondstack_services.service_of(options.service, options.host))
    if options.verb == "kill":
        service.kill()
    else:
        service.start()
    return 0


def _tempest(options: argparse.Namespace) -> int:
    from pondstack_rack.rack import Rack
    from pondstack_rack.tempest import compare, run

    rack = Rack.open(options.directory)
    choice = run.Choice(options.passes, options.regex, options.concurrency, options.flavors)
    with rack.locked():
        if options.compare:
            comparison = compare.compare(rack, choice, rack.progress.say)
            print("\n".join(comparison.summary()))
            return 0 if comparison.holds else 1
        results = run.run(rack, choice, rack.progress.say)
    print("\n".join(results.summary()))
    return 1 if results.named("failed") else 0


def _summary(layout: Layout) -> str:
    sizes = layout.sizes
    tls = ", with TLS" if sizes.tls else ""
    return f"{sizes.hosts} libvirt hosts, {sizes.fakes} fake computes, a pool of {sizes.slices} slices{tls}"


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _parser() -> argparse.ArgumentParser:
    def number(name: str, default: int) -> int:
        return int(os.environ.get(name) or default)

    parser = argparse.ArgumentParser(
        prog="python -m pondstack_rack", description="A small real cloud with pondstack in it."
    )
    directory = Path(os.environ.get("RACK_DIR") or ".rack")
    parser.add_argument("--directory", type=Path, default=directory, help="where all of it lives (RACK_DIR, .rack)")
    commands = parser.add_subparsers(required=True, metavar=COMMANDS)
    up = commands.add_parser("up", help="start what does not run")
    defaults = Sizes()
    up.add_argument("--hosts", type=int, default=number("HOSTS", defaults.hosts), help="real libvirt hosts (HOSTS)")
    up.add_argument("--fakes", type=int, default=number("FAKES", defaults.fakes), help="fake computes (FAKES)")
    up.add_argument("--slices", type=int, default=number("SLICES", defaults.slices), help="GiB of the pool (SLICES)")
    up.add_argument("--port-base", type=int, default=number("RACK_PORT_BASE", defaults.port_base), help="first port")
    up.add_argument(
        "--tls",
        action=argparse.BooleanOptionalAction,
        default=bool(number("TLS", 0)),
        help="encrypt connections to the database, the broker and the APIs, and refuse others (TLS=1)",
    )
    up.set_defaults(command=_up)
    commands.add_parser("down", help="stop all of it and remove it").set_defaults(command=_down)
    commands.add_parser("status", help="which services run").set_defaults(command=_status)
    commands.add_parser("demo", help="boot a zNUMA guest and show it").set_defaults(command=_demo)
    predictions = commands.add_parser("predictions", help="have VMs live, and see predictions place the next ones")
    predictions.set_defaults(command=_predictions)
    consolidation = commands.add_parser("consolidation", help="have an idle host sleep, serve, and be woken by plans")
    consolidation.set_defaults(command=_consolidation)
    failover = commands.add_parser("failover", help="have the other controller lead, and watch it")
    failover.add_argument("--kill", action="store_true", help="kill -9 the leader instead of asking it to hand over")
    failover.add_argument("--times", type=_at_least_one, default=1, help="so many in turn (TIMES)")
    failover.set_defaults(command=_failover)
    service = commands.add_parser("service", help="kill or start one service")
    service.add_argument("verb", choices=("kill", "start"), help="kill: at once; start: returns once it serves")
    service.add_argument("service", choices=pondstack_services.KINDS, help="what it is")
    service.add_argument("host", help="the host that it is of; a controller's name")
    service.set_defaults(command=_service)
    tempest = commands.add_parser("tempest", help="run our Tempest plugin and stock tests of compute")
    tempest.add_argument("--passes", type=_words, default=(), help="only these, by name, with commas (PASSES)")
    tempest.add_argument("--regex", default="", help="only tests that match (REGEX)")
    tempest.add_argument("--concurrency", type=_at_least_one, default=2, help="so many at a time (CONCURRENCY)")
    tempest.add_argument(
        "--flavors", choices=("plain", "pool"), default="plain", help="flavors of the stock tests (FLAVORS)"
    )
    tempest.add_argument(
        "--compare", action="store_true", help="the stock tests with our plugins in Nova and without (COMPARE)"
    )
    tempest.set_defaults(command=_tempest)
    return parser
