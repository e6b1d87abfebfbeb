"""Neutron's API with its SQLAlchemy mappers configured before the first request.

Neutron 29 lists ports by attributes that exist only once the mappers are configured. A query on another table does
that in passing; here Nova's list of ports may well be the first request, and would fail with an AttributeError
for ever.
"""

from neutron.wsgi.api import application
from sqlalchemy.orm import configure_mappers

configure_mappers()

__all__ = ["application"]
