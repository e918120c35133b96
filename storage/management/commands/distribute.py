"""The command `distribute`: spread a table over the nodes of a Citus cluster."""

from storage.domain.access.actor import Actor
from storage.management.moving import MovingCommand
from storage.models import Table
from storage.operations.tables import distribution


class Command(MovingCommand):
    help = "Spread a table over the nodes of a Citus cluster, also while the server runs."
    done = "is distributed"

    def move(self, table: Table, by: Actor) -> None:
        distribution.distribute(table, by=by)
