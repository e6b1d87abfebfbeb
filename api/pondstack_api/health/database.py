"""Health check: the ledger's database answers."""

from oslo_middleware.healthcheck import pluginbase

from pondstack_api.errors import translate


class Database(pluginbase.HealthcheckBaseExtension):
    """Unhealthy when a query fails."""

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result; `server_port` is oslo.middleware's."""
        del server_port
        try:
            self.conf["services"].reader.ping()
        except Exception as error:
            known = translate(error)
            if known is None:
                raise
            return pluginbase.HealthcheckResult(available=False, reason=f"database: {known.message}")
        return pluginbase.HealthcheckResult(available=True, reason="database: OK")
