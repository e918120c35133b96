"""Everything but entities: accounts and tables."""

from django.db import models
from django.db.models import Q


class Account(models.Model):
    """A storage account. Its keys are sealed with the server's secret, never kept in the clear."""

    name = models.CharField(max_length=24, unique=True)
    primary_key_sealed = models.BinaryField()
    secondary_key_sealed = models.BinaryField()
    enabled = models.BooleanField(default=True)
    shared_key_access = models.BooleanField(default=True)  # else only bearer tokens are accepted
    service_properties = models.JSONField(null=True, default=None)  # null: as a new account has them
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Table(models.Model):
    """A table; its entities are the rows of the relation ``entity_<id>``.

    A deleted one keeps its row, and its relation under another name, until the rows are gone from the disk.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tables")
    name = models.CharField(max_length=63)
    folded_name = models.CharField(max_length=63)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "folded_name"), condition=Q(deleted_at=None), name="one_table_of_a_name"
            ),
        )

    def __str__(self) -> str:
        return self.name


class StoredAccessPolicy(models.Model):
    """A stored access policy of a table; null where an element was absent, empty where it was empty."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="policies")
    place = models.PositiveSmallIntegerField()  # from 0, in the order they were set
    identifier = models.CharField(max_length=64)
    has_policy = models.BooleanField()  # false for an identifier alone
    start = models.CharField(max_length=28, null=True)  # noqa: DJ001  null and empty differ
    expiry = models.CharField(max_length=28, null=True)  # noqa: DJ001
    permission = models.CharField(max_length=8, null=True)  # noqa: DJ001

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("table", "place"), name="one_policy_at_a_place"),
            models.UniqueConstraint(fields=("table", "identifier"), name="one_policy_of_an_identifier"),
        )

    def __str__(self) -> str:
        return self.identifier
