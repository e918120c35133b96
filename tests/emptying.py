"""Deletion of rows that a test left in the tables of the models.

There are few rows, and TRUNCATE would make every file again.
"""

from functools import cache

from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = {"django_content_type", "auth_permission"}  # written by the migrations and by no test


def install():
    """Replace `flush`, which also writes all permissions again."""
    TransactionTestCase._fixture_teardown = lambda case: empty()


def empty():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statements())


@cache
def statements():
    names = sorted(set(connection.introspection.django_table_names(only_existing=True)) - KEPT)
    # in any order, and without triggers
    return "; ".join(["SET LOCAL session_replication_role = replica", *(f'DELETE FROM "{n}"' for n in names)])
