"""Browser tabs that view a table."""

from typing import NamedTuple


class PresentTab(NamedTuple):
    """Browser tab that views a table; ``entity`` is the console's name of the entity, empty if none is open."""

    table_id: int
    user_id: int
    username: str
    entity: str
