"""Watched execution of statements on relations of other forms, with lazily created watches."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from django.utils.module_loading import import_string

from storage.core.reading import Partition, RelationWatch
from storage.core.relation_forms import RelationForm
from storage.sql.forms import form_of_relation
from storage.sql.lanes import Lanes

T = TypeVar("T")


class Watches:
    """Watches of a process, one for each relation form that has one."""

    def __init__(self, conninfo: str, lanes: Lanes) -> None:
        self._conninfo = conninfo
        self._lanes = lanes
        self._by_path: dict[str, RelationWatch] = {}

    async def close(self) -> None:
        for watch in self._by_path.values():
            await watch.close()

    async def run(self, relation: str, partition: Partition, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on a relation through the watch of its form; raises ServerBusy."""
        return await self._watch_of(form_of_relation(relation)).run(relation, partition, operation)

    def _watch_of(self, form: RelationForm) -> RelationWatch:
        watch = self._by_path.get(form.watch)
        if watch is None:
            watch = import_string(form.watch)(self._conninfo, self._lanes)
            self._by_path[form.watch] = watch
        return watch
