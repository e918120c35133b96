"""The command `undistribute`: bring a distributed table back to the coordinator."""

from storage.domain.access.actor import Actor
from storage.management.moving import MovingCommand
from storage.models import Table
from storage.operations.tables import distribution


class Command(MovingCommand):
    help = "Bring a distributed table back to the coordinator of the cluster, also while the server runs."
    done = "is on the coordinator"

    def move(self, table: Table, by: Actor) -> None:
        distribution.undistribute(table, by=by)
