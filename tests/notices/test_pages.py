"""The bell, the list, what is muted, the settings of an account and the server, webhooks, and e-mail."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.utils import timezone

from storage.accounts.subject import AccountNotice
from storage.backups.subject import BackupNotice
from storage.core import registry
from storage.jobs.subject import JobNotice
from storage.models import Notice, NoticeRule, Webhook
from storage.notices import delivery, readers
from tests.notices.conftest import mail_server, receiver  # noqa: F401

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
LIST = "/ui/notices/"


def text(answer):
    """Return the text of a page without tags, as a reader sees it."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


@pytest.fixture
def notice(account):
    def open_notice(kind=AccountNotice.KEY_OLD, subject="key1", *, of=account, **facts):
        return Notice.objects.create(
            kind=kind,
            account=of,
            subject=subject,
            severity="warning",
            facts={"key": subject, "days": 400, **facts},
            opened_at=NOW,
            news_at=NOW,
            found_at=NOW,
        )

    return open_notice


def test_the_bell_shows_what_is_new_until_it_is_seen(visit, notice):
    notice()
    notice(JobNotice.FAILED, "table.index", job=7, number=2)
    alice = visit("alice")
    shown = alice.get("/ui/a/acme/")
    assert "Notices: 2 new" in shown.content.decode()
    assert "key1 has not been rotated for 400 days." in text(shown)
    assert 'href="/ui/a/acme/keys/"' in shown.content.decode()
    assert "Notices: 1 new" in visit("victor").get("/ui/").content.decode()
    seen = alice.post(f"{LIST}seen/", headers={"HX-Request": "true"})
    assert "Notices: 0 new" in seen.content.decode()
    assert "key1 has not been rotated" in text(seen)
    assert "Notices: 0 new" in alice.get("/ui/").content.decode()
    Notice.objects.filter(kind="key.old").update(news_at=timezone.now() + timedelta(hours=1))
    assert "Notices: 1 new" in alice.get("/ui/").content.decode()
    assert "Notices: 1 new" in alice.get(f"{LIST}bell/").content.decode()
    assert "Nothing needs your attention" in text(visit("sam").get("/ui/"))


def test_notices_after_the_page_was_shown_stay_new(visit, notice):
    notice()
    alice = visit("alice")
    shown = alice.get(LIST).content.decode()
    [upto] = re.findall(r'name="upto" value="([^"]+)"', shown)
    Notice.objects.update(news_at=datetime.fromisoformat(upto) + timedelta(microseconds=1))
    assert alice.post(f"{LIST}seen/", {"upto": upto, "next": "/ui/a/acme/"})["Location"] == "/ui/a/acme/"
    assert "Notices: 1 new" in alice.get("/ui/").content.decode()
    for odd in ("", "2026", "99999-01-01", "2026-99-01T00:00:00"):
        assert alice.post(f"{LIST}seen/", {"upto": odd, "next": "//evil.example"})["Location"] == LIST
    assert "Notices: 0 new" in alice.get("/ui/").content.decode()


def test_the_list_by_state_kind_and_account(visit, notice):
    notice()
    notice(BackupNotice.MISSING, "", of=None)
    resolved = notice(JobNotice.FAILED, "table.index", job=7, number=2)
    Notice.objects.filter(pk=resolved.pk).update(resolved_at=NOW)
    ada = visit("ada")
    assert "Key older than its limit" in text(ada.get(LIST))
    assert "never backed up" in text(ada.get(LIST))
    assert "The job 7 failed" not in text(ada.get(LIST))
    assert "The job 7 failed" in text(ada.get(LIST, {"state": "resolved"}))
    result = text(ada.get(LIST, {"kind": "backup.missing", "state": "resolved"}))
    assert result.count("400 days") == 1  # in the bell
    of_account = text(visit("alice").get("/ui/a/acme/notices/", {"kind": "key.old", "before": "99999999"}))
    assert of_account.count("400 days") == 2
    assert "never backed up" not in of_account
    assert "No notices" in text(visit("sam").get(LIST, {"state": "muted"}))
    odd, all_ = (text(ada.get(LIST, query)) for query in ({"kind": "\0", "state": "odd"}, {}))
    assert odd.count("Key older than its limit") == all_.count("Key older than its limit") > 0


def test_muting_for_oneself(visit, cast, notice):
    first = notice()
    notice(subject="key2")
    alice = visit("alice")
    for scope, hidden in (("this", 1), ("kind", 2), ("everywhere", 2)):
        sent = {"scope": scope, "next": LIST}
        muted = text(alice.post(f"{LIST}{first.pk}/mute/", sent, follow=True))
        assert "Others still see it" in muted, scope
        assert muted.count("has not been rotated") == 2 * (2 - hidden), scope  # also in the bell
        assert "key1 has not" in text(alice.get(LIST, {"state": "muted"})), scope
        [mute] = readers.mutes(cast["alice"])
        alice.post(f"/ui/me/notices/mutes/{mute.pk}/remove/")
        assert text(alice.get(LIST)).count("has not been rotated") == 4, scope
    alice.post(f"{LIST}{first.pk}/mute/", {"scope": "everywhere", "next": LIST})
    assert "Key older than its limit" in text(alice.get("/ui/me/notices/"))
    assert text(visit("ada").get(LIST)).count("has not been rotated") == 4
    assert visit("victor").post(f"{LIST}{first.pk}/mute/").status_code == 404


def test_rules_of_an_account_and_of_the_server(visit, notice):
    max_, where = visit("max"), "/ui/a/acme/notices/settings/"
    shown = max_.get(where).content.decode()
    assert 'name="errors.high-threshold" value="10"' in shown
    fields = {"errors.high": "on", "errors.high-threshold": "5", "key.old": "on", "job.failed": "on"}
    saved = max_.post(where, {**fields, "key.old-threshold": ""}, follow=True)
    assert "Saved." in text(saved)
    stored = {it.kind: (it.is_on, it.threshold) for it in NoticeRule.objects.all()}
    assert stored["errors.high"] == (True, 5)
    assert stored["latency.high"] == (False, None)
    assert "job.failed" not in stored
    assert "max changed the notices of the kind errors.high" in text(max_.get("/ui/a/acme/activity/"))
    refused = max_.post(where, {**fields, "errors.high-threshold": "101"})
    assert refused.status_code == 422
    ada = visit("ada")
    assert "No backup" in text(ada.get("/ui/notices/settings/"))
    ada.post("/ui/notices/settings/", {})
    of_server = {kind for kind, member in registry.notice_kinds().items() if member.condition.is_of_server}
    assert {rule.kind for rule in NoticeRule.objects.filter(account=None)} == of_server


def test_two_users_who_change_the_rules_overwrite_nothing(visit):
    max_, where = visit("max"), "/ui/a/acme/notices/settings/"
    seen = {"initial-errors.high": "True", "initial-errors.high-threshold": "10", "initial-key.old": "True"}
    shown = max_.get(where).content.decode()
    assert all(f'name="{name}" value="{value}"' in shown for name, value in seen.items())
    same = {name.removeprefix("initial-"): value for name, value in seen.items()}
    for changed in ({"errors.high-threshold": "20"}, {"key.old": ""}):
        assert max_.post(where, {**seen, **same, **changed}).status_code == 302
    refused = max_.post(where, {**seen, **same, "errors.high-threshold": "5"})
    assert refused.status_code == 422
    assert "Changed in the meantime to “20”." in text(refused)
    stored = {it.kind: (it.is_on, it.threshold) for it in NoticeRule.objects.filter(kind__in=same)}
    assert stored == {"errors.high": (True, 20), "key.old": (False, None)}


def test_two_users_who_change_a_webhook_overwrite_nothing(proven, receiver):  # noqa: F811
    client, base = proven("alice"), "/ui/a/acme/notices/webhooks/"
    client.post(f"{base}new/", {"name": "chat", "url": receiver.url, "enabled": "on"})
    webhook = Webhook.objects.get()
    page = f"{base}{webhook.pk}/"
    same = {"name": "chat", "url": receiver.url, "format": webhook.format, "enabled": "True"}
    seen = {f"initial-{name}": value for name, value in same.items()}
    shown = client.get(page).content.decode()
    assert all(f'name="{name}" value="{value}"' in shown for name, value in seen.items())

    Webhook.objects.update(enabled=False, kinds=["errors.high"])
    assert client.post(page, {**seen, **same, "name": "pager"}).status_code == 302
    webhook.refresh_from_db()
    assert (webhook.name, webhook.enabled, webhook.kinds) == ("pager", False, ["errors.high"])
    sent = {**seen, **same, "name": "pager", "kinds": ["key.old"]}
    refused = client.post(page, sent)
    assert refused.status_code == 422
    assert "Changed in the meantime to “Many requests fail”." in text(refused)
    assert client.post(page, {**sent, "initial-kinds": ["errors.high"]}).status_code == 302
    webhook.refresh_from_db()
    assert webhook.kinds == ["key.old"]


@pytest.mark.parametrize("name", ["alice", "ada"])
def test_a_webhook_from_its_secret_to_its_end(proven, receiver, name, visit):  # noqa: F811
    client = proven(name)
    base = "/ui/a/acme/notices/" if name == "alice" else "/ui/notices/"
    refused = client.post(f"{base}webhooks/new/", {"name": "chat", "url": "ftp://example.com"})
    assert refused.status_code == 422
    assert "must begin with https" in text(refused)
    fields = {"name": "chat", "url": receiver.url, "kinds": ["errors.high"], "enabled": "on"}
    made = client.post(f"{base}webhooks/new/", fields)
    [secret] = re.findall(r"whsec_[A-Za-z0-9+/=]+", text(made))[:1]
    webhook = Webhook.objects.get()
    page = f"{base}webhooks/{webhook.pk}/"
    assert secret not in client.get(page).content.decode()
    assert "already exists" in text(client.post(f"{base}webhooks/new/", fields))
    assert "accepted the test: 204" in text(client.post(f"{page}test/", follow=True))
    receiver.answers = [500]
    failed = text(client.post(f"{page}test/", follow=True))
    assert "The test failed: The receiver answered 500." in failed
    assert failed.count("Test") >= 2
    renewed = text(client.post(f"{page}secret/"))
    assert "whsec_" in renewed
    assert secret not in renewed
    assert "Saved the webhook" in text(client.post(page, {"name": "pager", "url": receiver.url}, follow=True))
    webhook.refresh_from_db()
    assert (webhook.name, webhook.kinds, webhook.enabled) == ("pager", [], False)
    assert "pager" in text(client.get(f"{base}settings/"))
    client.post(f"{page}delete/")
    assert client.get(page).status_code == 404


def test_a_webhook_is_found_in_its_account_only(visit, proven, receiver):  # noqa: F811
    proven("alice").post("/ui/a/acme/notices/webhooks/new/", {"name": "chat", "url": receiver.url})
    number = Webhook.objects.get().pk
    assert visit("ada").get(f"/ui/notices/webhooks/{number}/").status_code == 404
    assert visit("max").get(f"/ui/a/acme/notices/webhooks/{number}/").status_code == 200


def test_deliveries_are_listed(proven, receiver, notice):  # noqa: F811
    alice = proven("alice")
    alice.post("/ui/a/acme/notices/webhooks/new/", {"name": "chat", "url": receiver.url, "enabled": "on"})
    delivery.announce(notice(), delivery.NoticeEvent.OPENED, NOW)
    page = f"/ui/a/acme/notices/webhooks/{Webhook.objects.get().pk}/"
    assert "Key older than its limit opened waiting" in text(alice.get(page))
    receiver.answers = [503]
    delivery.deliver(lambda: NOW)
    assert "answered 503. attempt 1, next" in text(alice.get(page))


def test_an_address_is_confirmed_by_a_code(proven, mail_server, settings):  # noqa: F811
    settings.CONSOLE_URL = "https://tables.example.com"
    alice, page = proven("alice"), "/ui/me/notices/"
    assert alice.post(f"{page}address/", {"address": "nowhere"}).status_code == 422
    assert "Sent a code" in text(alice.post(f"{page}address/", {"address": "alice@example.com"}, follow=True))
    [(recipients, lines)] = mail_server.mails
    assert recipients == ["alice@example.com"]
    code = re.search(r"\b[0-9]{8}\b", " ".join(lines))[0]
    wrong = alice.post(f"{page}address/confirm/", {"code": "1"})
    assert (wrong.status_code, "code is wrong" in text(wrong)) == (422, True)
    assert "Notices go to alice@example.com" in text(
        alice.post(f"{page}address/confirm/", {"code": code}, follow=True)
    )
    alice.post(f"{page}address/remove/")
    assert "Notices go to" not in text(alice.get(page))
    mail_server.refuses = True
    assert "could not be sent" in text(alice.post(f"{page}address/", {"address": "alice@example.com"}))
    settings.SMTP = None
    without = alice.get(page)
    assert "E-mail is turned off" in text(without) and b'class="card"' not in without.content
    assert alice.post(f"{page}address/", {"address": "alice@example.com"}).status_code == 404
