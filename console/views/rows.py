"""A row of the grid again, after it was changed."""

from django.http import HttpRequest

from storage.domain.entity import EntityKey
from storage.models import Table


def saved_row(request: HttpRequest, table: Table, key: EntityKey) -> str:
    return ""
