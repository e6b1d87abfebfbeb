"""Faults planted in Nova's plug-ins."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "claim_too_small",
        "nova_plugins/pondstack_nova/compute/claims.py",
        "if mib >= pool_mib), key=",
        "if mib), key=",
        ("nova_plugins/tests/compute/test_claims.py",),
        "a guest is attached to a pool where it claims less than it takes",
    ),
    Mutant(
        "split_does_not_add_up",
        "nova_plugins/pondstack_nova/scheduler/request_filter.py",
        " or answer.local_mib + answer.pool_mib != memory_mib:",
        ":",
        ("nova_plugins/tests/scheduler/test_request_filter.py::test_falls_back_to_all_local",),
        "a split that is not the flavor's RAM is used",
    ),
    Mutant(
        "quota_of_one_instance",
        "nova_plugins/pondstack_nova/scheduler/request_filter.py",
        "quota.check(ctxt, spec.project_id, answer.pool_mib * instances)",
        "quota.check(ctxt, spec.project_id, answer.pool_mib)",
        ("nova_plugins/tests/scheduler/test_request_filter.py",),
        "a request for many instances goes over its quota",
    ),
    Mutant(
        "failed_start_releases_all",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "            if is_new:\n                self._pond_release(instance)\n",
        "            self._pond_release(instance)\n",
        (
            "nova_plugins/tests/compute/test_lifecycle.py::"
            "test_a_rebuild_that_fails_to_spawn_keeps_the_slices_for_the_next_try",
        ),
        "a failed start releases memory that the guest had before",
    ),
    Mutant(
        "destination_keeps_memory",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "            if attachment:\n                self._pond_release(instance)\n            raise\n",
        "            raise\n",
        ("nova_plugins/tests/compute/test_migration.py::test_a_destination_that_cannot_prepare_is_undone",),
        "a live migration that fails at the destination leaks its memory there",
    ),
    Mutant(
        "interrupted_rebuild_leaks",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "rebuilding = instance.uuid in self._pond_rebuilding and instance.task_state == task_states.REBUILDING",
        "rebuilding = instance.uuid in self._pond_rebuilding",
        ("nova_plugins/tests/compute/test_lifecycle.py::test_a_delete_after_an_interrupted_rebuild_releases",),
        "a delete after a rebuild that broke off keeps the memory",
    ),
    Mutant(
        "retry_is_another_operation",
        "nova_plugins/pondstack_nova/compute/agent_client.py",
        "operation_id = str(uuid.uuid4())\n        return self._insist(lambda api: api.attach(operation_id, request))",
        "return self._insist(lambda api: api.attach(str(uuid.uuid4()), request))",
        ("nova_plugins/tests/compute/test_agent_client.py::test_a_lost_answer_is_asked_for_again_by_the_same_id",),
        "each retry of an attach takes slices again",
    ),
    Mutant(
        "old_migration_binds",
        "nova_plugins/pondstack_nova/migrations.py",
        "    if instance.task_state != task_states.MIGRATING:\n        return None\n",
        "",
        ("nova_plugins/tests/test_migrations.py::test_an_old_record_binds_no_guest_that_does_not_move_live",),
        "a guest that moves cold keeps a split that is not its own",
    ),
    Mutant(
        "resize_taken_for_a_move",
        "nova_plugins/pondstack_nova/migrations.py",
        "    return _key(old) != _key(new)",
        "    return old.memory_mb != new.memory_mb",
        ("nova_plugins/tests/test_migrations.py",),
        "a resize to a flavor of the same size keeps the former flavor's pool memory",
    ),
)
