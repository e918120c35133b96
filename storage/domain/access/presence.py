"""A tab of a browser that shows a table."""

from typing import NamedTuple


class PresentTab(NamedTuple):
    """``entity`` is what the console names an entity by; empty if the tab shows none."""

    table_id: int
    user_id: int
    username: str
    entity: str
