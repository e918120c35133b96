"""Webhooks and mail for notices, and retries when receivers do not answer."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from email import message_from_string, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network

import pytest
from django.db import connection

from storage.accounts.subject import AccountNotice
from storage.backups.subject import BackupNotice
from storage.domain.access.actor import Actor, ActorKind
from storage.jobs.subject import JobNotice
from storage.models import Activity, Notice, NoticeDelivery, NoticeReader, Webhook
from storage.notices import delivery, readers, sending, webhooks
from storage.notices.kinds import NoticeEvent
from storage.notices.sending import Answer, Message, is_allowed, read_url, send
from storage.notices.webhooks import WebhookError, WebhookFields
from storage.people.subject import PeopleNotice
from storage.remote import addresses
from tests.certificates import make_certificate
from tests.notices.conftest import LOOPBACK, serving

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
MAX = Actor(ActorKind.USER, "max")


def create(account, url, **fields):
    return webhooks.create(account, WebhookFields(fields.pop("name", "hook"), url, **fields), by=MAX)


def announce(account, kind=AccountNotice.KEY_OLD, event=NoticeEvent.OPENED, subject="key1", user=None):
    notice, _ = Notice.objects.get_or_create(
        kind=kind,
        account=account,
        user=user,
        subject=subject,
        defaults={
            "severity": "warning",
            "facts": {"key": subject, "days": 400, "token": "ci", "expires_at": "2026-12-01T10:00:00+00:00"},
            "opened_at": NOW,
            "news_at": NOW,
            "found_at": NOW,
        },
    )
    delivery.announce(notice, event, NOW)
    return notice


def deliver(at=NOW):
    return delivery.deliver(lambda: at)


def test_a_webhook_gets_a_signed_message_once(account, receiver, settings):
    settings.CONSOLE_URL = "https://tables.example.com"
    secret, hook = create(account, f"{receiver.url}?of=acme")
    assert not deliver()
    notice = announce(account)
    assert deliver()
    assert not deliver()
    [(headers, body)] = receiver.requests
    assert json.loads(body)["data"] == {
        "id": notice.pk,
        "kind": "key.old",
        "severity": "warning",
        "account": "acme",
        "subject": "key1",
        "text": "key1 has not been rotated for 400 days.",
        "facts": notice.facts,
        "link": "https://tables.example.com/ui/a/acme/keys/",
        "opened_at": NOW.isoformat(),
        "resolved_at": None,
    }
    assert json.loads(body)["type"] == "notice.opened"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    version, _, signature = headers["webhook-signature"].partition(",")
    assert version == "v1"
    assert base64.b64decode(signature) == hmac.digest(key, signed, hashlib.sha256)
    hook.refresh_from_db()
    assert (hook.failures, hook.delivered_at) == (0, NOW)
    assert key not in bytes(hook.secret_sealed)
    assert not any(secret in str(done.detail) for done in Activity.objects.all())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "slack"),
        ("https://contoso.webhook.office.com/webhookb2/x", "teams"),
        ("https://prod-7.westeurope.logic.azure.com:443/workflows/x?sig=y", "teams"),
        ("https://default0.12.environment.api.powerplatform.com/powerautomate/x", "teams"),
        ("https://hooks.slack.com.example.com/x", "json"),
        ("https://logic.azure.com.example.com/x", "json"),
        ("https://evilwebhook.office.com/x", "json"),
        ("https://chat.example.com/hooks/7", "json"),
    ],
)
def test_the_host_chooses_the_format_which_can_be_changed(account, url, expected):
    _, hook = create(account, url)
    assert hook.format == expected
    chosen = webhooks.change(hook, WebhookFields("hook", url, format="json"), by=MAX)
    assert chosen.format == "json"
    assert webhooks.change(hook, WebhookFields("hook", url), by=MAX).format == expected


def test_slack_gets_a_message_that_it_takes(account, receiver, settings):
    settings.CONSOLE_URL = "https://tables.example.com"
    create(account, receiver.url, format="slack")
    for event in (NoticeEvent.OPENED, NoticeEvent.RESOLVED):
        announce(account, event=event, subject="<!channel> & key1")
        assert deliver()
    (headers, opened), (_, resolved) = receiver.requests
    assert not any(name.lower().startswith("webhook-") for name in headers)
    message = json.loads(opened)
    assert message.keys() == {"text", "blocks"}
    told = "&lt;!channel&gt; &amp; key1 has not been rotated for 400 days."
    assert message["text"] == f"New notice: Key older than its limit (acme): {told}"
    [block] = message["blocks"]
    assert (block["type"], block["text"]["type"]) == ("section", "mrkdwn")
    assert block["text"]["text"].splitlines() == [
        "\N{LARGE YELLOW CIRCLE} *New notice: Key older than its limit (acme)*",
        told,
        "<https://tables.example.com/ui/a/acme/keys/|Open in Tablero>",
    ]
    assert json.loads(resolved)["blocks"][0]["text"]["text"].startswith(
        "\N{WHITE HEAVY CHECK MARK} *Resolved:"
    )


def test_teams_gets_an_adaptive_card(account, receiver, settings):
    settings.CONSOLE_URL = "https://tables.example.com"
    _, hook = create(account, receiver.url, format="teams")
    announce(account, subject="**key1**")
    assert deliver()
    delivery.test(hook, NOW)
    (headers, body), (_, tested) = receiver.requests
    assert not any(name.lower().startswith("webhook-") for name in headers)
    message = json.loads(body)
    [attachment] = message["attachments"]
    assert (message["type"], attachment["contentType"]) == (
        "message",
        "application/vnd.microsoft.card.adaptive",
    )
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert [(run["text"], run.get("color")) for run in runs] == [
        ("New notice: Key older than its limit (acme)", "Warning"),
        ("**key1** has not been rotated for 400 days.", None),
    ]
    assert card["actions"][0]["url"] == "https://tables.example.com/ui/a/acme/keys/"
    settings.CONSOLE_URL = ""
    announce(account, subject="key2")
    deliver()
    assert (
        "actions" not in json.loads(receiver.requests[-1][1])["attachments"][0]["content"]
    )  # no page is known
    assert "This webhook works." in tested.decode()


def test_it_is_tried_again_with_the_same_id_and_given_up(account, receiver):
    _, hook = create(account, receiver.url)
    announce(account)
    receiver.answers = [500, 302, *[503] * 10]
    at, waits = NOW, []
    while (sent := NoticeDelivery.objects.get()).due_at is not None:
        assert not deliver(sent.due_at - timedelta(milliseconds=1))
        at = sent.due_at
        assert deliver(at)
        sent.refresh_from_db()
        waits.append(sent.due_at and sent.due_at - at)
    for wait, least in zip(waits[:-1], delivery.RETRIES, strict=True):
        assert least <= wait <= 1.2 * least
    assert (sent.attempts, sent.status, sent.error) == (8, 503, "The receiver answered 503.")
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1
    assert len(receiver.requests) == 8  # the redirect is not followed
    hook.refresh_from_db()
    assert (hook.failures, hook.failed_at, hook.enabled) == (8, NOW, True)
    receiver.answers = [410]
    announce(account, subject="key2")
    assert deliver()
    hook.refresh_from_db()
    assert not hook.enabled  # the receiver wants no more
    announce(account, subject="key3")
    assert not deliver()


def test_which_webhooks_get_which_notices(account, cast, receiver):
    for scope, name, kinds in (
        (account, "all", []),
        (account, "keys", ["key.old"]),
        (account, "jobs", ["job.failed"]),
        (None, "server", []),
    ):
        create(scope, f"{receiver.url}/{name}", name=name, kinds=kinds)
    create(account, receiver.url, name="off", enabled=False)
    announce(account)
    announce(account, event=NoticeEvent.RESOLVED)
    announce(None, PeopleNotice.API_TOKEN_EXPIRING, user=cast["victor"])
    announce(None, BackupNotice.MISSING)
    told = NoticeDelivery.objects.order_by("pk").values_list("webhook__name", "notice__kind", "event")
    assert sorted(told) == [
        ("all", "key.old", "opened"),
        ("all", "key.old", "resolved"),
        ("keys", "key.old", "opened"),
        ("keys", "key.old", "resolved"),
        ("server", "backup.missing", "opened"),
        ("server", "key.old", "opened"),
        ("server", "key.old", "resolved"),
    ]
    Webhook.objects.filter(name="keys").update(enabled=False)
    assert deliver()
    assert len(receiver.requests) == 5
    assert NoticeDelivery.objects.filter(error="the webhook is off").count() == 2


@pytest.mark.django_db(transaction=True)
def test_only_one_of_several_processes_sends(account, receiver):
    create(account, receiver.url)
    for number in range(5):
        announce(account, subject=f"key{number}")
    barrier, done = threading.Barrier(3), []

    def run():
        barrier.wait()
        done.append(deliver())
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert True in done
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == len(receiver.requests) == 5


def test_a_webhook_deleted_during_delivery_does_not_block_others(account, cast, receiver, monkeypatch):
    for name in ("first", "second"):
        create(account, receiver.url, name=name)
    announce(account)
    make_message = delivery._message

    def delete_and_make(sent):
        if sent.webhook.name == "first":
            webhooks.remove(sent.webhook, by=MAX)
        return make_message(sent)

    monkeypatch.setattr(delivery, "_message", delete_and_make)
    assert deliver()
    [left] = NoticeDelivery.objects.all()
    assert (left.webhook.name, left.delivered_at) == ("second", NOW)
    delivery._mail(0, [], NOW)  # a deleted user


def test_answers_of_a_former_address_do_not_disable_the_webhook(account, receiver):
    _, hook = create(account, receiver.url)
    announce(account)
    [sent] = NoticeDelivery.objects.select_related("webhook")
    webhooks.change(hook, WebhookFields("hook", f"{receiver.url}?new"), by=MAX)
    delivery._record(sent, Answer(410, "The receiver answered 410."), NOW)
    hook.refresh_from_db()
    assert (hook.enabled, hook.failures) == (True, 0)


def test_a_test_says_how_it_went_and_counts_for_nothing(account, receiver):
    _, hook = create(account, receiver.url)
    receiver.answers = [204, 401]
    good, bad = delivery.test(hook, NOW), delivery.test(hook, NOW)
    assert (good.status, good.error, good.delivered_at) == (204, "", NOW)
    assert (bad.status, bad.error, bad.due_at) == (401, "The receiver answered 401.", None)
    assert json.loads(receiver.requests[0][1])["type"] == "notice.test"
    hook.refresh_from_db()
    assert hook.failures == 0
    assert [it.pk for it in delivery.for_webhook(hook)] == [bad.pk, good.pk]


def test_secrets_are_sealed_and_can_be_renewed(account, receiver, settings):
    secret, hook = create(account, receiver.url)
    renewed = webhooks.renew_secret(hook, by=MAX)
    assert renewed != secret
    hook.refresh_from_db()
    assert sending.write_secret(webhooks.open_secret(hook)) == renewed
    settings.SERVER_SECRET = b"another secret of the server"
    assert "sealed with another secret" in delivery.test(hook, NOW).error
    assert receiver.requests == []


def test_webhooks_are_checked_and_recorded(account, settings):
    for url in (
        "ftp://example.com",
        "https://",
        "https://a@example.com/",
        "https://example.com/#a",
        "https://é.de",
    ):
        with pytest.raises(WebhookError):
            create(account, url)
    _, hook = create(account, "https://example.com/a")
    for fields in (
        {"name": "hook"},
        {"name": "other", "kinds": ["backup.missing"]},
        {"name": "x", "kinds": ["y"]},
    ):
        with pytest.raises(WebhookError):
            create(account, "https://example.com/", **fields)
    settings.QUOTAS = {**settings.QUOTAS, "webhook": 1}
    with pytest.raises(WebhookError):
        create(account, "https://example.com/", name="second")
    webhooks.change(hook, WebhookFields("new", "https://example.com/a", ["key.old"]), by=MAX)
    webhooks.remove(hook, by=MAX)
    recorded = Activity.objects.filter(verb__startswith="webhook.").order_by("pk")
    assert [(it.verb, it.detail) for it in recorded] == [
        ("webhook.create", {"webhook": "hook"}),
        ("webhook.change", {"webhook": "new", "changed": ["name", "kinds"]}),
        ("webhook.delete", {"webhook": "new"}),
    ]


# addresses


def test_private_addresses_are_refused(settings):
    for text, allowed in [
        ("93.184.215.14", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("192.0.0.1", False),
        ("192.0.0.9", False),
        ("192.0.0.192", False),
        ("168.63.129.16", False),
        ("168.63.129.15", True),
        ("100.100.100.200", False),
        ("192.31.196.1", False),
        ("192.52.193.1", False),
        ("192.88.99.1", False),
        ("192.175.48.1", False),
        ("198.18.0.1", False),
        ("203.0.113.1", False),
        ("240.0.0.1", False),
        ("fd00:ec2::254", False),
        ("fd20:ce::254", False),
        ("2001::1", False),
        ("2001:0:7f00:1::", False),
        ("2001:20::1", False),
        ("2001:1ff::1", False),
        ("2001:200::1", True),
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("2620:4f:8000::1", False),
        ("5f00::1", False),
        ("4000::1", False),
        ("100::1", False),
        ("::93.184.215.14", False),
        ("::ffff:0:5db8:d70e", False),
        ("::ffff:168.63.129.16", False),
        ("::ffff:192.0.0.1", False),
        ("64:ff9b::c000:1", False),
        ("64:ff9b::a83f:8110", False),
        ("64:ff9b:1::5db8:d70e", False),
        ("2002:a83f:8110::1", False),
        ("2002:5db8:d70e::1", True),
        ("fec0::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::5db8:d70e", True),
        ("2002:7f00:1::1", False),
        ("2002:a00:1::1", False),
    ]:
        settings.WEBHOOK_NETWORKS = ()
        assert is_allowed(ip_address(text), is_tls=True) is allowed, (text, allowed)
        assert not is_allowed(ip_address(text), is_tls=False), (text, allowed)
        settings.WEBHOOK_NETWORKS = (ip_network("10.0.0.0/8"),)
        assert is_allowed(ip_address("10.1.2.3"), is_tls=False), (text, allowed)
        assert not is_allowed(ip_address("11.1.2.3"), is_tls=False), (text, allowed)


def message(url):
    return Message(url, b"secret", "id", b"{}")


def test_the_address_is_checked_where_it_is_connected_to(receiver, settings, monkeypatch):
    """A name that had a public address when it was looked at first, and has a private one now (DNS rebinding)."""
    port = int(read_url(receiver.url).port)
    real, asked = socket.getaddrinfo, []
    answers = [["127.0.0.1"], ["93.184.215.14"], ["10.0.0.1", "127.0.0.1"]]

    def resolve(host, port, *arguments, **options):
        if host != "rebinding.example.com":
            return real(host, port, *arguments, **options)
        asked.append(host)
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (text, port)) for text in answers.pop(0)]

    monkeypatch.setattr(sending.socket, "getaddrinfo", resolve)
    url = f"http://rebinding.example.com:{port}/"
    settings.WEBHOOK_NETWORKS = ()
    assert "private network" in send(message(url)).error
    assert "Use https" in send(message(url)).error
    assert receiver.requests == []
    settings.WEBHOOK_NETWORKS = LOOPBACK
    assert send(message(url)).status == 204  # the one address of two that is allowed
    assert len(asked) == 3  # once each: what was checked is what was connected to
    assert receiver.requests[0][0]["Host"] == f"rebinding.example.com:{port}"


def test_a_name_that_cannot_be_resolved_is_refused_like_one_of_a_private_network(settings, monkeypatch):
    """Users who set up webhooks must not learn which names exist in the server's network."""

    def resolve(host, port, *arguments, **options):
        if host == "internal.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", port))]
        raise socket.gaierror(
            socket.EAI_AGAIN if host == "later.example" else socket.EAI_NONAME, "no such name"
        )

    monkeypatch.setattr(sending.socket, "getaddrinfo", resolve)
    settings.WEBHOOK_NETWORKS = (ip_network("10.9.0.0/16"),)
    hosts = ("internal.example", "none.example", "later.example", f"{'x' * 64}.example")
    answers = {
        (send(message(f"{scheme}://{host}:8443/")).error, send(message(f"{scheme}://{host}/")).status)
        for host in hosts
        for scheme in ("http", "https")
    }
    assert len(answers) == 1


def test_certificates_are_verified_for_the_name_of_the_host(scratch, settings, monkeypatch):
    settings.WEBHOOK_NETWORKS = LOOPBACK
    certificate, key = make_certificate(scratch)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        def get_request(self):
            plain, address = super().get_request()
            return server_context.wrap_socket(plain, server_side=True), address

        def handle_error(self, request, client_address):
            pass

    with serving(Server(("127.0.0.1", 0), Handler)) as (_, port):
        assert "certificate verify failed" in send(message(f"https://localhost:{port}/")).error
        trusting = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(addresses, "_context", lambda: trusting)
        assert send(message(f"https://localhost:{port}/")).status == 200


def test_network_errors_are_recorded_as_answers(settings, monkeypatch):
    settings.WEBHOOK_NETWORKS = LOOPBACK
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert "refused" in send(message(f"http://127.0.0.1:{port}/")).error
    assert "private network" in send(message("https://169.254.169.254/latest")).error

    # a receiver that sends its head a byte at a time keeps each wait short
    monkeypatch.setattr(sending, "TIMEOUT", 0.3)
    ends = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            client, _ = server.accept()
            with client:
                client.settimeout(5)
                try:
                    while not ends.wait(0.02):
                        client.sendall(b"H")
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        answer = send(message(f"http://127.0.0.1:{server.getsockname()[1]}/"))
        ends.set()
        thread.join()
    assert answer.error == "The receiver did not answer within 0.3 seconds."


# e-mail


@pytest.fixture
def address(cast):
    """Return `address("alice")`, which confirms an address as that user."""

    def confirm(name):
        code = readers.set_address(cast[name], f"{name}@example.com")
        assert readers.confirm_address(cast[name], f" {code} ")

    return confirm


def read(lines):
    return message_from_string("\n".join(lines), policy=policy.default)


def test_people_with_a_confirmed_address_get_one_mail_in_their_language(
    account, cast, address, mail_server, settings
):
    settings.CONSOLE_URL = "https://tables.example.com"
    for name in ("alice", "victor", "sam", "ada"):
        address(name)
    cast["alice"].language = "tr"
    cast["alice"].save()
    cast["victor"].time_zone = "Europe/Atlantis"  # another server of the database may know this zone
    cast["victor"].save()
    announce(account)
    announce(account, JobNotice.FAILED, subject="table.index")
    Notice.objects.filter(kind="job.failed").update(facts={"job": 7, "job_kind": "table.index", "number": 1})
    announce(account, event=NoticeEvent.RESOLVED)
    assert deliver()
    assert not deliver()
    mails = {recipients[0]: read(lines) for recipients, lines in mail_server.mails}
    assert mails.keys() == {"alice@example.com", "victor@example.com", "ada@example.com"}
    seen = mails["victor@example.com"]  # a viewer does not see the keys
    assert seen["Subject"] == "[Tablero] Job failed - acme"
    assert "The job 7 failed." in seen.get_content()
    assert "https://tables.example.com/ui/jobs/7/" in seen.get_content()
    assert "key1" not in seen.get_content()
    assert mails["ada@example.com"]["Subject"] == "[Tablero] 2 notices"
    assert mails["ada@example.com"]["From"] == "server@example.com"
    assert mails["alice@example.com"]["Subject"] != mails["ada@example.com"]["Subject"]
    assert "key1 has not been rotated" not in mails["alice@example.com"].get_content()


def test_no_mail_about_what_is_muted_resolved_or_of_others(account, cast, address, mail_server):
    for name in ("alice", "victor"):
        address(name)
    readers.mute(cast["alice"], account=account, kind="key.old")
    announce(account)
    assert not NoticeDelivery.objects.exists()
    announce(None, PeopleNotice.API_TOKEN_EXPIRING, user=cast["victor"], subject="1")
    assert NoticeDelivery.objects.get().user == cast["victor"]
    Notice.objects.update(resolved_at=NOW)
    assert deliver()
    assert mail_server.mails == []
    readers.set_address(cast["victor"], "other@example.com")
    announce(None, PeopleNotice.API_TOKEN_EXPIRING, user=cast["victor"], subject="2")
    assert NoticeDelivery.objects.filter(due_at__isnull=False).count() == 0


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n "])
def test_a_line_end_makes_no_header_of_a_mail(mail_server, settings, end):
    injected = f"x{end}Bcc: eve@example.com"
    assert delivery.send_mail("alice@example.com", injected, "text")
    assert delivery.send_mail(f"alice@example.com{end}eve@example.com", "subject", "text")
    assert mail_server.mails == []


def test_mail_is_tried_again(account, cast, address, mail_server, settings):
    settings.DEFAULT_FROM_EMAIL = "Tablero <server@example.com>"
    address("alice")
    announce(account)
    mail_server.refuses = True
    assert deliver()
    sent = NoticeDelivery.objects.get()
    assert "550" in sent.error
    mail_server.refuses = False
    assert deliver(sent.due_at)
    [(_, lines)] = mail_server.mails
    assert read(lines)["Message-ID"] == f"<{sent.message_id}@example.com>"


def test_an_address_needs_the_code_that_it_was_sent(cast):
    alice = cast["alice"]
    code = readers.set_address(alice, "alice@example.com")
    wrong = f"{(int(code) + 1) % 10**8:08}"
    for _ in range(5):
        assert not readers.confirm_address(alice, wrong)
    for _ in range(2):
        assert not readers.confirm_address(alice, code)  # too many attempts
    assert NoticeReader.objects.get().code_attempts == 5  # more would not fit into the column some time
    code = readers.set_address(alice, "alice@example.com")
    NoticeReader.objects.update(code_expires_at=NOW)
    assert not readers.confirm_address(alice, code)
    code = readers.set_address(alice, "alice@example.com")
    assert readers.confirm_address(alice, code)
    assert readers.confirmed_address(alice.pk) == "alice@example.com"
    alice.is_active = False
    alice.save()
    assert readers.confirmed_address(alice.pk) == ""


# notices that users see


def kinds(found):
    return sorted(found.values_list("kind", flat=True))


def test_users_see_their_notices_and_new_ones_are_counted(account, cast):
    announce(account)
    announce(account, JobNotice.FAILED, subject="table.index")
    announce(None, BackupNotice.MISSING, subject="")
    announce(None, PeopleNotice.API_TOKEN_EXPIRING, user=cast["victor"], subject="1")
    expected = {
        "alice": ["job.failed", "key.old"],
        "victor": ["api-token.expiring", "job.failed"],
        "sam": [],
        "ada": ["backup.missing", "job.failed", "key.old"],
    }
    for name, kinds_of in expected.items():
        assert kinds(readers.unseen(cast[name])) == kinds_of
    alice = cast["alice"]
    readers.mark_seen(alice, upto=NOW)
    assert kinds(readers.unseen(alice)) == []
    assert kinds(readers.current(alice)) == ["job.failed", "key.old"]
    readers.mark_seen(alice, upto=NOW - timedelta(days=1))
    readers.mark_seen(cast["sam"], upto=datetime.fromisoformat("0001-01-01T00:00:00+14:00"))
    assert NoticeReader.objects.get(user=cast["sam"]).seen_at.year == 1970
    Notice.objects.filter(kind="key.old").update(news_at=NOW + timedelta(minutes=1))
    assert kinds(readers.unseen(alice)) == ["key.old"]

    for fields in ({"kind": "key.old", "subject": "key2"}, {"kind": "sas.expiring"}):
        readers.mute(alice, account=account, **fields)
    assert kinds(readers.unseen(alice)) == ["key.old"]
    made = readers.mute(alice, kind="key.old")
    assert readers.mute(alice, kind="key.old") == made
    assert kinds(readers.unseen(alice)) == []
    assert kinds(readers.current(cast["ada"])) == ["backup.missing", "job.failed", "key.old"]
    readers.mute(alice, account=account)
    assert kinds(readers.current(alice)) == []
    assert not readers.unmute(cast["ada"], made.pk)
    assert [readers.unmute(alice, it.pk) for it in readers.mutes(alice)] == [True] * 4
    for fields in ({}, {"kind": "odd"}):
        with pytest.raises(readers.MuteError):
            readers.mute(alice, **fields)
