"""Health check: a controller renews its lease, so that changes are possible."""

from oslo_middleware.healthcheck import pluginbase

from pondstack_api.errors import translate


class Leader(pluginbase.HealthcheckBaseExtension):
    """Unhealthy when nobody holds the lease, or it was not renewed for [api] leader_max_age_seconds."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result; `server_port` is oslo.middleware's."""
        del server_port
        try:
            leader = self.conf["services"].reader.leader()
        except Exception as error:
            known = translate(error)
            if known is None:
                raise
            return pluginbase.HealthcheckResult(available=False, reason=f"leader: unknown, {known.message}")
        limit = self.oslo_conf.api.leader_max_age_seconds
        if not leader.holder:
            return pluginbase.HealthcheckResult(available=False, reason="leader: none; start pondstack-controller")
        if leader.age_seconds > limit:
            reason = f"leader: lease is {leader.age_seconds:.0f} s old (limit {limit} s); look at pondstack-controller"
            return pluginbase.HealthcheckResult(available=False, reason=reason)
        return pluginbase.HealthcheckResult(available=True, reason="leader: OK")
