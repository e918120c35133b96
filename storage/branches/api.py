"""Branches, and restores of snapshots in the management API."""

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.account_files import account_building
from storage.account_files.account_building import BuiltAccount
from storage.accounts import accounts
from storage.accounts.refusals import AccountExists
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.branches import branches, serializers, snapshot_restores
from storage.branches.branches import BranchRequest
from storage.branches.snapshot_restores import RestoreRequest
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.jobs import jobs
from storage.rest import access, idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page
from storage.rest.problems import Problem
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet
from storage.snapshots import snapshots
from storage.undo.outcome_jobs import outcome_of


class RestoreViewSet(AccountScopedViewSet):
    tag = "Snapshots"
    capabilities = {"restore": Capability.MANAGE_TABLES}

    @operation(
        "restore_snapshot",
        "Restore a snapshot",
        "Writes only what differs, as ordinary changes that can be undone, and takes a snapshot of the present first."
        " With `dry_run` it only returns what would change. Policies and service properties need the role maintainer"
        " and the scope manage.",
        body=serializers.RestoreSerializer,
        answer=serializers.RestoredSerializer,
        problems=[problems.CONFLICT],
        is_job=True,
        example={"tables": ["customers"], "dry_run": True},
    )
    def restore(self, request: Request, account: str, snapshot: str) -> Response:
        stored_snapshot, data = or_404(snapshots.find_listed(self.account, snapshot)), self.read_body()
        if data["policies"] or data["service_properties"]:
            access.check_scope(self.token, Capability.MANAGE_ACCESS)
        keys = data.get("entities")
        restore_request = RestoreRequest(
            tables=data.get("tables"),
            keys=None if keys is None else [EntityKey(**key) for key in keys],
            with_policies=data["policies"],
            with_settings=data["service_properties"],
            deletes_new=data["delete_new_tables"],
        )
        if data["dry_run"]:
            return self.answer(snapshot_restores.preview(stored_snapshot, restore_request))
        restore = snapshot_restores.request(stored_snapshot, restore_request)
        return self.answer_by_job(restore, lambda job: self.answer(outcome_of(job)))


class BranchViewSet(AccountScopedViewSet):
    tag = "Branches"
    capabilities = {"index": Capability.READ, "create": Capability.GRANT, "reset": Capability.MANAGE_ACCESS}

    @operation(
        "list_branches",
        "List the branches of an account",
        "The latest first.",
        answer=page_of(serializers.BranchSerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        return self.answer_page(Page(branches.listed(self.account)))

    @operation(
        "create_branch",
        "Make a branch of an account",
        "A branch is an account with the tables of another, as they are now, in a snapshot or at a time. Repeating the"
        " same request answers 200 with the branch that there is, 409 while it is being made, and begins again if the"
        " server ended before the branch was complete. With masking rules, the branch stays frozen if"
        " an original value is found in it. Members keep their roles in the branch. Owners of the account"
        " can make branches, up to a quota, and so can admins. The token must not be limited to one account.",
        body=serializers.NewBranchSerializer,
        answer=serializers.CreatedBranchSerializer,
        is_creation=True,
        is_job=True,
        problems=[problems.CONFLICT],
        example={"name": "shoppr482", "snapshot": "ci-baseline", "ttl": "8h"},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.read_body()
        access.check_all_accounts(self.token)
        is_limited = not self.token.user.is_admin
        digest = idempotency.request_digest(request)
        branch_request = self._wanted(data, digest)
        if self.is_async and not accounts.exists(branch_request.name):
            job_request = branches.request(self.account, branch_request, is_limited=is_limited)
            return self.answer_job(jobs.start_requested(job_request, by=self.by))
        try:
            made = branches.create(self.account, branch_request, by=self.by, is_limited=is_limited)
            is_new = True
        except AccountExists:
            made, is_new = self._find(data["name"], digest), False
        activity.record(AccountVerb.KEY_REVEAL, self.by, account=made.account, detail={"key": "key1"})
        return self.answer_created(made, is_new=is_new)

    def _wanted(self, data: dict[str, Any], digest: str) -> BranchRequest:
        named = data.get("snapshot")
        return BranchRequest(
            data["name"],
            snapshot=None if named is None else snapshots.get(self.account, named),
            at=data.get("at"),
            filters=data.get("tables"),
            rules=data.get("masking", {}),
            with_policies=data["policies"],
            with_settings=data["service_properties"],
            expires_at=timezone.now() + data["ttl"] if "ttl" in data else None,
            labels=data.get("labels", {}),
            request_digest=digest,
        )

    def _find(self, name: str, digest: str) -> BuiltAccount:
        """Return the branch created by the same request; raises a conflict if another request created it."""
        account = accounts.find(name)
        branch = None if account is None else branches.find(account)
        if branch is None or branch.account.request_digest != digest:
            raise Problem(problems.CONFLICT, f"An account named {name} already exists.")
        if not branches.is_complete(branch):
            detail = (
                f"The branch {name} was left incomplete by an older version. Delete the account {name} first."
            )
            raise Problem(problems.CONFLICT, detail)
        access.find_account(self.token, name, Capability.GRANT)  # the answer has its keys
        return account_building.describe(branch.account, branch)

    @operation(
        "reset_account",
        "Reset a branch to where it began",
        "Tables, entities, policies and service properties become what they were; tables that are new are deleted."
        " Any other account can be reset to one of its snapshots.",
        body=serializers.ResetSerializer,
        answer=serializers.RestoredSerializer,
        problems=[problems.CONFLICT],
        is_job=True,
        example={"snapshot": "ci-baseline"},
    )
    def reset(self, request: Request, account: str) -> Response:
        named = self.read_body().get("snapshot")
        branch = branches.find(self.account)
        if named is not None:
            snapshot = snapshots.get(self.account, named)
            job_request = snapshot_restores.request_reset_to(snapshot)
        elif branch is not None:
            job_request = snapshot_restores.request_reset(branch)
        else:
            detail = "The account is not a branch; name the snapshot to reset it to."
            raise Problem(problems.CONFLICT, detail)
        return self.answer_by_job(job_request, lambda job: self.answer(outcome_of(job)))


urlpatterns = [
    api_path(
        f"{ACCOUNT}/snapshots/<str:snapshot>/restore", RestoreViewSet, "snapshot-restore", post="restore"
    ),
    api_path(f"{ACCOUNT}/branches", BranchViewSet, "branches", get="index", post="create"),
    api_path(f"{ACCOUNT}/reset", BranchViewSet, "reset", post="reset"),
]
