"""Faults planted in what is checked of others' files, messages and values."""

from tests.mutants.mutant import Mutant

_SHAPES = "agent/pondstack_agent/state_shapes.py"
_SHAPES_TEST = "agent/tests/test_state_shapes.py"
_HOSTILE = "pondstack/tests/controller/reconcile/test_hostile_reports.py"

MUTANTS = (
    Mutant(
        "memory_beside_the_extents",
        _SHAPES,
        'for item in record["backings"]] != wanted:',
        'for item in record["backings"]] == []:',
        ("agent/tests/qemu/test_wrapper.py::test_a_guest_does_not_start_on_memory_that_its_record_was_made_to_say",),
        "a guest starts on memory of another one, which nobody let it use",
    ),
    Mutant(
        "record_of_another",
        _SHAPES,
        "if self.name is not None and (named := self.name(record)) != key:",
        "if self.name is not None and not (named := self.name(record)):",
        (f"{_SHAPES_TEST}::test_a_record_in_the_file_of_another_is_not_believed",),
        "a copied record gives an allocation a second life",
    ),
    Mutant(
        "settings_anywhere",
        _SHAPES,
        'if not path.startswith(("sys/", "proc/sys/")) or ".." in path.split("/"):',
        'if not path.startswith(("sys/", "proc/sys/")):',
        (f"{_SHAPES_TEST}::test_what_no_agent_writes_is_refused_by_the_name_of_its_file",),
        "the agent writes any file of its host, as root",
    ),
    Mutant(
        "written_and_never_read_again",
        "agent/pondstack_agent/records.py",
        "                shape.check(key, json.loads(json.dumps(record)))",
        "                json.dumps(record)",
        (f"{_SHAPES_TEST}::test_what_no_agent_writes_is_refused_by_the_name_of_its_file",),
        "a caller's odd name keeps the agent from its next start",
    ),
    Mutant(
        "start_over_damaged_records",
        "agent/pondstack_agent/cmd.py",
        "        check_state(Path(conf.agent.state_dir))\n",
        "",
        ("agent/tests/test_cmd.py",),
        "an agent over a damaged record forks workers for ever",
    ),
    Mutant(
        "kill_everybody",
        "agent/pondstack_agent/helper/lock.py",
        '_STATE = Fields({"pid": Whole(2, 2**22)}, others=True)',
        '_STATE = Fields({"pid": Whole(-1, 2**22)}, others=True)',
        ("agent/tests/helper/test_helper.py::test_nobody_else_is_killed_for_what_a_lock_says",),
        "ending a lender kills all processes of its host",
    ),
    Mutant(
        "verb_that_is_no_text",
        "agent/pondstack_agent/helper/server.py",
        "self._verbs.get(name) if isinstance(name, str) else None",
        "self._verbs.get(name)",
        ("agent/tests/helper/test_helper.py::test_an_error_keeps_its_kind",),
        "one request ends a lender, and all that it lends is gone",
    ),
    Mutant(
        "table_of_other_types",
        "pondstack/devices/emulated_files.py",
        "        shape.check(data)\n",
        "        pass\n",
        ("pondstack/tests/devices/test_emulated.py::test_a_table_that_no_controller_writes_lets_nobody_in",),
        "a damaged table of a pool device is written on as if it were whole",
    ),
    Mutant(
        "wire_value_of_other_types",
        "pondstack/rpc/wire.py",
        "        check_value(cls, data)\n",
        "",
        (f"{_HOSTILE}::test_what_no_agent_reports_is_refused_and_changes_nothing",),
        "one hostile host ends audits of the whole rack",
    ),
    Mutant(
        "argument_of_another_type",
        "pondstack/domain/conform.py",
        "        check_arguments(method, named)\n",
        "",
        (f"{_HOSTILE}::test_arguments_of_another_type_than_declared_are_refused",),
        "what a caller makes up is found where it is used, long after it was stored",
    ),
    Mutant(
        "buffers_without_end",
        "pondstack/domain/reported.py",
        '    if sum(run[1] for run in told["buffers"]) > MOST_BUFFERS:',
        '    if any(run[1] > MOST_BUFFERS for run in told["buffers"]):',
        (f"{_HOSTILE}::test_what_no_agent_reports_is_refused_and_changes_nothing",),
        "an audit looks at more buffers than it has memory for",
    ),
)
