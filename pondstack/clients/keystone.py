"""An authenticated HTTP adapter from a section of the configuration; the only place that makes one."""

from keystoneauth1 import adapter, loading
from oslo_config import cfg


def load_adapter(conf: cfg.ConfigOpts, group: str, microversion: str) -> adapter.Adapter:
    """Return an adapter of the service that `group` describes. Retries are keystoneauth's, from the same section.

    Nothing is asked of Keystone before the first request.
    """
    auth = loading.load_auth_from_conf_options(conf, group)
    session = loading.load_session_from_conf_options(conf, group, auth=auth)
    return loading.load_adapter_from_conf_options(
        conf, group, session=session, auth=auth, default_microversion=microversion
    )
