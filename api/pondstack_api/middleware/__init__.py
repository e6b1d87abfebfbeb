"""WSGI middleware; pondstack_api.deploy puts them in order and says why."""
