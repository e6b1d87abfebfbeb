"""The nodes that the phases are run for: together they take every line of the plugin."""

from tests.devstack.harness import Scenario

ALL = "key,mysql,rabbit,placement-api,n-api,n-sch,n-cond,n-cpu,q-svc,tempest"

SCENARIOS = (
    Scenario("single-qemu", ALL, {"LIBVIRT_TYPE": "qemu"}),
    Scenario("single-kvm-all-options", ALL, {
        "POND_REMOTE_MEMORY": "True",
        "POND_TRANSPORT": "tcp",
        "POND_TRANSPORT_OPTIONS": "port:7777",
        "POND_LENDING_RESERVE_MIB": "2048",
        "POND_REMOTE_FLAVORS": "pond.remote.small 1 1280 1 pond:remote_mb=512",
        "POND_RABBIT_QUORUM": "True",
        "POND_POOL_TMPFS": "False",
        "LIVE_MIGRATION_AVAILABLE": "True",
        "NOVA_USE_UNIFIED_LIMITS": "True",
        "HAVE_FLAVORS": "pond.fixed.small",
    }, apparmor="include if exists <abstractions/libvirt-qemu.d>"),
    Scenario("single-cxl", ALL, {
        "POND_EMULATION": "False",
        "POND_POOL_DEVICES": "pool0=dcd:/srv/pond/pool0",
        "POND_AGENT_DRIVERS": "cxl",
        "POND_AGENT_DEVICES": "",
        "POND_CXL_POOLS": "0xc0ffee01:rack1-pool0",
        "POND_CXL_PERMISSION_TABLE": "/srv/pond/pool0",
        "POND_REMOTE_MEMORY": "True",
        "NOVA_USE_UNIFIED_LIMITS": "True",
        "HAVE_LIMIT": "0123",
    }),
    Scenario("fake", ALL, {
        "VIRT_DRIVER": "fake",
        "NUMBER_FAKE_NOVA_COMPUTE": "2",
        "LIVE_MIGRATION_AVAILABLE": "True",
    }),
    Scenario("controller", "key,mysql,rabbit,placement-api,n-api,n-sch,n-cond"),
    Scenario("compute", "n-cpu,q-agt,placement-client", {
        "POND_REMOTE_MEMORY": "True",
        "POND_TRANSPORT": "tcp",
        "POND_MIRROR_MIB": "1024",
    }, authority=True, apparmor="as Debian 12 has it"),
    Scenario("second-controller", "pond-controller2", authority=True),
    Scenario("foreign", "key,mysql,rabbit"),
)  # fmt: skip
