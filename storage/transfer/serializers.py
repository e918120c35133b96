"""Imports and exports as the management API shows and reads them."""

import json
from typing import Annotated, Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.domain.values.edm import Edm
from storage.entities.writing import WriteMode
from storage.rest.answers import ActivityId, TypedSerializer
from storage.rest.fields import (
    OptionalCharField,
    QueryParameters,
    StrictBooleanField,
    StrictChoiceField,
    StrictSerializer,
)
from storage.rest.jobs import JobSerializer
from storage.tabular.encodings import ENCODINGS
from storage.tabular.format_proposals import Certainty
from storage.tabular.layout import FileFormat, FileRefused, find_encoding
from storage.tabular.mapping import ColumnMapping, MappingRefused
from storage.tabular.rejects import Fault, Repair
from storage.tabular.report import ColumnUse, ValueChange
from storage.transfer.exports import FORMATS

_TEMPLATE_LIMIT = 4096


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


class ExportSerializer(StrictSerializer):
    format = StrictChoiceField(choices=FORMATS, default="ndjson")
    filter = OptionalCharField(max_length=CONSOLE_LIMIT, help_text="Only what this filter finds.")
    escape_formulas = StrictBooleanField(
        default=False,
        help_text="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    )


class MappingField(serializers.CharField):
    """Mapping as JSON text, as written by `manage.py import --save-mapping`."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        super().run_validators(text)
        try:
            return ColumnMapping.load(json.loads(text))
        except RecursionError:
            raise ValidationError("It is nested too deeply.") from None
        except (ValueError, MappingRefused) as error:
            raise ValidationError(str(error)) from None

    def run_validators(self, value: Any) -> None:
        """Do nothing, as the text was validated before its conversion."""


_ENCODINGS = ", ".join(f"`{name}`" for name in ENCODINGS)


class EncodingField(serializers.CharField):
    """An encoding by one of its names."""

    def run_validators(self, value: str) -> None:
        super().run_validators(value)
        if value:
            try:
                find_encoding(value)
            except FileRefused as refused:
                raise ValidationError(str(refused)) from None


class ImportParameters(QueryParameters):
    mode = serializers.ChoiceField(
        choices=[it.value for it in WriteMode],
        default=WriteMode.INSERT.value,
        help_text="What becomes of entities that exist: `insert` rejects the row, `skip` keeps the entity, `merge`"
        " changes the properties in the file, `replace` removes the others.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only say what would be done.")
    create = serializers.BooleanField(default=False, help_text="Create the table if it does not exist.")
    name = serializers.CharField(
        max_length=255,
        default="",
        help_text="Of the file, for the activity log, such as `people.csv`; its extension is a hint to the"
        " format.",
    )
    partition_key = serializers.CharField(
        max_length=_TEMPLATE_LIMIT,
        default="",
        trim_whitespace=False,
        help_text="How the key is made, such as `{country}`; by default the column PartitionKey.",
    )
    row_key = serializers.CharField(
        max_length=_TEMPLATE_LIMIT,
        default="",
        trim_whitespace=False,
        help_text="Such as `{tenant}-{id}`; `{#row}` is the number of the row, `{#guid}` a new GUID.",
    )
    zone = serializers.CharField(
        max_length=64,
        default="",
        help_text="The time zone of times in CSV that name none, such as `Europe/Istanbul`. Columns of them become"
        " DateTime; without it they are Strings.",
    )
    mapping = MappingField(
        required=False,
        max_length=48 * 1024,
        help_text="What becomes of the columns, as JSON: the `mapping` of an earlier answer, or a part of one, such as"
        ' `{"partition_key": "{country}", "row_key": "{id}", "columns": [{"source": "age", "target": "Age",'
        ' "type": "Int32", "on_misfit": "unset"}, {"source": "since", "format": "day-first"}]}`. Without one, it is'
        " proposed as in a dry run.",
    )
    format = serializers.ChoiceField(
        choices=[it.value for it in FileFormat],
        default="",
        help_text="By default this, the encoding and the delimiter are found out from the first 256 KiB.",
    )
    encoding = EncodingField(
        max_length=32,
        default="",
        help_text="Such as `windows-1254`, in any usual spelling: " + _ENCODINGS + ".",
    )
    delimiter = serializers.CharField(
        max_length=1, default="", trim_whitespace=False, help_text="One character, such as `;`."
    )
    sheet = serializers.CharField(
        max_length=255, default="", trim_whitespace=False, help_text="Of Excel; by default the first one."
    )
    header = serializers.BooleanField(
        default=True, help_text="Whether the first line of CSV has the names of the columns."
    )


class RejectGroupSerializer(TypedSerializer):
    # represents a RejectGroup

    reason: str = serializers.ChoiceField(choices=[it.code for it in Fault], source="fault.code")
    detail: Annotated[str, {"source": "sentence"}]
    column: Annotated[str, "Empty if it is not that of one."]
    type: Annotated[
        str | None, {"source": "type.short_name", "default": None}, "That the column has, if it matters."
    ]
    rows: int
    lines: Annotated[list[int], "The first of them."]
    values: Annotated[list[str], "The most frequent ones."]
    repairs: Annotated[
        list[Repair],
        "What would bring the rows in: `string` and `unset` are the `on_misfit` of the column, `decimal-comma` and"
        " the like its `format`, `replace` is `key_replacement` of the mapping, the others are modes.",
    ]

    def get_values(self, group: Any) -> list[str]:
        return [text for text, _ in group.texts.most_common(5)]


class ColumnReportSerializer(TypedSerializer):
    # represents a ColumnReport

    column: Annotated[str, "As the file names it."]
    use: str = serializers.ChoiceField(choices=[it.code for it in ColumnUse], source="use.code")
    target: Annotated[str, "The key or property it becomes, or the column whose types it gives."]
    detail: Annotated[str, {"source": "sentence"}]


class ValueReportSerializer(TypedSerializer):
    # represents a ValueReport

    column: str
    change: str = serializers.ChoiceField(choices=[it.code for it in ValueChange], source="change.code")
    values: Annotated[int, {"source": "number"}, "How many there are."]
    examples: Annotated[list[str], "The first different ones."]
    detail: Annotated[str, {"source": "sentence"}]


class FileReportSerializer(TypedSerializer):
    # represents a FileReport

    blank_rows: Annotated[int, "Rows without any value, which were skipped."]
    columns: Annotated[
        list[ColumnReportSerializer],
        "Columns that are a key by another name, a property of another name, or left out.",
    ]
    values: Annotated[
        list[ValueReportSerializer], "Values that were changed or left out because the mapping says so."
    ]


class FormatProposalSerializer(TypedSerializer):
    # represents a FormatProposal

    type: str = serializers.ChoiceField(choices=[it.short_name for it in Edm], source="type.short_name")
    format: Annotated[str, "For the `format` of the column in a mapping; empty: the usual one."]
    certainty: Annotated[
        Certainty,
        "`certain`: all values fit, and nothing else; `possible`: something else too; `partial`: most values"
        " fit; `alternative`: they are more probably what they were guessed to be.",
    ]
    values: Annotated[int, "How many were looked at."]
    fitting: Annotated[int, "How many of them fit."]
    samples: list[list[str]] = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2),
        source="shown_samples",
        help_text="Texts of the file, each with what it is read as.",
    )
    misfits: Annotated[list[str], "Some that do not fit."]
    detail: Annotated[str, {"source": "sentence"}]


class ProposedColumnSerializer(TypedSerializer):
    # represents a ProposedColumn

    source: Annotated[str, {"source": "column.source"}, "As the file names it."]
    target: Annotated[str, {"source": "column.target"}, "The property."]
    type: str | None = serializers.ChoiceField(
        choices=[it.short_name for it in Edm],
        source="column.type.short_name",
        allow_null=True,
        help_text="Null: each value says its own.",
    )
    why: str
    reason: str | None
    values: Annotated[int, "How many of the first rows have one."]
    examples: list[str]
    formats: Annotated[
        list[FormatProposalSerializer],
        "What else the values can be read as; none of it is applied without a mapping.",
    ]


class RepeatedKeySerializer(TypedSerializer):
    line: int
    first: Annotated[int, "The line of the first row with the same keys."]


class ImportResultSerializer(TypedSerializer):
    dry_run: bool
    rows: int
    inserted: int
    changed: int
    skipped: Annotated[int, "Rows that were left out because their entity exists."]
    rejected: int
    rejects: Annotated[list[RejectGroupSerializer], "Rejected rows by reason, the most frequent first."]
    repeated: Annotated[int, "Of a dry run: rows with the keys of an earlier row of the file."]
    repeated_keys: Annotated[list[RepeatedKeySerializer], "The first of them."]
    report: Annotated[
        FileReportSerializer,
        "What else of the file is not in the table as it stands there, and why: all other columns are"
        " properties of their names.",
    ]
    layout: Annotated[
        dict[str, Any],
        "How the file was read: its format, encoding, delimiter, columns … `encoding_is_guess`: the file does"
        " not say its encoding, and `encoding_alternatives` have samples of its texts in this and other encodings;"
        " `encoding_is_sure`: the others are much less probable. Send `encoding` to choose one.",
    ]
    mapping: Annotated[dict[str, Any], "What became of its columns; send it with the next file."]
    columns: Annotated[
        list[ProposedColumnSerializer],
        "What is proposed for the columns by the first rows, such as `format`s of numbers and dates as people"
        " write them. Empty for a repeated request.",
    ]
    activity: ActivityId
    request: Annotated[
        str | None,
        {"source": "activity.request_id"},
        "Request ID of all changes of the import; send it to `undo`.",
    ]
    job: Annotated[JobSerializer, "Its `files` have the rejected rows with their reasons, as they were."]
