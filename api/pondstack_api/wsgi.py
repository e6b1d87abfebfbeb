"""The WSGI entry point: serve `pondstack_api.wsgi:application` with uwsgi, gunicorn or mod_wsgi.

The configuration is the file that PONDSTACK_CONF_FILE names (default /etc/pondstack/pondstack.conf). Importing this
module reads it, so that a server with a wrong one does not start.
"""

from pondstack import native_threads

native_threads.use()

from pondstack import logs  # noqa: E402
from pondstack_api import config, deploy  # noqa: E402

conf = config.load()
logs.setup(conf, "pondstack-api")
application = deploy.deploy(conf)
