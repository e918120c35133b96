"""Limits after which the product gives up, extended for machines that are busy with other tests."""

from datetime import timedelta

from storage.activity import activity
from storage.bulk_edit import bulk_edit_previews
from storage.entities import entities, estimates, facets, schema
from storage.history import changes, past
from storage.notices import sending
from storage.runtime import job_runner, threads
from storage.sql import notify
from storage.tables import adaptive_indexes

LIMITS = (
    (notify, "_LOCK_TIMEOUT", "60s"),
    (job_runner, "_SHUTDOWN_TIMEOUT", 60.0),
    (sending, "TIMEOUT", 60.0),
    *((module, "_PATIENCE", 60.0) for module in (adaptive_indexes, past, threads)),
    *(
        (module, name, timedelta(minutes=1))
        for module, name in (
            (activity, "_PAGE_TIMEOUT"),
            (adaptive_indexes, "_EXAMINATION"),
            (bulk_edit_previews, "COUNT_MOMENT"),
            (entities, "SORT_LIMIT"),
            (estimates, "LIMIT"),
            (facets, "_LIMIT"),
            (schema, "_LIMIT"),
        )
    ),
)
# limits of pages: statements, samples, jobs, and other servers
LIMITS_OF_PAGES = {
    "console.compare.views.compare._BUDGET": 60.0,
    "console.bulk_edit.views._WHILE_TYPING": timedelta(minutes=1),
    "console.site.waiting.PATIENCE": 60.0,
    "storage.access.key_set.TIMEOUT": 60,
    "storage.entities.estimates.LIMIT": timedelta(minutes=1),
    "storage.notices.sending.TIMEOUT": 60.0,
    "storage.sql.django._time_limit": lambda limit: "statement_timeout = '1min'",
}


def extend_limits(monkeypatch):
    """Extend the limits of operations to a minute."""
    for module, name, limit in LIMITS:
        monkeypatch.setattr(module, name, limit)
    monkeypatch.setattr(changes.run_limited, "__defaults__", (timedelta(minutes=1),))
    for operation in (bulk_edit_previews.preview, entities.count, entities.total):
        monkeypatch.setitem(operation.__kwdefaults__, "limit", timedelta(minutes=1))


def extend_limits_of_pages(monkeypatch):
    """Extend the limits within which a page shows an estimate, or says that something takes long."""
    for name, value in LIMITS_OF_PAGES.items():
        monkeypatch.setattr(name, value)
