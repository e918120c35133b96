"""Copies from and to other table services."""

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import accounts
from storage.copies import copy_jobs
from storage.copies.copy_jobs import Credentials
from storage.copies.copying import CopyOptions
from storage.copies.serializers import FileCopyParameters, RemoteCopySerializer
from storage.domain.access.roles import Capability
from storage.jobs import jobs
from storage.models import ApiToken
from storage.remote.azurite import FILE_NAME, NotAzurite
from storage.remote.endpoints import EndpointMalformed
from storage.rest import access, problems
from storage.rest.documentation import operation
from storage.rest.jobs import JobSerializer
from storage.rest.problems import Problem
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.uploading import UploadViewSet, discarding
from storage.rest.views import AccountScopedViewSet
from storage.transfer import file_work


class FileCopyViewSet(UploadViewSet):
    tag = "Import and export"
    capabilities = {"copy": Capability.CONFIGURE}

    @operation(
        "copy_from_file",
        "Copy tables from a file of Azurite",
        f"The body is `{FILE_NAME}` from Azurite's folder, which does not have to run. It is received only after the"
        " request is authorized. A job copies its tables as `copy-from` does; what is equal is not written.",
        query=FileCopyParameters,
        answer=JobSerializer,
        is_job=True,
        file_examples={"application/json": '{"collections":[{"name":"$TABLES_COLLECTION$","data":[]}]}'},
    )
    def copy(self, request: Request, account: str) -> Response:
        data = self.read_query()
        _check_policies(self.token, data)
        accounts.check_writable(self.account)
        file_work.require_room(self.account, by=self.by)
        file = self.receive(data["name"])
        if file is None:
            return self.ask_for_body()
        options = _read_options(data, tables=data["table"] or ("*",), rename=dict(data["rename"]))
        try:
            with discarding(file):
                job = copy_jobs.start_from_file(self.account, file, data["file_account"], options, by=self.by)
        except NotAzurite as refused:
            raise Problem(problems.INVALID, str(refused)) from None
        return self.answer_job(job)


class RemoteCopyViewSet(AccountScopedViewSet):
    tag = "Import and export"
    capabilities = {"copy_from": Capability.CONFIGURE, "copy_to": Capability.CONFIGURE}

    @operation(
        "copy_from_service",
        "Copy tables from another table service",
        "A job copies tables of Azure, Cosmos DB for Table, Azurite or another server into the account, with their"
        " stored access policies and the service properties, and compares both sides at the end: its `result` has what"
        " became of each table. A second copy goes on where the first one stopped, or copies what has changed since."
        " The copy is one activity that can be undone. Hosts in private networks are refused unless"
        " `TABLERO_COPY_NETWORKS` names them.",
        body=RemoteCopySerializer,
        answer=JobSerializer,
        is_job=True,
        example={"service": "https://planets.table.core.windows.net/?sv=…&sig=…", "tables": ["log*"]},
    )
    def copy_from(self, request: Request, account: str) -> Response:
        return self._copy(is_outgoing=False)

    @operation(
        "copy_to_service",
        "Copy tables to another table service",
        "The same in the other direction: entities of the account are inserted or replaced there.",
        body=RemoteCopySerializer,
        answer=JobSerializer,
        is_job=True,
        example={"service": "https://planets.table.core.windows.net/?sv=…&sig=…", "tables": ["people"]},
    )
    def copy_to(self, request: Request, account: str) -> Response:
        return self._copy(is_outgoing=True)

    def _copy(self, *, is_outgoing: bool) -> Response:
        data = self.read_body()
        _check_policies(self.token, data)
        options = _read_options(
            data, tables=data["tables"], rename=data["rename"], filter=data["filter"], is_full=data["full"]
        )
        credentials = Credentials(data["service"], data["bearer"], data["feed_token"])
        try:
            job_request = copy_jobs.request(self.account, credentials, options, is_outgoing=is_outgoing)
        except EndpointMalformed as malformed:
            raise problems.invalid(str(malformed), "/service") from None
        return self.answer_job(jobs.start_requested(job_request, by=self.by))


def _check_policies(token: ApiToken, data: Mapping[str, Any]) -> None:
    """Require the scope that policies take, as they can revive tokens."""
    if data["policies"]:
        access.check_scope(token, Capability.MANAGE_ACCESS)


def _read_options(data: Mapping[str, Any], **of_kind: Any) -> CopyOptions:
    """Convert the validated options of a copy; ``of_kind`` are the options of one kind only."""
    return CopyOptions(
        rate=data["rate"],
        deletes=data["delete"],
        dry_run=data["dry_run"],
        with_policies=data["policies"],
        with_service_properties=data["service_properties"],
        verifies=data["verify"],
        **of_kind,
    )


urlpatterns = [
    api_path(f"{ACCOUNT}/copy-from", RemoteCopyViewSet, "copy-from", post="copy_from"),
    api_path(f"{ACCOUNT}/copy-from-file", FileCopyViewSet, "copy-from-file", post="copy"),
    api_path(f"{ACCOUNT}/copy-to", RemoteCopyViewSet, "copy-to", post="copy_to"),
]
