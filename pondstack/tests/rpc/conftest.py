"""Threads first also where the root of all tests is not: in the emulated hosts of tests/hardware."""

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)
