import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def _no_attempts(db):
    """Nobody has tried to sign in before."""
    cache.clear()
