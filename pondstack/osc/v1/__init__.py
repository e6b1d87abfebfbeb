"""Commands of major version 1, one file per noun (entry points openstack.memory.v1)."""
