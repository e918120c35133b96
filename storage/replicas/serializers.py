"""Replicas as the management API shows and reads them."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from storage.replicas.replicas import ReplicaStatus
from storage.rest.answers import TypedSerializer


class ReplicaSerializer(TypedSerializer):
    of = ReplicaStatus
    synchronized_at: Annotated[datetime | None, "The replica has everything that was acknowledged before."]

    def to_representation(self, instance: ReplicaStatus) -> Any:
        at = instance.synchronized_at
        moment = None if at is None else datetime.fromtimestamp(at, UTC)
        return super().to_representation({**asdict(instance), "synchronized_at": moment})
