"""End the operations of processes that were killed: a background job does it, a few seconds later."""

from storage.domain.access.actor import load_actor
from storage.domain.service.activity import Verb
from storage.models import LongOperation
from storage.operations.accounts import removal
from storage.operations.activity import long_operations
from storage.operations.snapshots import account_building


def run() -> None:
    long_operations.end_abandoned(_end)


def _end(left: LongOperation) -> None:
    match left.verb:
        case Verb.BRANCH_CREATE | Verb.ACCOUNT_CREATE:
            account_building.remove(left.account)
        case Verb.ACCOUNT_DELETE:
            removal.remove(left.account.name, with_tables=True, by=load_actor(left.actor), only=left.account)
        case _:
            long_operations.record_interruption(left)
