"""The connection of one run to a cluster, on which joblib runs the parts meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

from pondstack.domain.errors import Unavailable
from pondstack.planner.backends import dask_scheduler, ray_cluster
from pondstack.planner.backends.address import ADDRESSES, Address
from pondstack.planner.backends.watch import ClusterLost, Watch, one_line
from pondstack.planner.sweep import ENGINE, check_engine

__all__ = ["ADDRESSES", "connected"]

CALL_SECONDS = 60.0
"""For a first call on a worker: its process may have to start first."""

GO_ON = "with --cache, the same command goes on from there"


class Cluster(Protocol):
    """What a run needs of a cluster. `errors`: what its library raises where it fails."""

    errors: tuple[type[BaseException], ...]

    def call(self, function: Any, *arguments: Any, timeout: float) -> Any:
        """Return what a function returns on the cluster; seconds."""

    def lack(self) -> str:
        """Say what keeps parts from being run; empty: nothing."""

    def in_use(self) -> Any:
        """Have joblib use it."""

    def close(self) -> None:
        """Leave it."""


KINDS: dict[str, tuple[str, str, Callable[[Address], Cluster]]] = {
    "dask": ("distributed", dask_scheduler.PACKAGES, dask_scheduler.DaskScheduler),
    "ray": ("ray", ray_cluster.PACKAGES, ray_cluster.RayCluster),
}
"""By kind: the module that is imported, the packages that have it, and what connects."""


@contextmanager
def connected(text: str) -> Iterator[None]:
    """Have joblib run parts on the cluster at an address. Raises BadRequest, and Unavailable where it fails."""
    address = Address.parsed(text)
    made: list[Cluster] = []
    # From before the connection on: Dask's client waits without end for whoever listens there and says nothing.
    watch = Watch(lambda: made[0].lack() if made else "does not answer")
    try:
        with watch:
            made.append(_cluster(address))
            _check(made[0], address)
            with made[0].in_use():
                yield
    except (ClusterLost, Exception) as error:
        if watch.lost:
            raise Unavailable(f"{text} {watch.lost}; {GO_ON}") from error
        if made and isinstance(error, made[0].errors):
            raise Unavailable(f"{text} failed ({one_line(error)}); {GO_ON}") from error
        raise
    finally:
        for cluster in made:
            cluster.close()


def _cluster(address: Address) -> Cluster:
    module, packages, kind = KINDS[address.kind]
    if find_spec(module) is None:
        raise Unavailable(f"{module} is not installed, which {address.text} needs: pip install '{packages}'")
    address.check()
    try:
        return kind(address)
    except (OSError, RuntimeError, ImportError) as error:
        raise Unavailable(
            f"{address.text} cannot be connected to ({one_line(error)}): is it such a cluster, of the same release?"
        ) from error


def _check(cluster: Cluster, address: Address) -> None:
    """Raise Unavailable before anything is computed where no worker can run parts as this process would."""
    try:
        cluster.call(check_engine, ENGINE, timeout=CALL_SECONDS)
    except Unavailable:
        raise
    except Exception as error:
        raise Unavailable(
            f"{address.text} runs no parts ({one_line(error)}): it needs workers, and all of them this release of "
            "pondstack[planner]"
        ) from error
