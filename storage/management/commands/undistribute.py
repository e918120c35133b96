"""The command `undistribute`: bring a distributed table back to the coordinator."""

from storage.management.moving import MovingCommand
from storage.operations.tables import distribution


class Command(MovingCommand):
    help = "Bring a distributed table back to the coordinator of the cluster, also while the server runs."
    done = "is on the coordinator"
    move = staticmethod(distribution.undistribute)
