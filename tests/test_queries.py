"""Only operations query the models of the storage: one way to the data for all doors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

from tests.live_server import ROOT

DOORS = (
    "console",
    "storage/inspector",
    "storage/management",
    "storage/protocol",
    "storage/rest",
    "storage/server",
)
MANAGERS = {"objects", "_default_manager", "_base_manager"}
QUERIES = {
    "aggregate", "all", "annotate", "bulk_create", "count", "create", "delete", "exclude", "exists", "filter", "first",
    "get_or_create", "in_bulk", "last", "order_by", "prefetch_related", "select_for_update", "select_related",
    "update_or_create", "values", "values_list",
}  # fmt: skip


def related_names() -> set[str]:
    """Names under which objects have the rows of a model of the storage that refer to them."""
    relations = [it for model in apps.get_models() for it in model._meta.related_objects]
    return {
        it.get_accessor_name()
        for it in relations
        if it.related_model._meta.app_label == "storage" and it.get_accessor_name()
    }


def models_in(tree: ast.Module) -> set[str]:
    """Names under which a module has models of the storage."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "storage.models"
        for alias in node.names
    }


def queries(text: str) -> Iterator[str]:
    """Yield what queries a model of the storage."""
    tree = ast.parse(text)
    models, related = models_in(tree), related_names()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        if node.attr in MANAGERS and isinstance(owner, ast.Name) and owner.id in models:
            yield ast.unparse(node)
        if node.attr in QUERIES and isinstance(owner, ast.Attribute) and owner.attr in related:
            yield ast.unparse(node)


def sources() -> Iterator[Path]:
    for door in DOORS:
        yield from (it for it in (ROOT / door).rglob("*.py") if it.parent.name != "migrations")
    yield from ROOT.glob("storage/*/api.py")


def test_no_door_queries_the_models_of_the_storage():
    results = [
        f"{path.relative_to(ROOT)}: {query}" for path in sources() for query in queries(path.read_text())
    ]
    assert results == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("from storage.models import Table\nTable.objects.existing()", "Table.objects"),
        ("def f():\n    from storage.models import Table as T\n    return T.objects.get(pk=1)", "T.objects"),
        ("def f(account):\n    return account.tables.filter(name='a')", "account.tables.filter"),
        ("def f(user):\n    return list(user.memberships.all())", "user.memberships.all"),
    ],
)
def test_finds_queries(text, query):
    assert list(queries(text)) == [query]


def test_leaves_other_models_alone():
    assert not list(
        queries("from console.models import User\nUser.objects.get(pk=1)\nrequest.session.get('a')")
    )
