"""PondFakeDriver: Nova's fake hypervisor with the real pool memory life cycle, for replays and tests."""

from typing import Any

import nova.context
from nova import objects
from nova.compute import power_state
from nova.virt import fake
from oslo_log import log as logging

from pondstack_nova.compute import checks
from pondstack_nova.compute.lifecycle import PoolMemoryLifecycle

LOG = logging.getLogger(__name__)


class PondFakeDriver(PoolMemoryLifecycle, fake.FakeDriverWithoutFakeNodes):
    """A large fake host whose guests hold real slices. Needs a state_path of its own, where its node UUID is kept."""

    vcpus = 4000
    memory_mb = 4_000_000
    local_gb = 600_000

    def init_host(self, host: str) -> None:
        """Check Nova's hooks first; raises HookChanged."""
        checks.check_driver(fake.FakeDriverWithoutFakeNodes)
        super().init_host(host)
        self._recall_guests(host)

    def _recall_guests(self, host: str) -> None:
        """List the guests that Nova has here: they outlive nova-compute, as those of a hypervisor do."""
        for instance in objects.InstanceList.get_by_host(nova.context.get_admin_context(), host):
            if instance.power_state not in (None, power_state.NOSTATE):
                self.instances[instance.uuid] = fake.FakeInstance(instance.name, instance.power_state, instance.uuid)

    def reboot(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Have the pool memory there first, as the libvirt driver does."""
        with self._pond_guest(context, instance, None), self._pond_kept(instance):
            return super().reboot(context, instance, *args, **kwargs)

    def post_live_migration(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Forget the guest at the source, which Nova's fake driver leaves listed."""
        self.instances.pop(instance.uuid, None)
        return super().post_live_migration(context, instance, *args, **kwargs)
