"""[placement]: how the controller reaches Placement; keystoneauth's own options and a switch."""

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = "placement"
SERVICE_TYPE = "placement"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether there is a Placement. Without one every allocation counts as claimed and no inventory is kept: "
        "for tests and benchmarks of the ledger alone.",
    ),
    cfg.IntOpt(
        "conflict_tries",
        default=8,
        min=1,
        max=100,
        help="How many times (a count) a write is tried when somebody else changed the same provider meanwhile.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent."""
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.register_opts(OPTIONS, group=GROUP)
    conf.set_default("service_type", SERVICE_TYPE, group=GROUP)
    conf.set_default("connect_retries", 2, group=GROUP)
    conf.set_default("status_code_retries", 2, group=GROUP)
    # A reconciler's round must not hang on one dead connection.
    conf.set_default("timeout", 30, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    shared = [
        *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options("password"),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
    ]
    return [(GROUP, [*OPTIONS, *shared])]
