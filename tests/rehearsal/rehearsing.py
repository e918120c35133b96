"""A service in this process whose accounts may rehearse, and rehearsals in them."""

import re
from contextlib import asynccontextmanager

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Rehearsal
from storage.rehearsal import rehearsals
from storage.rehearsal.rules import read_rules
from storage.runtime.threads import in_thread
from tests.protocol.test_table_service import ACCOUNT, JSON, KEY, running, sender

MARK = "x-tablero-rehearsed"


@asynccontextmanager
async def rehearsing(kind=AccountKind.STORAGE, **settings):
    """Yield a service and a function that sends requests to an account which may rehearse."""
    await in_thread(accounts.add, ACCOUNT, NewAccount(KEY, None, kind))
    await in_thread(Account.objects.filter(name=ACCOUNT).update, **{"may_rehearse": True, **settings})
    async with running() as service:
        yield service, sender(service)


async def start(*rules, **options):
    """Start a rehearsal of rules, given as the members of their JSON; return it."""
    account = await in_thread(Account.objects.get, name=ACCOUNT)
    read_rules(list(rules))
    return await in_thread(rehearsals.start, account, "own", rules=list(rules), **{"seed": 7, **options})


async def stop(rehearsal):
    await in_thread(rehearsals.stop, rehearsal)


async def exchanges(rehearsal=None):
    """Return the recorded exchanges of a rehearsal, or of the only one, in order."""
    chosen = rehearsal or await in_thread(Rehearsal.objects.get)
    return await in_thread(lambda: [it.exchange for it in chosen.requests.order_by("pk")])


def asking(effect, headers=JSON):
    """Return headers that ask for an effect."""
    return {**headers, "x-tablero-rehearse": effect}


def comparable(reply):
    """Return an answer without its mark, its id, its times and positions of the log, which others write too."""
    names = {name: value for name, value in reply.headers.items() if name not in (MARK, "x-ms-request-id")}
    body = reply.body.replace(reply.headers["x-ms-request-id"].encode(), b"ID")
    if token := names.get("x-ms-session-token"):
        names["x-ms-session-token"] = re.sub(r"#[0-9]+", "#", token)
    names.pop("Content-Length", None)  # a time may have more or fewer digits
    names = {name: re.sub(r"(batch|changeset)response_[0-9a-f-]+", r"\1", it) for name, it in names.items()}
    body = re.sub(rb"(batch|changeset)response_[0-9a-f-]+", rb"\1", body)
    return reply.status, names, re.sub(rb"Time:[-0-9T:.]+Z", b"Time", body)
