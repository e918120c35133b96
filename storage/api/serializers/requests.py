"""The request log."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from storage.api.paging import PageParameters
from storage.api.serializers.fields import InstantField, QueryParameters
from storage.domain.access.grants import Operation
from storage.domain.errors import PartKind
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.kept_addresses import AddressRule
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.models import RecordedRequest
from storage.operations.requests import explanations
from storage.operations.requests.requests import RequestClass


class PeriodParameters(QueryParameters):
    since = serializers.DateTimeField(default=None, help_text="At or after this time.")
    until = serializers.DateTimeField(default=None, help_text="Before this time.")


class RequestParameters(PageParameters, PeriodParameters):
    kind = serializers.ChoiceField(
        choices=[it.value for it in RequestClass],
        default="",
        help_text="Only refused, failed or slow ones (see `TABLERO_REQUEST_LOG_SLOW`); `problem`: any of these.",
    )
    status = serializers.IntegerField(
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
    min_seconds = serializers.FloatField(
        default=0.0, min_value=0.0, help_text="Only those that took so long."
    )
    id = serializers.CharField(
        default="", max_length=128, help_text="An `x-ms-request-id` or `x-ms-client-request-id`."
    )
    after = serializers.IntegerField(
        default=None, min_value=0, help_text="Of a stream: the `id` of an event, after which it begins."
    )


class EarlierChangeSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="Of the change in the history; 0 if it is not there.")
    op = serializers.CharField(
        help_text="`insert`, `update` or `delete` of the entity, or `table`: the table was deleted."
    )
    at = InstantField()
    by = serializers.CharField(help_text="The type of caller, such as `key`, `sas` or `user`.")
    name = serializers.CharField(help_text="`key1`, the fingerprint of a SAS, a subject or a user.")
    label = serializers.CharField(help_text="Of a SAS token.")
    address = serializers.CharField()
    further = serializers.IntegerField(help_text="Other changes that the client had not seen either.")


class AddressFaultSerializer(serializers.Serializer[Any]):
    rule = serializers.ChoiceField(
        choices=[it.value for it in AddressRule], help_text="That the address breaks."
    )
    segments = serializers.IntegerField(help_text="Of the path below the account.")
    length = serializers.IntegerField(help_text="Of the path below the account, in characters as sent.")


class RequestFaultSerializer(serializers.Serializer[Any]):
    address = AddressFaultSerializer(required=False, help_text="Why the address names no resource.")
    part = serializers.ChoiceField(choices=[it.value for it in PartKind], required=False)
    name = serializers.CharField(required=False, help_text="Of an option, a header or a property.")
    position = serializers.IntegerField(
        required=False, help_text="Of the first character at fault in the option or body that was sent."
    )
    span = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        help_text="Start and end of it in the `options` here.",
    )
    place = serializers.IntegerField(required=False, help_text="Position in a change set, from zero.")
    limit = serializers.CharField(required=False, help_text="The limit of the server that was reached.")
    change = EarlierChangeSerializer(
        required=False, help_text="The last change before of the entity or table that was not as expected."
    )


class RequestRecordSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = InstantField()
    request_id = serializers.UUIDField(help_text="`x-ms-request-id` of the answer.")
    client_request_id = serializers.CharField(help_text="`x-ms-client-request-id`, if the client sent one.")
    outcome = serializers.ChoiceField(choices=[it.value for it in Outcome])
    status = serializers.IntegerField(help_text="0 if the client closed the connection before.")
    code = serializers.CharField(
        source="error", help_text="The error code; of a change set, that of its part."
    )
    operation = serializers.CharField()
    method = serializers.CharField()
    table = serializers.CharField(source="table_name")
    path = serializers.CharField(
        help_text="Of the resource, without keys; `…` for what is no part of an address."
    )
    options = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Names and values of the query string, without values of entities, unknown options and a SAS.",
    )
    seconds = serializers.FloatField()
    ingress = serializers.IntegerField(help_text="Bytes of the body that was sent.")
    egress = serializers.IntegerField(help_text="Bytes of the body of the answer.")
    authentication = serializers.ChoiceField(choices=[it.value for it in Authentication])
    credential = serializers.CharField(
        help_text="`key1`, the fingerprint of a SAS or the subject of a bearer token; empty if it is not known."
    )
    credential_name = serializers.SerializerMethodField(help_text="What people call the credential.")
    address = serializers.CharField()
    agent = serializers.CharField()
    version = serializers.CharField()
    access_path = serializers.CharField(help_text="Of a query.")
    index_candidates = serializers.ListField(
        source="candidates",
        child=serializers.CharField(),
        allow_null=True,
        help_text="Properties whose index would spare a query rows.",
    )
    fault = RequestFaultSerializer(allow_null=True)
    findings = serializers.SerializerMethodField(
        help_text="What the inspector found wrong with a refused access."
    )
    explanation = serializers.SerializerMethodField(help_text="Why, in sentences.")
    alike = serializers.IntegerField(
        help_text="Further requests like this one in the same two seconds, which are only counted."
    )

    def get_credential_name(self, request: RecordedRequest) -> str:
        return explanations.credential_name(request)

    @extend_schema_field(serializers.ListField(child=serializers.DictField(child=serializers.CharField())))
    def get_findings(self, request: RecordedRequest) -> Any:
        return [] if request.report is None else request.report["findings"]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_explanation(self, request: RecordedRequest) -> list[str]:
        return explanations.explain(request)


class CodeCountSerializer(serializers.Serializer[Any]):
    status = serializers.IntegerField()
    code = serializers.CharField()
    requests = serializers.IntegerField()


class CredentialCountSerializer(CodeCountSerializer):
    status = None
    authentication = serializers.CharField()
    credential = serializers.CharField()
    label = serializers.CharField(help_text="Of a SAS token.")


class RequestStatisticsSerializer(serializers.Serializer[Any]):
    requests = serializers.IntegerField(help_text="All, also those that are not in the log.")
    kept = serializers.IntegerField(help_text="Those in the log.")
    codes = CodeCountSerializer(many=True)
    credentials = CredentialCountSerializer(many=True, help_text="Of refused and failed requests.")
