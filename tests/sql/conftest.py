"""The relation of a table, as every statement on entities needs one."""

import pytest

from storage.sql import relations
from storage.sql.django import execute

TABLE_ID = 1_000_000
ACCOUNT_ID = 1_000_000


@pytest.fixture(autouse=True)
def _patient(patient_lanes):
    """Let no statement fail because the machine is busy."""


@pytest.fixture
def relation(db):
    execute(relations.create(TABLE_ID, ACCOUNT_ID))
    return relations.relation_name(TABLE_ID)
