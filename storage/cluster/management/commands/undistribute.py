"""The command `undistribute`: move a distributed table back to the coordinator."""

from storage.cluster import distribution
from storage.cluster.management.moving import MovingCommand


class Command(MovingCommand):
    help = "Bring a distributed table back to the coordinator of the cluster, also while the server runs."
    done = "is on the coordinator"
    move = staticmethod(distribution.undistribute)
