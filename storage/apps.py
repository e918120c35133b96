"""Django application of the storage."""

from typing import Any

from django.apps import AppConfig


class StorageConfig(AppConfig):
    name = "storage"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import pre_migrate

        pre_migrate.connect(_before_migrations, sender=self)


def _before_migrations(**arguments: Any) -> None:
    from storage.server.migration import before_migrations

    before_migrations(arguments["plan"])
