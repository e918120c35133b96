"""Snapshots and their schedule in the management API."""

from typing import Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability
from storage.rest import problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet
from storage.snapshots import serializers, snapshots
from storage.snapshots.schedule import Schedule


class SnapshotViewSet(AccountScopedViewSet):
    tag = "Snapshots"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "partial_update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
    }

    @operation(
        "list_snapshots",
        "List snapshots",
        "The latest first.",
        answer=page_of(serializers.SnapshotSerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        return self.answer_page(Page(snapshots.listed(self.account)))

    @operation(
        "take_snapshot",
        "Take a snapshot",
        "Takes a moment, however large the account is. Only in an account that keeps no history, all entities are"
        " copied at once.",
        body=serializers.NewSnapshotSerializer,
        answer=serializers.SnapshotSerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"name": "ci-baseline"},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.read_body()
        expires_at = timezone.now() + data["ttl"] if "ttl" in data else None
        taken = snapshots.take(
            self.account, data["name"], by=self.by, tables=data.get("tables"), expires_at=expires_at
        )
        return self.answer_created(taken, is_new=True)

    @operation("get_snapshot", "Get a snapshot", answer=serializers.SnapshotSerializer)
    def retrieve(self, request: Request, account: str, snapshot: str) -> Response:
        return self.answer(or_404(snapshots.find_listed(self.account, snapshot)))

    @operation(
        "update_snapshot",
        "Rename a snapshot, or change how long it is kept",
        body=serializers.SnapshotChangeSerializer,
        answer=serializers.SnapshotSerializer,
        problems=[problems.CONFLICT],
        example={"keep": True},
    )
    def partial_update(self, request: Request, account: str, snapshot: str) -> Response:
        stored, data = or_404(snapshots.find_listed(self.account, snapshot)), self.read_body()
        if "name" in data:
            snapshots.rename(stored, data["name"], by=self.by)
        if "ttl" in data:
            snapshots.keep_until(stored, timezone.now() + data["ttl"], by=self.by)
        elif data.get("keep"):
            snapshots.keep_until(stored, None, by=self.by)
        return self.answer(stored)

    @operation("delete_snapshot", "Delete a snapshot")
    def destroy(self, request: Request, account: str, snapshot: str) -> Response:
        snapshots.delete(or_404(snapshots.find_listed(self.account, snapshot)), by=self.by)
        return Response(status=204)


class SnapshotScheduleViewSet(AccountScopedViewSet):
    tag = "Snapshots"
    capabilities = {
        "retrieve": Capability.READ,
        "update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
    }

    @operation(
        "get_snapshot_schedule",
        "Get the schedule of snapshots",
        answer=serializers.ScheduleAnswerSerializer,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return self.answer({"schedule": snapshots.scheduled(self.account)})

    @operation(
        "set_snapshot_schedule",
        "Take snapshots by a schedule",
        "Each day at an hour, or each week; the oldest beyond `keep` are deleted.",
        body=serializers.NewScheduleSerializer,
        answer=serializers.ScheduleAnswerSerializer,
        example={"hour": 3, "keep": 7},
    )
    def update(self, request: Request, account: str) -> Response:
        snapshots.schedule(self.account, Schedule(**self.read_body()), by=self.by)
        return self.retrieve(request, account)

    @operation("delete_snapshot_schedule", "Take no more snapshots by a schedule")
    def destroy(self, request: Request, account: str) -> Response:
        snapshots.schedule(self.account, None, by=self.by)
        return Response(status=204)


SNAPSHOT: Final = f"{ACCOUNT}/snapshots/<str:snapshot>"
urlpatterns = [
    api_path(f"{ACCOUNT}/snapshots", SnapshotViewSet, "snapshots", get="index", post="create"),
    api_path(
        SNAPSHOT,
        SnapshotViewSet,
        "snapshot",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    api_path(
        f"{ACCOUNT}/snapshot-schedule",
        SnapshotScheduleViewSet,
        "snapshot-schedule",
        get="retrieve",
        put="update",
        delete="destroy",
    ),
]
