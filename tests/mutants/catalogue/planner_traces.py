"""Where the planner's traces come from, and how its answers are shown."""

from tests.mutants.mutant import Mutant

_TRACES = "pondstack/tests/planner/traces"
_PLAIN = f"{_TRACES}/test_plain.py"
_REPORT = "pondstack/tests/planner/report/test_report.py"
_ROWS = "pondstack/planner/traces/rows.py"

MUTANTS = (
    Mutant(
        "wrong_optional_value_is_unknown",
        _ROWS,
        'column(f"{name}_given") & ~column(name).is_finite().fill_null(False)',
        'column(f"{name}_given") & column(name).is_infinite().fill_null(False)',
        (f"{_PLAIN}::test_what_is_no_server_is_dropped_with_its_reason_and_line",),
        "an end that cannot be read counts as a server that still runs",
    ),
    Mutant(
        "repeated_rows_count",
        _ROWS,
        "    return good.filter(first), [Dropped(why, repeated.height, int(repeated[ROW][0]))]\n",
        "    return good, []\n",
        (f"{_PLAIN}::test_what_is_no_server_is_dropped_with_its_reason_and_line",),
        "a server that is there twice needs twice the memory",
    ),
    Mutant(
        "late_servers_stay",
        _ROWS,
        "        good = good.filter(start <= last)\n",
        "",
        (f"{_PLAIN}::test_servers_that_end_after_the_trace_still_run_and_later_ones_are_dropped",),
        "servers start after the end of the trace",
    ),
    Mutant(
        "ends_after_the_trace_stay",
        _ROWS,
        "polars.when(ended <= last).then(ended - base)",
        "(ended - base).alias('end_seconds')",
        (f"{_PLAIN}::test_servers_that_end_after_the_trace_still_run_and_later_ones_are_dropped",),
        "what still runs at the end of the trace ends",
    ),
    Mutant(
        "cut_off_line_is_guessed",
        "pondstack/planner/traces/lines.py",
        "            (polars.col(ROW) == _unended(path)).alias(CUT),\n",
        "            polars.lit(False).alias(CUT),\n",
        (f"{_PLAIN}::test_a_last_line_without_its_end_is_not_guessed",),
        "of 114.75 GiB the file was cut off after 11, and a server of 11 GiB is replayed",
    ),
    Mutant(
        "fields_that_are_too_many_are_left_out",
        "pondstack/planner/traces/lines.py",
        "count_matches(separator, literal=True) == width - 1",
        "count_matches(separator, literal=True) >= width - 1",
        (f"{_PLAIN}::test_what_is_no_server_is_dropped_with_its_reason_and_line",),
        "columns after a comma within quotes are taken for others",
    ),
    Mutant(
        "running_servers_of_azure_end",
        "pondstack/planner/traces/azure_vmtable.py",
        "polars.when(ended.cast(polars.Float64, strict=False).ne_missing(LAST_READING)).then(ended)",
        "ended",
        (f"{_TRACES}/test_azure.py::test_a_vmtable_of_v1",),
        "the cloud is empty at the end of the trace",
    ),
    Mutant(
        "servers_from_before_begin_late",
        "pondstack/planner/traces/instances.py",
        'polars.col("start_seconds").clip(lower_bound=0)',
        'polars.col("start_seconds")',
        (f"{_TRACES}/test_cloud.py::test_instances_of_a_window_with_their_ends_and_hosts",),
        "a trace of a month begins years ago, with the servers alone that survived until today",
    ),
    Mutant(
        "young_labels_count",
        "pondstack/planner/traces/cloud.py",
        'if not found["trains"] or found["untouched_mib"] is None:',
        'if found["untouched_mib"] is None:',
        (f"{_TRACES}/test_cloud.py::test_untouched_memory_comes_from_pondstacks_history",),
        "a guest that was looked at for a minute counts as one that touches nothing",
    ),
    Mutant(
        "archived_instances_forgotten",
        "pondstack/planner/traces/nova_database.py",
        "tables = [table for table in TABLES if table in present]",
        "tables = [TABLES[0]]",
        (f"{_TRACES}/test_nova_database.py::test_instances_also_archived_ones_and_hosts",),
        "the history has only the servers that nobody archived",
    ),
    Mutant(
        "label_forgotten",
        "pondstack/planner/report/text.py",
        'if document["answers"]["source"]["synthetic"]',
        "if False",
        (f"{_REPORT}::test_what_is_synthetic_says_so_first",),
        "a made-up saving is taken for that of a cloud",
    ),
    Mutant(
        "page_of_markup",
        "pondstack/planner/report/page.py",
        "autoescape=True",
        "autoescape=False",
        (f"{_REPORT}::test_the_page_shows_each_figure_with_its_interval_its_command_and_its_seeds",),
        "a trace's name runs a script where the report is read",
    ),
    Mutant(
        "whole_hosts_for_sockets",
        "pondstack/cmd/planner_options.py",
        "sockets = hosts.number * wanted.sockets_per_host",
        "sockets = hosts.number",
        ("pondstack/tests/cmd/test_planner.py::test_hosts_of_the_trace_are_the_cloud_unless_another_one_is_given",),
        "sockets twice as large strand less memory",
    ),
)
