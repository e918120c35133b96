"""Findings of rehearsals from requests written by hand: for each kind what shows it, and what does not."""

from dataclasses import replace
from uuid import UUID

import pytest

from storage.core.rehearsals import Exchange, ExchangedChange
from storage.domain.requests.strictness import StrictRule
from storage.rehearsal.evidence import Attempt, ClientLog, gather
from storage.rehearsal.findings import FindingKind, Severity
from storage.rehearsal.report import find_cases
from storage.rehearsal.write_findings import SharedEntities

PYTHON = "azsdk-python-data-tables/12.7.0 Python/3.13"
FAULT, NOTE = "fault", "note"
BUSY = {"status": 503, "error": "ServerBusy", "rules": ["busy"]}
LOST = {"status": 0, "delivery": "close", "rules": ["lost"]}
EXISTS = {"status": 409, "error": "EntityAlreadyExists", "applied": False}
CHANGED = {"status": 412, "error": "UpdateConditionNotSatisfied", "applied": False}
MISSING = {"status": 404, "error": "ResourceNotFound"}
OPERATIONS = {
    "insert": "InsertEntity",
    "replace": "UpdateEntity",
    "merge": "MergeEntity",
    "delete": "DeleteEntity",
    "insert_or_replace": "InsertOrReplaceEntity",
    "insert_or_merge": "InsertOrMergeEntity",
}


class Client:
    """Requests of a client, each 10 ms after the answer to the one before unless ``wait`` tells another time."""

    def __init__(self, start=1000.0):
        self.attempts = []
        self.time = start

    def send(self, operation, *, wait=0.01, takes=0.005, at=None, **facts):
        """Send a request; ``at`` is when it begins, whatever happens at the same time."""
        began = self.time + wait if at is None else at
        exchange = Exchange(began=began, ended=began + takes, operation=operation, status=200, method="GET")
        exchange = replace(exchange, **facts)
        self.time = max(self.time, exchange.ended)
        self.attempts.append(Attempt(exchange, str(UUID(int=len(self.attempts)))))
        return self

    def get(self, row="r", **facts):
        return self.send("QueryEntity", table="people", partition="p", row=row, **facts)

    def query(self, query="all", **facts):
        return self.send("QueryEntities", table="people", query=query, **{"entities": 5, **facts})

    def write(self, verb, row="r", *, condition="", content="c", numbers=None, **facts):
        change = ExchangedChange(verb, "people", "p", row, condition, content, numbers or {})
        known = {"status": 204, "applied": True, "table": "people", "partition": "p", "row": row}
        return self.send(OPERATIONS[verb], changes=[change], **{**known, **facts})

    def insert(self, row="r", **facts):
        return self.write("insert", row, **facts)

    def go_on(self, number=6):
        for place in range(number):
            self.get(f"other{place}")
        return self

    def log(self, *, after=1.0, agent=PYTHON, **options):
        """Return the log of a rehearsal that ended some seconds after the last answer."""
        attempts = sorted(self.attempts, key=lambda attempt: attempt.began)
        return ClientLog(agent, "authenticated:key1", attempts, **{"ended": self.time + after, **options})


def find(client, **options):
    """Return what is found: the kinds and severities."""
    findings = gather(find_cases(client.log(**options)), PYTHON)
    for finding in findings:
        assert finding.text and "%(" not in finding.text and finding.remedy and finding.requests
    return [(finding.kind.value, finding.severity.value) for finding in findings]


# continuation tokens


def page(client, entities, token="", next_token="", **facts):
    return client.query(entities=entities, token=token, next_token=next_token, **facts)


def test_ignored_token():
    assert find(page(Client(), 0, next_token="a").go_on()) == [("ignored-token", FAULT)]
    # at the end of the rehearsal, too, but not while it runs
    assert find(page(Client(), 0, next_token="a")) == [("ignored-token", FAULT)]
    assert find(page(Client(), 0, next_token="a"), ended=None, now=2000.0) == []
    # fewer than asked for
    assert find(page(Client(), 3, next_token="a", top=10).go_on()) == [("ignored-token", FAULT)]
    # how many were wanted is not known, until it is a habit
    client = page(Client(), 3, next_token="a").go_on()
    assert find(client) == [("ignored-token", NOTE)]
    page(page(client, 4, next_token="b"), 1, next_token="c").go_on()
    assert find(client) == [("ignored-token", FAULT)]
    # a loop that takes an empty page for the end
    client = page(page(Client(), 3, next_token="a"), 0, "a", next_token="b")
    page(page(client, 3, next_token="c"), 0, "c", next_token="d").go_on()
    assert find(client) == [("ignored-token", FAULT)]


def followed(client, query="all"):
    for place in range(3):
        page(client, place % 2, str(place) if place else "", str(place + 1), query=query)
    return page(client, 2, "3", query=query)


@pytest.mark.parametrize(
    "client",
    [
        followed(Client()),
        # enough entities
        page(Client(), 10, next_token="a", top=10).go_on(),
        # one that follows tokens, and is stopped by its user
        page(followed(Client()), 3, next_token="a", top=10).go_on(),
        page(followed(Client()), 0, next_token="a"),
        # one that looks for the first entity follows the tokens of empty pages
        page(
            page(page(page(Client(), 0, next_token="a"), 1, "a", "b"), 1, next_token="c"), 1, next_token="d"
        ),
        # half an answer, and one that came too slowly
        page(page(page(Client(), 3, next_token="a", delivery="cut"), 3, next_token="b"), 3, "b").go_on(),
        page(page(page(Client(), 3, next_token="a", delivery="slow"), 3, next_token="b"), 3, "b").go_on(),
        # hedged: two requests for the same page, one answer used
        page(page(page(Client(), 3, next_token="a", takes=0.1), 3, next_token="b", wait=-0.05), 3, "b"),
    ],
)
def test_followed_token(client):
    assert find(client) == []


def test_token_that_another_client_follows():
    client = page(Client(), 0, next_token="a").go_on()
    assert find(client, senders={"a": {0, 5}}) == []


# retries


@pytest.mark.parametrize(
    ("client", "found"),
    [
        # without a delay
        (
            Client().get(**BUSY).get(wait=0.05, **BUSY).get(wait=0.05),
            [("retried-at-once", FAULT)],
        ),
        # the first retry may come at once
        (Client().get(**BUSY).get(wait=0.001).go_on(), []),
        (Client().get(**BUSY).get(wait=0.001, **BUSY).get(wait=1.6, **BUSY).get(wait=3.2).go_on(), []),
        # HTTP libraries repeat requests whose connection was closed
        (Client().get(**LOST).get(wait=0.001, **LOST).get(wait=0.001, **LOST).get(wait=0.001).go_on(), []),
        # before the time that the service asked for
        (
            Client().get(**BUSY, retry_after=1.0).get(wait=0.5).go_on(),
            [("retried-before-retry-after", FAULT)],
        ),
        (Client().get(**BUSY, retry_after=1.0).get(wait=0.97).go_on(), []),
        # perhaps another operation that asks for the same
        (Client().get(**BUSY, retry_after=1.0).get("s").get(wait=0.01).go_on(), []),
        # another request
        (Client().get(**BUSY, retry_after=1.0).get("s").get(wait=1.1).go_on(), []),
        # a service that says at once
        (Client().get(**BUSY, retry_after=0.0).get(**BUSY, retry_after=0.0).get().go_on(), []),
    ],
)
def test_retries(client, found):
    assert find(client) == found


def test_workers_under_one_name():
    """Several workers send the same request once each, and each retries in time."""
    client = Client()
    for at in (0.0, 0.02, 0.04, 0.06):
        mark = f"id{at}"
        client.get(at=1000 + at, takes=0.03, client_id=mark, retry_after=1.0, **BUSY)
        client.get(at=1001.1 + at, takes=0.03, client_id=mark)
    assert find(client.go_on()) == []
    # with the same mark, it is the same request
    client = Client().get(at=1000.0, takes=0.2, client_id="x")
    client.get("s", at=1000.1, takes=0.01, client_id="y", retry_after=1.0, **BUSY)
    client.get("s", at=1000.15, takes=0.01, client_id="y")
    assert find(client.go_on()) == [("retried-before-retry-after", FAULT)]


@pytest.mark.parametrize(
    ("client", "options", "found"),
    [
        (Client().get(**BUSY).go_on(), {}, [("not-retried", FAULT)]),
        (Client().insert(**LOST).go_on(), {}, [("not-retried", FAULT)]),
        (Client().query(delivery="cut", next_token="").go_on(), {}, [("not-retried", FAULT)]),
        # it may have been stopped
        (Client().get(**BUSY), {}, [("not-retried", NOTE)]),
        (Client().get(**BUSY), {"ended": None, "now": 1002.0}, []),
        (Client().get(**BUSY), {"ended": None, "now": 1100.0}, [("not-retried", NOTE)]),
        # it may still wait
        (Client().get(**BUSY).get("s"), {}, [("not-retried", NOTE)]),
        (Client().get(**BUSY).get("s").get("t", **BUSY).get("u"), {}, [("not-retried", FAULT)]),
        (Client().get(**BUSY).go_on(), {"ended": None, "now": 1010.0}, []),
        (Client().get(**BUSY).go_on(), {"ended": None, "now": 1100.0}, [("not-retried", FAULT)]),
        # requests are missing
        (Client().get(**BUSY).go_on(), {"is_whole": False}, []),
        # sent again, perhaps much later, or at the same time
        (Client().get(**BUSY).go_on().get(), {}, []),
        (Client().get(takes=0.1).get(**BUSY, at=1000.05, takes=0.01).go_on(), {}, []),
        # the status says that it was done
        (Client().insert(status=201, delivery="cut").go_on(), {}, []),
        # handled in another way: read, changed, queried, or sent under a new key
        (Client().insert(**LOST).get(**MISSING).go_on(), {}, []),
        (Client().insert(**LOST).write("insert_or_replace", content="d").go_on(), {}, []),
        (Client().insert(**LOST).query().go_on(), {}, []),
        (Client().insert("x1", **LOST).insert("x2").go_on(), {}, []),
        # a query that begins again
        (page(page(Client(), 0, "a", **BUSY), 5).go_on(), {}, []),
        (Client().send("CreateTable", table="t", **BUSY).send("QueryTables").go_on(), {}, []),
        (Client().send("CreateTable", table="people", **LOST).insert().go_on(), {}, []),
        (Client().send("CreateTable", table="t", **LOST).insert().go_on(), {}, [("not-retried", FAULT)]),
        # refusals, and timeouts of the client itself
        (Client().get(**MISSING).go_on(), {}, []),
        (Client().get(status=0, rules=["slow"]).go_on(), {}, [("gave-up", NOTE)]),
    ],
)
def test_not_retried(client, options, found):
    assert find(client, **options) == found


def test_not_retried_by_one_of_several_workers():
    client = Client().get("a", takes=0.5).get(at=1000.1, takes=0.01, **BUSY).go_on()
    assert find(client) == [("not-retried", NOTE)]
    assert find(client, after=100.0) == [("not-retried", FAULT)]
    # none of them ever retries
    client = Client().get("a", takes=0.5)
    for place in range(6):
        client.get(f"busy{place}", at=1000.1 + place / 100, takes=0.01, **BUSY)
    assert find(client.go_on(), after=2.0) == [("not-retried", NOTE)]
    assert find(client, after=6.0) == [("not-retried", FAULT)]
    client.get("busy0")
    assert find(client, after=6.0) == [("not-retried", NOTE)]


def test_retries_exhausted():
    client = Client().get(**BUSY).get(wait=1.0, **BUSY).get(wait=2.0, **BUSY)
    assert find(client) == []  # it may wait
    assert find(client.go_on()) == [("retries-exhausted", NOTE)]


BAD = {"status": 400, "error": "InvalidInput"}


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (
            Client().query(client_id="x", **BAD).query(client_id="x", **BAD),
            [("retried-refused", FAULT)],
        ),
        # perhaps two tests of the same refusal
        (Client().query(client_id="x", **BAD).query(client_id="y", **BAD), []),
        (Client().query(**BAD).query(**BAD).query(**BAD), [("retried-refused", NOTE)]),
        # changed, or successful because of a header that was not recorded
        (Client().query(**BAD).query("other", **BAD).query("third", **BAD), []),
        (Client().query(client_id="x", **BAD).query(client_id="x"), []),
        # a body that cannot be read may be another one
        (
            Client().send("InsertEntity", **BAD).send("InsertEntity", **BAD).send("InsertEntity", **BAD),
            [],
        ),
    ],
)
def test_retried_refused(client, found):
    assert find(client) == found


# ambiguous writes


def change_set(client, rows, **facts):
    """Insert several entities in a change set; an error is within its answer."""
    changes = [ExchangedChange("insert", "people", "p", row, content="c") for row in rows]
    known = {"status": 202, "applied": True, "table": "people", "partition": "p", "changes": changes}
    return client.send("EntityGroupTransaction", **{**known, **facts})


@pytest.mark.parametrize(
    ("client", "options", "found"),
    [
        (Client().insert(**LOST).insert(**EXISTS).go_on(), {}, [("insert-repeated", FAULT)]),
        (
            Client().insert(status=500, error="OperationTimedOut").insert(**EXISTS).go_on(),
            {},
            [("insert-repeated", FAULT)],
        ),
        (
            change_set(change_set(Client(), "ab", **LOST), "ab", **{**EXISTS, "status": 202}).go_on(),
            {},
            [("insert-repeated", FAULT)],
        ),
        (
            change_set(change_set(Client(), "ab", **LOST), "ab", **{**EXISTS, "status": 202})
            .get("b")
            .go_on(),
            {},
            [],
        ),
        # failures between the attempts
        (
            Client().insert(**LOST).insert(**BUSY, applied=False).insert(**EXISTS).go_on(),
            {},
            [("insert-repeated", FAULT)],
        ),
        # a client that waits no longer, and sends the insert again before the first one ends
        (
            Client().insert(at=1000.0, takes=5.0, status=0).insert(at=1001.0, takes=5.0, **EXISTS).go_on(),
            {},
            [("insert-repeated", FAULT), ("gave-up", NOTE)],
        ),
        # the end of the rehearsal, long or shortly after the conflict
        (Client().insert(**LOST).insert(**EXISTS), {}, [("insert-repeated", FAULT)]),
        (Client().insert(**LOST).insert(**EXISTS), {"after": 0.1}, [("insert-repeated", NOTE)]),
        # a program for which a conflict is an answer
        (
            Client().insert("s", **EXISTS).insert(**LOST).insert(**EXISTS).go_on(),
            {},
            [("insert-repeated", NOTE)],
        ),
        # it was not committed, or answered
        (Client().insert(**{**LOST, "applied": False}).insert(**EXISTS).go_on(), {}, []),
        (Client().insert().insert(**EXISTS).go_on(), {}, []),
        # another content
        (Client().insert(**LOST).insert(content="d", **EXISTS).go_on(), {}, []),
        # looked after
        (Client().insert(**LOST).insert(**EXISTS).get().go_on(), {}, []),
        (Client().insert(**LOST).insert(**EXISTS).query().go_on(), {}, []),
        (Client().insert(**LOST).insert(**EXISTS).write("merge", condition="*").go_on(), {}, []),
        # an upsert, and a read instead of the repetition
        (
            Client().write("insert_or_replace", **LOST).write("insert_or_replace").go_on(),
            {},
            [],
        ),
        (Client().insert(**LOST).get().go_on(), {}, []),
    ],
)
def test_insert_repeated(client, options, found):
    assert find(client, **options) == found


def inserts(*rows_and_contents, **facts):
    client = Client()
    for row, content in rows_and_contents:
        client.insert(row, content=content, **(facts if row.startswith("lost") else {}))
    return client


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (
            inserts(("a", "1"), ("b", "2"), ("lost", "3"), ("c", "3"), ("d", "4"), **LOST).go_on(),
            [("inserted-twice", FAULT)],
        ),
        # entities that are alike
        (inserts(("a", "1"), ("b", "1"), ("lost", "1"), ("c", "1"), ("d", "2"), **LOST).go_on(), []),
        # the first one is deleted, or was not committed
        (
            inserts(("a", "1"), ("b", "2"), ("lost", "3"), ("c", "3"), **LOST)
            .write("delete", "lost")
            .go_on(),
            [],
        ),
        (
            inserts(
                ("a", "1"), ("b", "2"), ("lost", "3"), ("c", "3"), ("d", "4"), **{**LOST, "applied": False}
            ).go_on(),
            [],
        ),
        # answered
        (inserts(("a", "1"), ("b", "2"), ("c", "3"), ("d", "3"), ("e", "4")).go_on(), []),
    ],
)
def test_inserted_twice(client, found):
    assert find(client) == found


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (
            Client()
            .write("replace", condition="1", **LOST)
            .write("replace", condition="1", **CHANGED)
            .go_on(),
            [("update-repeated-412", FAULT)],
        ),
        # read again
        (
            Client().write("replace", condition="1", **LOST).write("replace", condition="1", **CHANGED).get(),
            [],
        ),
        # a conflict with another client
        (
            Client()
            .write("replace", condition="1", **{**LOST, "applied": False})
            .write("replace", condition="1", **CHANGED)
            .go_on(),
            [],
        ),
        # without a condition
        (
            Client().write("replace", condition="*", **LOST).write("replace", condition="*").go_on(),
            [],
        ),
    ],
)
def test_update_repeated(client, found):
    assert find(client) == found


def delete(*facts):
    client = Client()
    for given in facts:
        client.write("delete", condition="*", **given)
    return client


GONE = {**MISSING, "applied": False}


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (delete(LOST, GONE), [("delete-repeated-404", NOTE)]),
        (delete(LOST, {**LOST, "applied": False}, GONE).go_on(), [("delete-repeated-404", NOTE)]),
        # another client deleted it, or it was never there
        (delete({**LOST, "applied": False}, GONE).go_on(), []),
        (delete(GONE).go_on(), []),
        # looked after, and written again
        (delete(LOST, GONE).get(**MISSING), []),
        (delete(LOST, GONE).insert().go_on(), []),
    ],
)
def test_delete_repeated(client, found):
    assert find(client, agent="agent") == found
    assert find(client) == []  # the SDK for Python takes 404 for success


def count(client, *values, read=True, **facts):
    """Read a counter and write it, for each of some values."""
    for value in values:
        if read:
            client.get()
        client.write("merge", condition="*", content=str(value), numbers={"n": value}, **facts)
    return client


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (count(count(count(Client(), 1, 2, 3), 4, **LOST), 5, 6), [("added-twice", NOTE)]),
        # repeated as it was
        (count(count(count(Client(), 1, 2, 3), 4, **LOST), 4, 5), []),
        # checked, and read again for the next one
        (count(count(count(Client(), 1, 2, 3), 4, **LOST).get(), 5, 6), []),
        # without a read between
        (count(count(count(Client(), 1, 2, 3), 4, **LOST), 5, 6, read=False), []),
        # not committed
        (count(count(count(Client(), 1, 2, 3), 4, **{**LOST, "applied": False}), 4, 5), []),
        # a time, or numbers without a step
        (count(count(count(Client(), 1.8e9, 1.8e9 + 1), 1.8e9 + 2, **LOST), 1.8e9 + 3), []),
        (count(count(count(Client(), 1, 5, 7), 9, **LOST), 30, 4), []),
    ],
)
def test_added_twice(client, found):
    assert find(client) == found


def lost_updates(first, second):
    shared = SharedEntities()
    for number, client in enumerate((first, second)):
        shared.add(number, client.log())
    agents = {0: "first", 1: "second"}
    cases = [case for number in agents for case in shared.find_lost_updates(number, agents)]
    return [(case.kind, case.severity, case.facts["other"]) for case in cases]


def overwritten(*, verb="insert_or_replace", condition="", between=lambda client: client):
    """Read an entity at 1000, and replace it at 1002."""
    return between(Client().get(at=1000.0)).write(verb, condition=condition, at=1002.0, content="mine")


def test_lost_update():
    other = Client().write("merge", at=1001.0, content="theirs")
    assert lost_updates(overwritten(), other) == [(FindingKind.LOST_UPDATE, Severity.FAULT, "second")]
    unconditional = overwritten(verb="replace", condition="*")
    assert lost_updates(unconditional, other) == [(FindingKind.LOST_UPDATE, Severity.FAULT, "second")]


@pytest.mark.parametrize(
    ("first", "at"),
    [
        (overwritten(verb="replace", condition="1"), 1001.0),
        (overwritten(verb="insert_or_merge"), 1001.0),
        # read after the change, perhaps by a query
        (overwritten(between=lambda client: client.get(at=1001.5)), 1001.0),
        (overwritten(between=lambda client: client.query(at=1001.5)), 1001.0),
        # the change was before the read, after the replacement, or at the same time as one of them
        (overwritten(), 999.0),
        (overwritten(), 1003.0),
        (overwritten(), 1000.001),
        (overwritten(), 1001.998),
        # without a read, and after a change of its own
        (Client().write("insert_or_replace", at=1002.0), 1001.0),
        (overwritten(between=lambda client: client.write("merge", at=1000.5)), 1001.0),
    ],
)
def test_no_lost_update(first, at):
    assert lost_updates(first, Client().write("merge", at=at, content="theirs")) == []


def test_no_lost_update_of_the_same_content():
    assert lost_updates(overwritten(), Client().write("insert_or_replace", at=1001.0, content="mine")) == []


# the secondary, credentials, rates and single requests


def etag(second):
    return f"W/\"datetime'2026-11-30T03%3A41%3A0{second}.9672047Z'\""


STALE = {"secondary": True, "lag": 120.0}


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (Client().insert().get(**STALE, **MISSING).go_on(), [("stale-read", FAULT)]),
        (
            Client().insert(etag=etag(2)).get(wait=60, etag=etag(1), **STALE).go_on(),
            [("stale-read", FAULT)],
        ),
        (Client().write("delete", condition="*").get(**STALE).go_on(), [("stale-read", FAULT)]),
        # a table without a history shows its own write, the write of another client, or an unknown one
        (Client().insert(etag=etag(2)).get(etag=etag(2), **STALE).go_on(), []),
        (Client().insert(etag=etag(2)).get(etag=etag(3), **STALE).go_on(), []),
        (Client().insert().get(etag=etag(1), **STALE).go_on(), []),
        (Client().write("delete", condition="*").get(**STALE, **MISSING).go_on(), []),
        (Client().insert().get(wait=130, **STALE, **MISSING).go_on(), []),
        # an entity of others
        (Client().insert("s").get(**STALE, **MISSING).go_on(), []),
        # it was not written
        (Client().insert(**EXISTS).get(**STALE, **MISSING).go_on(), []),
        # the primary has it
        (Client().insert().get(**STALE, **MISSING).get().go_on(), []),
        (Client().send("GetTableServiceStats").insert().get(**STALE, **MISSING).go_on(), []),
    ],
)
def test_stale_read(client, found):
    assert find(client) == found


def expired(client, number, **facts):
    detail = (
        "Signature not valid in the specified time frame: Start [] - Expiry [Mon, 30 Nov 2026 03:00:00 GMT] - "
        "Current [Mon, 30 Nov 2026 03:00:01 GMT]"
    )
    for _ in range(number):
        client.send("", status=403, error="AuthenticationFailed", **{"detail": detail, **facts})
    return client


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (expired(Client(), 4), [("expired-sas", FAULT)]),
        (expired(Client(), 2), []),
        # several workers notice it at the same time
        (expired(Client().get(takes=1.0), 8, wait=-0.004), []),
        # not yet valid, or another reason
        (expired(Client(), 4, detail="Signature did not match."), []),
        (
            expired(
                Client(),
                4,
                detail="Start [Mon, 30 Nov 2026 04:00:00 GMT] - Expiry [Mon, 30 Nov 2026 05:00:00 GMT] - "
                "Current [Mon, 30 Nov 2026 03:00:00 GMT]",
            ),
            [],
        ),
    ],
)
def test_expired_sas(client, found):
    assert find(client) == found


def test_hot_partition():
    client = Client()
    for place in range(200):
        client.get(f"{place}", wait=0.001, takes=0.001)
    assert find(client) == []
    assert find(client, scale=0.01) == [("hot-partition", NOTE)]
    # at the rate of the target, nothing is throttled
    slow = Client()
    for place in range(100):
        slow.get(f"{place}", wait=0.06)
    assert find(slow, scale=0.01) == []


def test_azure_refuses():
    client = Client().insert(warnings=[StrictRule.MISSING_CONTENT_TYPE]).insert("s", warnings=["unknown"])
    assert find(client) == [("azure-refuses", FAULT)]
    # documented, not observed
    assert find(Client().query(warnings=[StrictRule.TOO_MANY_COMPARISONS])) == [("azure-refuses", NOTE)]


def test_cases_of_a_kind_are_one_finding():
    client = Client()
    for place in range(30):
        client.insert(f"{place}", **LOST).insert(f"{place}", **EXISTS)
    (finding,) = gather(find_cases(client.go_on().log()), PYTHON)
    assert finding.count == 30
    assert finding.requests == tuple(str(UUID(int=place)) for place in range(10))
    assert "(p, 0) in people" in finding.text
    assert "upsert_entity()" in finding.remedy
