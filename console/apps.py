"""Django application of the console."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        from console.people import sign_ins  # noqa: F401 (listens; models are ready only here)
