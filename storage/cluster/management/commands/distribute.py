"""The command `distribute`: spread a table over the nodes of a Citus cluster."""

from storage.cluster import distribution
from storage.cluster.management.moving import MovingCommand


class Command(MovingCommand):
    help = "Spread a table over the nodes of a Citus cluster, also while the server runs."
    done = "is distributed"
    move = staticmethod(distribution.distribute)
