"""A cluster of Ray, through Ray's backend for joblib."""

from contextlib import AbstractContextManager
from typing import Any

from joblib import parallel_config

from pondstack.domain.errors import Unavailable
from pondstack.planner.backends.address import Address

PACKAGES = "ray[client]"
LEAST_CPUS = 2
"""With one, joblib would run the parts in this process, and not there."""

TRIES = 3
"""How often a process of the cluster is begun again, and a part with it, where it dies."""


class RayCluster:
    """What one run has of a cluster of Ray. Raises ConnectionError where none answers, Unavailable where it is full."""

    def __init__(self, address: Address) -> None:
        import ray
        from ray.util.joblib import register_ray

        self._ray: Any = ray
        self.errors: tuple[type[BaseException], ...] = (ray.exceptions.RayError, ConnectionError)
        # By Ray Client: Ray ends a process that is a driver itself without a word where its node is gone.
        ray.init(address=f"ray://{address.where}", log_to_driver=False, logging_level="ERROR")
        register_ray()
        self._cpus = int(ray.available_resources().get("CPU", 0))
        if self._cpus < LEAST_CPUS:
            self.close()
            raise Unavailable(f"{address.text} has {self._cpus} CPUs free; {LEAST_CPUS} or more are needed")

    def call(self, function: Any, *arguments: Any, timeout: float) -> Any:
        """Return what a function returns on a node; seconds. Raises what it raises, or GetTimeoutError."""
        try:
            return self._ray.get(self._ray.remote(function).remote(*arguments), timeout=timeout)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error

    def lack(self) -> str:
        """Say what keeps parts from being run; empty: nothing. Does not return, or raises, where it is gone."""
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        # Parts are given to one process for each CPU; those of a node that is gone wait for another one.
        return "" if cpus >= self._cpus else f"has {cpus} CPUs left of {self._cpus} that parts were given to"

    def in_use(self) -> AbstractContextManager[Any]:
        """Have joblib use the CPUs that were free when it was connected to."""
        restarts = {"max_restarts": TRIES, "max_task_retries": TRIES}
        return parallel_config(backend="ray", n_jobs=self._cpus, ray_remote_args=restarts)

    def close(self) -> None:
        """Leave it; what it still runs of this run is dropped."""
        self._ray.shutdown()
