"""The policy enforcer: rules in code (pondstack_api.policies), overridden by the operator's policy file."""

from oslo_config import cfg
from oslo_policy import opts, policy

from pondstack_api import policies


def make_enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """Return an enforcer with all rules of the API."""
    opts.set_defaults(conf)
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(policies.list_rules())
    return enforcer


def get_enforcer() -> policy.Enforcer:
    """Return an enforcer for oslo.policy's command line tools (entry point oslo.policy.enforcer)."""
    conf = cfg.CONF
    conf([], project="pondstack")
    return make_enforcer(conf)
