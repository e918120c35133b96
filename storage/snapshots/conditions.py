"""Find what notices tell about the quota of snapshots."""

from collections.abc import Iterator
from typing import Any

from storage.core.notices import Found, Look
from storage.domain.service.quotas import SNAPSHOTS
from storage.domain.service.snapshots import SnapshotReason
from storage.models import Snapshot
from storage.operations.accounts.quotas import find_used_up


def find_quota(look: Look) -> Iterator[Found]:
    taken: Any = Snapshot.objects.filter(reason=SnapshotReason.USER)
    return find_used_up(SNAPSHOTS, taken, look)
