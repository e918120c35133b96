"""Copies and exports of whole accounts in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.account_files import account_building, account_copies, account_export_jobs, serializers
from storage.account_files.account_building import BuiltAccount
from storage.account_files.serializers import WHOLE_ACCOUNT, AccountExportSerializer
from storage.accounts import accounts
from storage.accounts.api import find_made_by_same_request
from storage.accounts.refusals import AccountExists
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.domain.access.roles import Capability
from storage.domain.values.kinds import AccountKind
from storage.jobs import jobs
from storage.rest import access, idempotency, problems
from storage.rest.documentation import operation
from storage.rest.jobs import JobSerializer
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet
from storage.tables import tables
from storage.transfer import export_jobs
from storage.transfer.api import check_library


class AccountCopyViewSet(AccountScopedViewSet):
    tag = "Accounts"
    capabilities = {"check_copy": Capability.READ, "copy": Capability.GRANT}

    @operation(
        "check_copy",
        "Check what a copy of an account would leave out",
        "Reads all entities, which takes about a second per 30,000 of them.",
        query=serializers.CopyCheckParameters,
        answer=serializers.CopyCheckSerializer,
    )
    def check_copy(self, request: Request, account: str) -> Response:
        kind = self.read_query().get("kind") or AccountKind(self.account.kind)
        return self.answer({"items": account_copies.check(self.account, kind)})

    @operation(
        "copy_account",
        "Copy an account",
        "Copies the tables to a new account, of the other kind if you like, and answers when all are there. If"
        " something does not fit, nothing is copied unless `skip` is true; `GET` the same path to see what. Repeating"
        " the same request answers 200 with the account as it is now, 409 while it is being made, and begins again if"
        " the server ended before the copy was complete.",
        body=serializers.CopySerializer,
        answer=serializers.CopiedSerializer,
        is_creation=True,
        is_job=True,
        problems=[problems.CONFLICT],
        example={"name": "planets", "kind": "cosmos"},
    )
    def copy(self, request: Request, account: str) -> Response:
        data = self.read_body()
        access.check_server(self.token)
        kind = data.get("kind") or AccountKind(self.account.kind)
        if self.is_async and not accounts.exists(data["name"]):
            digest = idempotency.request_digest(request)
            job_request = account_copies.request(
                self.account, data["name"], kind, skip=data["skip"], request_digest=digest
            )
            return self.answer_job(jobs.start_requested(job_request, by=self.by))
        copied, is_new = self._copy(data["name"], kind, skip=data["skip"])
        activity.record(AccountVerb.KEY_REVEAL, self.by, account=copied.account, detail={"key": "key1"})
        return self.answer_created(copied, is_new=is_new)

    def _copy(self, name: str, kind: AccountKind, *, skip: bool) -> tuple[BuiltAccount, bool]:
        digest = idempotency.request_digest(self.request)
        try:
            copied = account_copies.copy(
                self.account, name, kind, skip=skip, by=self.by, request_digest=digest
            )
        except AccountExists as taken:
            return account_building.describe(find_made_by_same_request(name, digest, taken)), False
        return copied, True


class AccountExportViewSet(AccountScopedViewSet):
    tag = "Accounts"
    capabilities = {"export": Capability.READ}

    @operation(
        "export_account",
        "Export an account",
        "A job writes all tables, policies and settings into a file, as of one moment, which it has for a day; `account"
        " import` makes an account of it. Account keys are not in the file, which needs the role maintainer and the"
        " scope operate. In another `format`, it is a ZIP file with a file for each table.",
        body=AccountExportSerializer,
        answer=JobSerializer,
        is_job=True,
        example={"format": "typed.csv", "tables": ["people", "orders"]},
    )
    def export(self, request: Request, account: str) -> Response:
        data = self.read_body()
        format_, names = data["format"], dict.fromkeys(data["tables"])
        if format_ == WHOLE_ACCOUNT:
            access.check_scope(self.token, Capability.CONFIGURE)
            access.find_account(self.token, account, Capability.CONFIGURE)
            if names:
                raise problems.invalid("Choose tables for another format.", "/tables")
            return self.answer_job(
                jobs.start_requested(account_export_jobs.request(self.account), by=self.by)
            )
        check_library(format_)
        chosen = [tables.get(self.account, name) for name in names] or list(tables.listed(self.account))
        job = export_jobs.start_zip(
            self.account, chosen, format_, by=self.by, escapes_formulas=data["escape_formulas"]
        )
        return self.answer_job(job)


urlpatterns = [
    api_path(f"{ACCOUNT}/copy", AccountCopyViewSet, "copy", get="check_copy", post="copy"),
    api_path(f"{ACCOUNT}/export", AccountExportViewSet, "account-export", post="export"),
]
