"""The overview of an account: requests and errors of the last day, what needs attention, what is large."""

from datetime import timedelta

from storage.access import policies
from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic, write_counts
from storage.metrics.last_day import hour_of
from storage.metrics.series import WHOLE
from storage.models import Branch, RequestSeries
from storage.tables import tables
from tests.console.markup import text

PAGE = "/ui/a/acme/overview/"


def count(account, moment, requests, status=200, error=""):
    counts = PeriodCounts()
    counts.traffic(SeriesKind("QueryEntities", status, error)).add(Traffic(requests))
    RequestSeries.objects.create(
        account=account, table_id=WHOLE, minutes=1, process=f"{status}",
        period=moment.replace(second=0, microsecond=0), counts=write_counts(counts),
    )  # fmt: skip


def test_says_what_was_asked_and_what_went_wrong(now, visit, account):
    count(account, now, 6)
    count(account, hour_of(now) - timedelta(hours=5), 4, 404, "ResourceNotFound")
    count(account, hour_of(now) - timedelta(hours=5), 1, 409, "EntityAlreadyExists")
    count(account, hour_of(now) - timedelta(hours=5), 1, 501, "NotImplemented")
    count(account, hour_of(now) - timedelta(hours=23), 1, 500, "OperationTimedOut")
    count(account, hour_of(now) - timedelta(hours=23, minutes=1), 100)

    answer = visit("victor").get(PAGE)

    day = answer.context["day"]
    assert (day.requests, day.refused, day.failed) == (13, 6, 1)
    assert [(hour.requests, hour.refused, hour.failed) for hour in day.hours if hour.requests] == [
        (1, 0, 1), (6, 6, 0), (6, 0, 0),
    ]  # fmt: skip
    assert answer.context["errors"][0] == ("ResourceNotFound", 4)
    assert "1 request failed because of the server" in answer.content.decode()
    assert answer.context["bars"][-6].wrong == answer.context["bars"][-6].height == 64


def test_refusals_and_expired_policies_need_attention(now, visit, account):
    count(account, now, 6, 403, "AuthenticationFailed")
    people = tables.create(account, "people")
    over = AccessPolicy(expiry=f"{now - timedelta(days=2):%Y-%m-%dT%H:%M:%S}.0000000Z", permission="r")
    open_ended = AccessPolicy(expiry="", permission="r")
    policies.replace(people, [SignedIdentifier("old", over), SignedIdentifier("open", open_ended)])
    branch = accounts.add("acmepr", NewAccount(expires_at=now + timedelta(hours=19)))
    Branch.objects.create(account=branch, source=account, source_name="acme", at=now, actor_kind="user")

    page = text(visit("victor").get(PAGE))

    attention = page.partition('aria-labelledby="attention"')[2].partition("</section>")[0]
    assert "6 requests were refused in the last 24 hours." in attention
    assert "/ui/a/acme/requests/?kind=refused" in attention
    assert "Stored access policy has expired" in attention and "<bdi>old</bdi>" in attention
    assert "<bdi>open</bdi>" not in attention
    assert "/ui/a/acmepr/" in attention and "Branch expires" in attention and ">in 19 hours<" in attention
    assert "/ui/a/acme/requests/?code=AuthenticationFailed" in page


def test_functions_that_tables_lack_are_not_failures_of_the_server(now, visit, account):
    count(account, now, 2, 501, "NotImplemented")
    count(account, now, 3, 400, "InvalidInput")

    answer = visit("victor").get(PAGE)

    assert [(it.text, it.address) for it in answer.context["warnings"]] == [
        (
            "2 requests used functions or options that tables don't support.",
            "/ui/a/acme/requests/?status=501",
        ),
        ("3 requests were refused in the last 24 hours.", "/ui/a/acme/requests/?kind=refused"),
    ]


def test_a_quiet_account_needs_nothing(visit, account):
    answer = visit("victor").get(PAGE)
    assert answer.context["day"].requests == 0
    assert "All clear: no failed requests" in answer.content.decode()


def test_says_what_an_account_lacks(visit, account):
    account_settings.change(accounts.by_name("acme"), enabled=False)
    victor = visit("victor")
    assert "every request is refused" in victor.get(PAGE).content.decode()
    account_settings.change(accounts.by_name("acme"), enabled=True, read_only=True)
    assert "The account is read-only." in victor.get(PAGE).content.decode()


def test_leads_to_what_can_be_done(now, visit, account):
    end = now + timedelta(days=1)
    account_settings.change(account, expires_at=end, description="Copy of last night")
    page = visit("alice").get(PAGE).content.decode()
    assert "The account expires with everything in it: in 1\xa0day" in page
    assert "Copy of last night" in page
    assert page.count("/ui/a/acme/settings/") == 2  # the sidebar's, and that of the warning
    assert page.count("/ui/a/acme/keys/") == 2
    assert visit("victor").get(PAGE).content.decode().count("/ui/a/acme/settings/") == 0


def test_lists_the_largest_tables(visit, account, add_entity):
    for number in range(6):
        tables.create(account, f"table{number}", is_checked=True)
    answer = visit("victor").get(PAGE)
    assert len(answer.context["largest"]) == 5
    assert "<b>7</b> tables" in answer.content.decode()
