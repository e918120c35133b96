"""Exports of tables."""

from rest_framework import serializers

from storage.api.serializers.fields import QueryParameters
from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.operations.entities.exports import FORMATS


class ExportParameters(QueryParameters):
    format = serializers.ChoiceField(
        choices=FORMATS,
        default="ndjson",
        help_text="`typed.csv` has the types beside the values, as Storage Explorer reads and writes them.",
    )
    filter = serializers.CharField(
        max_length=CONSOLE_LIMIT,
        required=False,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="Only what this filter finds, such as `PartitionKey eq 'se'`.",
    )
    escape_formulas = serializers.BooleanField(
        default=False,
        help_text="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    )
