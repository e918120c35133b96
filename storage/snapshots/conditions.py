"""Condition of the notice about the quota of snapshots."""

from collections.abc import Iterator
from typing import Any

from storage.accounts.quotas import find_used_up
from storage.core.notices import Found, Look
from storage.core.quotas import SNAPSHOTS
from storage.models import Snapshot
from storage.snapshots.schedule import SnapshotReason


def find_quota(look: Look) -> Iterator[Found]:
    taken: Any = Snapshot.objects.filter(reason=SnapshotReason.USER)
    return find_used_up(SNAPSHOTS, taken, look)
