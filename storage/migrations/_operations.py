"""Operations of squashed migrations, in less space and time than with Django's own."""

from typing import Any, Final

from django.db import models
from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# of references to rows that are deleted first, or at another time
FREE: Final[dict[str, Any]] = {"db_index": False, "db_constraint": False}


def replacing(label: str, *names: str) -> list[tuple[str, str]]:
    """Return the migrations of an application that a squashed one replaces."""
    return [(label, name) for name in names]


def create_model(name: str, /, *, db_table: str = "", **columns: Any) -> CreateModel:
    """Return the operation that creates a model; without a primary key, it has an ``id``."""
    options: dict[str, Any] = {key: columns.pop(key) for key in ("indexes", "constraints") if key in columns}
    if db_table:
        options["db_table"] = db_table
    if not any(column.primary_key for column in columns.values()):
        number = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
        columns = {"id": number, **columns}
    return CreateModel(name, list(columns.items()), options)


class Together(Operation):
    """Operations on models, none of which depends on the columns that another one changes.

    Django makes the classes of all related models again after each operation, which takes most of the time of a
    migration. Here it makes them once.
    """

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__name__, list(self.operations), {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # a cached property: with it, each operation would make the classes
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in reversed(self.operations):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)
