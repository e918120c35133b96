"""The request log."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from rest_framework import serializers

from storage.domain.access.grants import Operation
from storage.domain.errors import PartKind
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.kept_addresses import AddressFault
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.models import RecordedRequest
from storage.requests import explanations
from storage.requests.requests import RequestClass
from storage.rest.answers import OPTIONAL, TypedSerializer
from storage.rest.fields import IntegerParameterField, NumberParameterField, PeriodField, QueryParameters
from storage.rest.paging import PageParameters


class PeriodParameters(QueryParameters):
    since = PeriodField(default=None, help_text="At or after this time.")
    until = PeriodField(default=None, help_text="Before this time.")


class RequestParameters(PageParameters, PeriodParameters):
    kind = serializers.ChoiceField(
        choices=[it.value for it in RequestClass],
        default="",
        help_text="Only refused, failed or slow ones (see `TABLERO_REQUEST_LOG_SLOW`), or those that were served and"
        " Azure would refuse (`warned`); `problem`: any of these, without rehearsed failures; `rehearsed`: those"
        " on which a rehearsal had an effect.",
    )
    status = IntegerParameterField(
        default=None, min_value=0, max_value=599, help_text="Only answers with this status."
    )
    code = serializers.CharField(
        default="", max_length=64, help_text="Only this error code, such as `AuthenticationFailed`."
    )
    operation = serializers.ChoiceField(choices=[it.value for it in Operation], default="")
    table = serializers.CharField(default="", max_length=255, help_text="Only for this table, in any case.")
    authentication = serializers.ChoiceField(choices=[it.value for it in Authentication], default="")
    credential = serializers.CharField(
        default="",
        max_length=256,
        help_text="`key1`, the fingerprint of a SAS, or the subject of a bearer token.",
    )
    access_path = serializers.ChoiceField(choices=[it.value for it in AccessPath], default="")
    client = serializers.CharField(
        default="", max_length=128, help_text="The beginning of an address or of a user agent."
    )
    min_seconds = NumberParameterField(default=0.0, min_value=0.0, help_text="Only those that took so long.")
    id = serializers.CharField(
        default="", max_length=128, help_text="An `x-ms-request-id` or `x-ms-client-request-id`."
    )
    after = IntegerParameterField(
        default=None, min_value=0, help_text="Of a stream: the `id` of an event, after which it begins."
    )


class EarlierChangeSerializer(TypedSerializer):
    number: Annotated[int, "Of the change in the history; 0 if it is not there."]
    op: Annotated[str, "`insert`, `update` or `delete` of the entity, or `table`: the table was deleted."]
    at: datetime
    by: Annotated[str, "The type of caller, such as `key`, `sas` or `user`."]
    name: Annotated[str, "`key1`, the fingerprint of a SAS, a subject or a user."]
    label: Annotated[str, "Of a SAS token."]
    address: str
    further: Annotated[int, "Other changes that the client had not seen either."]


class RehearsedSerializer(TypedSerializer):
    rules: Annotated[list[str], "Names of the rules that had an effect."]
    failure: Annotated[bool, "Whether the rehearsal made the request fail."]
    applied: Annotated[bool | None, "Whether a write was committed; null for reads."]
    delay: Annotated[float, "Seconds that it waited, which are not part of `seconds`."]


class RequestFaultSerializer(TypedSerializer):
    address: Annotated[AddressFault, OPTIONAL, "Why the address names no resource."]
    part: Annotated[PartKind, OPTIONAL]
    name: Annotated[str, OPTIONAL, "Of an option, a header or a property."]
    position: Annotated[int, OPTIONAL, "Of the first character at fault in the option or body that was sent."]
    span: Annotated[list[int], OPTIONAL, "Start and end of it in the `options` here."]
    place: Annotated[int, OPTIONAL, "Position in a change set, from zero."]
    limit: Annotated[str, OPTIONAL, "The limit of the server that was reached."]
    filter: Annotated[
        dict[str, str],
        OPTIONAL,
        "What is wrong with the filter: the `reason`, what its sentence names, and a `filter` that works, if known.",
    ]
    similar: Annotated[str, OPTIONAL, "The table with the most similar name, if the table does not exist."]
    rule: Annotated[
        str, OPTIONAL, "The rule of Azure that the request broke, in an account that is as strict as Azure."
    ]
    warnings: Annotated[
        list[str], OPTIONAL, "Rules of Azure that the request broke and that the account did not insist on."
    ]
    rehearsed: Annotated[RehearsedSerializer, OPTIONAL, "Effect of a rehearsal."]
    change: Annotated[
        EarlierChangeSerializer,
        OPTIONAL,
        "The last change before of the entity or table that was not as expected.",
    ]


class RequestRecordSerializer(TypedSerializer):
    id: int
    at: datetime
    request_id: Annotated[UUID, "`x-ms-request-id` of the answer."]
    client_request_id: Annotated[str, "`x-ms-client-request-id`, if the client sent one."]
    outcome: Outcome
    status: Annotated[
        int, "0 if the client closed the connection before, or if a rehearsal withheld the answer."
    ]
    code: Annotated[str, {"source": "error"}, "The error code; of a change set, that of its part."]
    operation: str
    method: str
    table: Annotated[str, {"source": "table_name"}]
    path: Annotated[str, "Of the resource, without keys; `…` for what is no part of an address."]
    options: Annotated[
        list[list[str]],
        "Names and values of the query string, without values of entities, unknown options and a SAS.",
    ]
    seconds: float
    ingress: Annotated[int, "Bytes of the body that was sent."]
    egress: Annotated[int, "Bytes of the body of the answer."]
    authentication: Authentication
    credential: Annotated[
        str, "`key1`, the fingerprint of a SAS or the subject of a bearer token; empty if it is not known."
    ]
    credential_name: Annotated[str, "What people call the credential."]
    address: str
    agent: str
    version: str
    access_path: Annotated[str, "Of a query."]
    index_candidates: Annotated[
        list[str] | None, {"source": "candidates"}, "Properties whose index would spare a query rows."
    ]
    fault: RequestFaultSerializer | None
    findings: Annotated[list[dict[str, str]], "What the inspector found wrong with a refused access."]
    explanation: Annotated[list[str], "Why, in sentences."]
    alike: Annotated[int, "Further requests like this one in the same two seconds, which are only counted."]

    def get_credential_name(self, request: RecordedRequest) -> str:
        return explanations.credential_name(request)

    def get_findings(self, request: RecordedRequest) -> Any:
        return [] if request.report is None else request.report["findings"]

    def get_explanation(self, request: RecordedRequest) -> list[str]:
        return explanations.explain(request)
