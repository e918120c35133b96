"""Copies from and to other table services."""

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.remote.azurite import FILE_NAME
from storage.rest.fields import (
    IntegerParameterField,
    OptionalCharField,
    QueryParameters,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StringMapField,
)

_MOST_TABLES: Final = 10_000
_FASTEST: Final = 1_000_000
_DELETE: Final = "Delete entities of these tables that the source does not have."
_DRY_RUN: Final = "Only say what would be copied."
_POLICIES: Final = "Copy stored access policies, which takes the scope `manage`."
_SERVICE_PROPERTIES: Final = "Copy the service properties."
_VERIFY: Final = "Compare both sides at the end."


class RenamingField(serializers.CharField):
    """Pair of names with an equals sign in between."""

    def to_internal_value(self, data: Any) -> Any:
        name, _, other = super().to_internal_value(data).partition("=")
        if not (name and other):
            raise ValidationError("Write it as TABLE=NAME.")
        return name, other

    def run_validators(self, value: Any) -> None:
        """Validate the length of both names."""
        super().run_validators("=".join(value))


class RemoteCopySerializer(StrictSerializer):
    service = StrictCharField(
        max_length=8192,
        help_text="The other table service: a connection string, a URL with a SAS, or a URL for `bearer`. It is kept"
        " encrypted until the job ends.",
    )
    bearer = OptionalCharField(max_length=16_384, help_text="A bearer token for the other service.")
    feed_token = OptionalCharField(
        max_length=255,
        help_text="Of another server of Tablero: a token of its management API, with which later copies read its change"
        " feed.",
    )
    tables = serializers.ListField(
        child=StrictCharField(max_length=255),
        default=lambda: ["*"],
        min_length=1,
        max_length=_MOST_TABLES,
        help_text="Names or patterns of names, such as `log*`, in any letter case.",
    )
    rename = StringMapField(default=dict, help_text="The names that tables get at the target, by their own.")
    filter = OptionalCharField(max_length=CONSOLE_LIMIT, help_text="Only what this `$filter` finds.")
    rate = StrictIntegerField(
        min_value=0, max_value=_FASTEST, default=0, help_text="Entities per second, 0 without a limit."
    )
    delete = StrictBooleanField(default=False, help_text=_DELETE)
    full = StrictBooleanField(
        default=False, help_text="Compare everything, not only what has changed since the last copy."
    )
    dry_run = StrictBooleanField(default=False, help_text=_DRY_RUN)
    policies = StrictBooleanField(default=True, help_text=_POLICIES)
    service_properties = StrictBooleanField(default=True, help_text=_SERVICE_PROPERTIES)
    verify = StrictBooleanField(default=True, help_text=_VERIFY)


class FileCopyParameters(QueryParameters):
    name = serializers.CharField(
        max_length=255,
        default=FILE_NAME,
        help_text="Of the file, for the activity log.",
    )
    file_account = serializers.CharField(
        max_length=255, default="", help_text="The account in the file; it may be left out if there is one."
    )
    table = serializers.ListField(
        child=serializers.CharField(max_length=255),
        default=list,
        max_length=_MOST_TABLES,
        help_text="A name or a pattern, such as `log*`, in any letter case; can be repeated. By default all.",
    )
    rename = serializers.ListField(
        child=RenamingField(max_length=511),
        default=list,
        max_length=_MOST_TABLES,
        help_text="`people=persons`: the name of a table at the target; can be repeated.",
    )
    rate = IntegerParameterField(
        min_value=0, max_value=_FASTEST, default=0, help_text="Entities per second, 0 without a limit."
    )
    delete = serializers.BooleanField(default=False, help_text=_DELETE)
    dry_run = serializers.BooleanField(default=False, help_text=_DRY_RUN)
    policies = serializers.BooleanField(default=True, help_text=_POLICIES)
    service_properties = serializers.BooleanField(default=True, help_text=_SERVICE_PROPERTIES)
    verify = serializers.BooleanField(default=True, help_text=_VERIFY)
