"""Host side of real CXL pool devices: one region over the device, one dax device per slice, a CPU-less node."""

from pondstack_agent.drivers.cxl.driver import CxlHostPool

__all__ = ["CxlHostPool"]
