"""Copies and exports of whole accounts as the management API shows and reads them."""

from typing import Annotated, Any

from rest_framework import serializers

from storage.account_files.account_building import BuiltAccount
from storage.accounts.serializers import AccountKindField, AccountNameField, CreatedAccountSerializer
from storage.domain.access.roles import Role
from storage.domain.entities.fits import Misfit
from storage.domain.values.names import TABLE_NAME_LIMIT
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    QueryParameters,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
)
from storage.transfer.exports import FORMATS


class CopyCheckParameters(QueryParameters):
    kind = AccountKindField(required=False, help_text="Of the copy; by default that of the account.")


class CopySerializer(StrictSerializer):
    name = AccountNameField(help_text="Of the new account.")
    kind = AccountKindField(required=False, help_text="Of the new account; by default that of the account.")
    skip = StrictBooleanField(default=False, help_text="Leave out what does not fit.")


class CopyFindingSerializer(TypedSerializer):
    # represents a Finding

    reason: str = serializers.ChoiceField(choices=[it.code for it in Misfit], source="misfit.code")
    table: str
    entities: Annotated[int, {"source": "number"}, "How many; 0 if it is about the table itself."]
    example: Annotated[list[str] | None, "PartitionKey and RowKey of one of the entities."]


class CopyCheckSerializer(TypedSerializer):
    items: list[CopyFindingSerializer]


class CopiedSerializer(TypedSerializer):
    # represents a BuiltAccount

    account: CreatedAccountSerializer
    tables: int
    entities: int

    def to_representation(self, instance: BuiltAccount) -> Any:
        found = {name: getattr(instance, name) for name in self.fields}
        return super().to_representation({**found, "account": (instance.account, Role.OWNER)})


WHOLE_ACCOUNT = "account"


class AccountExportSerializer(StrictSerializer):
    format = StrictChoiceField(
        choices=(WHOLE_ACCOUNT, *FORMATS),
        default=WHOLE_ACCOUNT,
        help_text="`account`: tables, policies and settings as one file for `account import`. The others: a ZIP file"
        " with a file for each table, which readers may export too.",
    )
    tables = serializers.ListField(
        child=StrictCharField(max_length=TABLE_NAME_LIMIT),
        default=list,
        max_length=10_000,
        help_text="Only these tables in a ZIP file.",
    )
    escape_formulas = StrictBooleanField(
        default=False,
        help_text="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    )
