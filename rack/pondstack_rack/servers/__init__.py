"""Real MariaDB, Galera, PostgreSQL and RabbitMQ servers of our own: Debian's packages, one directory, loopback only.

They read no file of /etc and touch no server that the machine runs already. Run as root. PostgreSQL refuses root: it
runs as the user postgres, which must be able to reach the directory.
"""

from pondstack_rack.servers.base import LOOPBACK, UNIX_SOCKET_MAX_BYTES, USER, Server, free_port
from pondstack_rack.servers.certificates import Certificate
from pondstack_rack.servers.galera import GaleraCluster
from pondstack_rack.servers.mariadb import MariaDBServer
from pondstack_rack.servers.postgresql import PostgreSQLServer
from pondstack_rack.servers.postgresql_pair import PostgresPair
from pondstack_rack.servers.rabbitmq import RabbitMQServer
from pondstack_rack.servers.rabbitmq_cluster import RabbitMQCluster

__all__ = [
    "LOOPBACK",
    "UNIX_SOCKET_MAX_BYTES",
    "USER",
    "Certificate",
    "GaleraCluster",
    "MariaDBServer",
    "PostgreSQLServer",
    "PostgresPair",
    "RabbitMQCluster",
    "RabbitMQServer",
    "Server",
    "free_port",
]
