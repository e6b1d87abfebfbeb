"""What the QEMU of a server copied when it came to its host live, as libvirt tells it."""

import subprocess

from openstack.connection import Connection

from pondstack_rack.rack import Rack

MIB = 2**20


def stream_of(rack: Rack, admin: Connection, server: str) -> dict[str, float]:
    """Return {"total", "copied"}: memory that was to be copied, and what was of it, in MiB."""
    found = admin.compute.get_server(server)
    enter = str(rack.layout.bin / f"in-{found.hypervisor_hostname}")
    command = [enter, "virsh", "--quiet", "domjobinfo", found.instance_name, "--completed", "--rawstats"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(told)
    rows = dict(line.split(": ", 1) for line in told.splitlines() if ": " in line)
    return {"total": int(rows["memory_total"]) / MIB, "copied": int(rows["memory_processed"]) / MIB}
