"""Replacing the server secret in place: what the former one has sealed is sealed with the new one."""

from base64 import b64decode
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.mfa.utils import decrypt
from django.apps import apps

from storage.access import retired_keys
from storage.accounts import accounts, sealed_keys
from storage.copies import copy_jobs
from storage.copies.copy_jobs import Credentials
from storage.copies.copying import CopyOptions
from storage.domain.access.actor import SERVER
from storage.history import feed
from storage.history.feed import NOW, Feed
from storage.jobs import jobs
from storage.models import Account, RetiredKey, Webhook
from storage.notices import webhooks
from storage.server import migration, secret
from tests.notices.test_delivery import create

FORMER, NEW = b"the secret of the tests", b"the secret of today"


@pytest.fixture
def use(settings):
    """Return `use(secret, former)`, which sets the secrets as a start of the server does."""

    def use(present, former=None):
        settings.SERVER_SECRET, settings.FORMER_SECRET = present, former
        settings.MFA_KEYS = tuple(secret.derive(it, "mfa") for it in (present, former) if it)

    return use


@pytest.fixture
def sealed(use, cast, account):
    """Seal one of each with the former secret; return a function that returns them in plain."""
    use(FORMER)
    account = accounts.add("former")
    accounts.rotate("former", 1, by=SERVER, grace=timedelta(days=1))
    _, webhook = create(account, "https://hooks.example.com/7")
    text = "https://planets.table.core.windows.net/?sv=2019-02-02&sig=c2VjcmV0"
    job = jobs.start_requested(
        copy_jobs.request(account, Credentials(text, "", ""), CopyOptions()), by=SERVER
    )
    app, codes = TOTP.activate(cast["alice"], generate_totp_secret()), RecoveryCodes.activate(cast["alice"])

    def opened():
        fresh = Account.objects.get(pk=account.pk)
        job.refresh_from_db()
        return (
            sealed_keys.keys_of(fresh),
            [key for _row, key in retired_keys.opened_of(fresh, RetiredKey.objects.all())],
            webhooks.open_secret(Webhook.objects.get(pk=webhook.pk)),
            sealed_keys.unseal_as(f"copy {fresh.name}", b64decode(job.arguments["secret"])),
            decrypt(Authenticator.objects.get(pk=app.instance.pk).data["secret"]),
            RecoveryCodes(Authenticator.objects.get(pk=codes.instance.pk)).generate_codes(),
        )

    return opened


def test_a_start_seals_everything_with_the_new_secret(use, sealed, settings, monkeypatch):
    plain = sealed()
    assert len(plain[1]) == 1
    use(NEW, FORMER)
    assert sealed() == plain
    monkeypatch.setattr(migration, "_upgrade", lambda *_: None)
    migration.prepare(settings.OPTIONS, print)
    assert sealed() == plain
    use(NEW)
    assert sealed() == plain


def test_every_sealed_field_is_known():
    """A new one needs a function for Hook.RESEAL, and a place in `sealed`."""
    fields = {
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if "sealed" in field.name
    }
    assert fields == {
        "Account.primary_key_sealed",
        "Account.secondary_key_sealed",
        "RetiredKey.sealed",
        "Webhook.secret_sealed",
    }


def test_a_reader_of_the_feed_goes_on_with_a_new_token(use, account):
    use(FORMER)
    _, token = feed.read(Feed(account.pk), NOW)
    use(NEW, FORMER)
    _, newer = feed.read(Feed(account.pk), token)
    use(NEW)
    feed.read(Feed(account.pk), newer)
    with pytest.raises(feed.InvalidToken):
        feed.read(Feed(account.pk), token)
