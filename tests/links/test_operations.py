"""Short links: one for an address, bounded, without secrets."""

from datetime import timedelta

import pytest
from django.utils import timezone

from storage.accounts import accounts
from storage.core.quotas import LINKS
from storage.links import links
from storage.links.links import LONGEST, RETENTION_DAYS, LinkRefused
from storage.models import ShortLink

pytestmark = pytest.mark.django_db
ADDRESS = "t/people/?f=PartitionKey+eq+%27se%27&cols=Name"


@pytest.fixture
def account():
    return accounts.add("acme")


def test_the_same_address_has_the_same_link(account):
    link = links.keep(account, ADDRESS)
    assert links.keep(account, ADDRESS).key == link.key
    assert links.keep(account, "t/people/").key != link.key
    assert links.keep(accounts.add("other"), ADDRESS).key != link.key
    assert links.find(link.key).address == ADDRESS
    assert ShortLink.objects.count() == 3
    assert [links.find(key) for key in ("", link.key[:-1], link.key.upper(), "2" * 12, link.key + "\n")] == [
        None
    ] * 5


def test_links_are_kept_as_long_as_they_are_used(account, settings):
    now = timezone.now()
    first, second = links.keep(account, "t/first/"), links.keep(account, "t/second/")
    long_ago = now - timedelta(days=RETENTION_DAYS - 1)
    ShortLink.objects.update(used_at=long_ago)
    assert links.find(first.key)
    assert ShortLink.objects.get(pk=first.key).used_at > now
    ShortLink.objects.filter(pk=second.key).update(used_at=long_ago - timedelta(days=2))
    assert links.find(second.key) is None
    links.tidy(now)
    assert set(ShortLink.objects.values_list("pk", flat=True)) == {first.key}
    settings.QUOTAS = {**settings.QUOTAS, LINKS.name: 2}
    links.keep(account, "t/third/")
    links.keep(account, "t/fourth/")
    assert not ShortLink.objects.filter(pk=first.key).exists()
    assert ShortLink.objects.count() == 2
    account.delete()
    assert not ShortLink.objects.exists()


def test_addresses_with_secrets_get_none(account):
    for address in [
        "t/people/?sig=abc",
        "t/people/?SIG=abc",
        "sas/?token=abc",
        "t/people/?f=Url+eq+%27https%3A%2F%2Fx%2F%3Fsv%3D1%26sig%3Dabc%27",
        "t/people/?f=C+eq+%27AccountName%3Da%3BAccountKey%3Dabc%27",
        "t/people/?f=T+eq+%27tbl_" + "a" * 42 + "%27",
        "t/people/?" + "f" * LONGEST,
    ]:
        with pytest.raises(LinkRefused):
            links.keep(account, address)
        assert not ShortLink.objects.exists(), address
