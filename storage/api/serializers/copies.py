"""Copies from and to other table services."""

from typing import Final

from rest_framework import serializers

from storage.api.serializers.fields import (
    OptionalCharField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StringMapField,
)
from storage.domain.filters.parser import CONSOLE_LIMIT

_MOST_TABLES: Final = 10_000
_FASTEST: Final = 1_000_000


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
    delete = StrictBooleanField(
        default=False, help_text="Delete entities of these tables that the source does not have."
    )
    full = StrictBooleanField(
        default=False, help_text="Compare everything, not only what has changed since the last copy."
    )
    dry_run = StrictBooleanField(default=False, help_text="Only say what would be copied.")
    policies = StrictBooleanField(default=True, help_text="Copy stored access policies.")
    service_properties = StrictBooleanField(default=True, help_text="Copy the service properties.")
    verify = StrictBooleanField(default=True, help_text="Compare both sides at the end.")
