from dataclasses import replace

import pytest
from django.core.cache import cache

from storage.domain.access.sign_in import Provider
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, serving


@pytest.fixture(autouse=True)
def _no_attempts(db):
    """Forget all earlier attempts to sign in."""
    cache.clear()


def provider_of(served, **changes):
    return replace(
        Provider(served.url, CLIENT_ID, CLIENT_SECRET, "Elsewhere", admits_everyone=True), **changes
    )


@pytest.fixture
def elsewhere(settings):
    """Run the identity provider at which Jane has an account."""
    with serving() as provider:
        settings.SIGN_IN_PROVIDERS = (provider_of(provider),)
        provider.id = settings.SIGN_IN_PROVIDERS[0].id
        yield provider


@pytest.fixture
def configure(elsewhere, settings):
    """Set the provider with other settings."""

    def change(**changes):
        settings.SIGN_IN_PROVIDERS = (provider_of(elsewhere, **changes),)

    return change
