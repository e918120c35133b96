"""The plugin of a run with a fault: the database is there already, and a failing example is not made smaller."""

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import hypothesis
import pytest
from psycopg.conninfo import make_conninfo

DATABASE: Final = os.environ.get("TEST_DATABASE", "test_tablero")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    kept = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    profile = hypothesis.settings.get_profile("suite")
    hypothesis.settings.register_profile(
        "unshrunk", profile, phases=kept, max_examples=int(os.environ.get("TEST_EXAMPLES", "100"))
    )
    hypothesis.settings.load_profile("unshrunk")
    late = ModuleType("reused_database")  # after pytest-django, whose fixture it replaces
    late.django_db_setup = django_db_setup  # type: ignore[attr-defined]
    config.pluginmanager.register(late)


@pytest.fixture(scope="session")
def django_db_setup(django_db_modify_db_settings: None, django_db_blocker: object) -> Iterator[None]:
    from django.conf import settings
    from django.db import connections

    from storage.server.database import close_pools

    connections["default"].settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = DATABASE
    settings.LANES_CONNINFO = make_conninfo(settings.LANES_CONNINFO, dbname=DATABASE)
    yield
    close_pools()
