"""ORM models: accounts, tables, access, usage and activity; the rows of entities are in storage.sql."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, Self

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models import Q
from django.utils.module_loading import import_string

from storage.activity.subject import ActivityVerb
from storage.core import lifetimes, registry
from storage.core.relation_forms import RelationForm
from storage.core.verbs import Verb
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.roles import Role, name_role
from storage.domain.history.recorded import RecordedChange


class Account(models.Model):
    """Storage account; its keys are encrypted with the server's secret."""

    name = models.CharField(max_length=24, unique=True)
    # storage.domain.values.kinds; never changes
    kind = models.CharField(max_length=7, default="storage", db_default="storage")
    primary_key_sealed = models.BinaryField()
    secondary_key_sealed = models.BinaryField()
    enabled = models.BooleanField(default=True)
    shared_key_access = models.BooleanField(default=True)  # if false, only bearer tokens are accepted
    networks = models.JSONField(default=list)  # texts; networks that may send requests, empty: all
    service_properties = models.JSONField(null=True, default=None)  # null: the defaults
    label = models.CharField(max_length=64, blank=True, default="")
    description = models.TextField(max_length=2000, blank=True, default="")
    colour = models.CharField(max_length=7, blank=True, default="")  # "#rrggbb"
    labels = models.JSONField(default=dict)  # texts by name, for scripts
    expires_at = models.DateTimeField(null=True, default=None)  # when it is frozen; a day later it is deleted
    frozen_at = models.DateTimeField(null=True, default=None)  # when it expired; null if disabled by a user
    # the hash of the API request that created it
    request_digest = models.CharField(max_length=64, blank=True, default="")
    protected = models.BooleanField(default=False)  # it cannot be deleted
    read_only = models.BooleanField(default=False)  # writes through any interface are refused
    # the server adds and drops property indexes
    adaptive_indexes = models.BooleanField(default=True, db_default=True)
    # failures may be rehearsed in it: storage.rehearsal
    may_rehearse = models.BooleanField(default=False, db_default=False)
    # storage.domain.requests.strictness: whether it refuses what only Azure refuses
    strictness = models.CharField(max_length=16, default="friendly", db_default="friendly")
    # new tables are spread over the nodes of a Citus cluster
    distributes = models.BooleanField(default=False, db_default=False)
    # how long changes of entities are kept; 0: history is off
    history_days = models.PositiveSmallIntegerField(default=7, db_default=7)
    # bytes that these changes may take on disk; null: a share of it, as storage.history.retention says
    history_bytes = models.BigIntegerField(null=True, default=None)
    # storage.domain.requests.consistency: of reads that do not ask for less
    consistency = models.CharField(max_length=16, default="Strong", db_default="Strong")
    max_staleness = models.PositiveIntegerField(default=5, db_default=5)  # seconds, at BoundedStaleness
    # quotas of its own, below those of the server: storage.core.quotas
    snapshot_limit = models.PositiveIntegerField(null=True, default=None)
    saved_query_limit = models.PositiveIntegerField(null=True, default=None)
    sas_limit = models.PositiveIntegerField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    @property
    def stage(self) -> lifetimes.AccountStage:
        return lifetimes.account_stage(enabled=self.enabled, frozen_at=self.frozen_at)

    @property
    def purged_at(self) -> datetime | None:
        """Return when an expired account will be deleted; None if it is not expired, or is protected."""
        if self.frozen_at is None or self.protected or self.read_only:
            return None
        return lifetimes.purge_time(self.frozen_at)


class Membership(models.Model):
    """Role of a user in an account."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    role = models.PositiveSmallIntegerField(default=Role.EDITOR.value)
    # the sign-in provider whose groups gave the role; empty: a person gave it
    given_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "console_membership"  # the model moved here from the console
        constraints = (models.UniqueConstraint(fields=("user", "account"), name="one_role_in_an_account"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {name_role(self.role)}"


class RetiredKey(models.Model):
    """Replaced account key, encrypted: accepted during a grace period, then kept to recognize the SAS it signed."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="retired_keys")
    number = models.PositiveSmallIntegerField()  # 1 or 2
    sealed = models.BinaryField()
    retired_at = models.DateTimeField()
    accepted_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"key{self.number} (old)"


_MAKE_RELATION: Final = "storage.relations.table_relations.make"


class Tables(models.QuerySet["Table"]):
    def existing(self) -> Self:
        """Filter to tables that are not deleted."""
        return self.filter(deleted_at=None)

    def recording_apart(self) -> Self:
        """Filter to tables whose relations record their own history."""
        return self.filter(distributed=True)

    def local(self) -> Self:
        """Filter to tables with local relations."""
        return self.filter(distributed=False)


class Table(models.Model):
    """A table; its entities are the rows of the relation ``entity_<id>``.

    A deleted table keeps its row, and its relation under another name, until the relation is dropped.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tables")
    name = models.CharField(max_length=255)
    folded_name = models.CharField(max_length=255)  # identifies it: see storage.domain.values.names
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, default=None)
    kept_until = models.DateTimeField(null=True, default=None)  # until when a deleted table can be restored
    description = models.TextField(max_length=2000, blank=True, default="")
    tags = models.JSONField(default=list)  # texts
    throughput = models.PositiveIntegerField(
        default=0, db_default=0
    )  # request units per second; 0: unlimited
    written_at = models.DateTimeField(
        null=True, default=None
    )  # last write, as recorded since there is this field
    # its relation is spread over the nodes of a Citus cluster, or has the form for it
    distributed = models.BooleanField(default=False, db_default=False)
    distributed_rows = models.BigIntegerField(default=0, db_default=0)  # as last estimated on the nodes
    distributed_bytes = models.BigIntegerField(default=0, db_default=0)
    # its own history has all changes since; null: not yet, as an older version has distributed it
    distributed_since = models.DateTimeField(null=True, default=None)
    changes_since = models.DateTimeField(null=True, default=None)  # its own history has nothing older
    # names of properties whose index a person dropped, so that the server makes none by itself; null: none
    declined_indexes = models.JSONField(null=True, default=None)
    # there have been comments on it or its entities, so that it is worth looking for them
    has_comments = models.BooleanField(default=False, db_default=False)
    # it has no relation yet: see storage.sql.tables
    relation_pending = models.BooleanField(default=False, db_default=False)

    objects = Tables.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "folded_name"), condition=Q(deleted_at=None), name="one_table_of_a_name"
            ),
            # servers up to 1.0 make metrics tables, and take this for a table that another process has made
            models.CheckConstraint(
                condition=Q(deleted_at__isnull=False) | ~Q(folded_name__startswith="$"),
                name="no_metrics_table",
            ),
        )
        indexes = (
            models.Index(fields=("account",), condition=Q(distributed=True), name="distributed_tables"),
            models.Index(fields=("id",), condition=Q(relation_pending=True), name="pending_relations"),
        )

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        """Make the relation of a loaded table if it is pending, so that no code meets a table without one."""
        table = super().from_db(db, field_names, values, **options)
        if table.__dict__.get("relation_pending") and table.deleted_at is None and db == DEFAULT_DB_ALIAS:
            import_string(_MAKE_RELATION)(table)
            table.relation_pending = False
        return table

    @property
    def form(self) -> RelationForm:
        """Return the relation form of the table."""
        return registry.form_of(self)

    @property
    def bytes_elsewhere(self) -> int:
        """Return the bytes of the relation on other nodes, as last measured."""
        return self.distributed_bytes


class PropertyIndex(models.Model):
    """Property index of a table; jobs create and drop it by storage.sql.indexes."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="indexes")
    name = models.CharField(max_length=255)  # the property
    state = models.CharField(max_length=8)  # tables.index_rules.IndexState
    origin = models.CharField(max_length=8)  # tables.index_rules.IndexOrigin
    error = models.TextField(blank=True, default="")  # why it failed
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, default=None)
    scans = models.BigIntegerField(default=0)  # as PostgreSQL had counted when the use was last looked at
    # why the server made it, a storage.tables.index_rules.IndexReason as JSON; null: a person asked for it
    reason = models.JSONField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("table", "name"), name="one_index_of_a_property"),)

    def __str__(self) -> str:
        return self.name


class PropertyScans(models.Model):
    """Costly scans of a day that an index on the property would have avoided."""

    # no constraint: writing counts must not wait for changes of the table
    table = models.ForeignKey(
        Table, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )
    name = models.CharField(max_length=255)  # the property
    day = models.DateField()
    scans = models.BigIntegerField()
    seconds = models.FloatField()
    # the latest scan's filter, without its values
    filter = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("table", "name", "day"), name="scans_of_a_day"),)
        indexes = (models.Index(fields=("day",), name="scans_by_day"),)

    def __str__(self) -> str:
        return f"{self.scans} of {self.name}"


class StoredAccessPolicy(models.Model):
    """Stored access policy of a table; null stands for an absent element."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="policies")
    place = models.PositiveSmallIntegerField()  # position in the list, from 0
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

    @property
    def terms(self) -> AccessPolicy:
        """Return the terms that tokens inherit; a policy with only an identifier has empty ones."""
        return AccessPolicy(self.start, self.expiry, self.permission)


class RegisteredSas(models.Model):
    """SAS token issued or labelled here, without its signature."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="registered_sas")
    fingerprint = models.CharField(max_length=64)  # domain.sas.fingerprint
    kind = models.CharField(max_length=8)  # "table" or "account"
    table_name = models.CharField(max_length=255, blank=True, default="")
    parameters = models.JSONField()  # pairs, as domain.sas.to_parameters returns them
    label = models.CharField(max_length=64)
    purpose = models.TextField(max_length=2000, blank=True, default="")
    owner = models.CharField(max_length=150, blank=True, default="")  # person to contact about it
    author = models.CharField(max_length=150)  # name of the user; empty if it was not issued here
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, default=None)  # its own expiry, not its policy's

    class Meta:
        db_table = "storage_issuedtoken"  # its name in 0.4, whose servers may still run
        constraints = (models.UniqueConstraint(fields=("account", "fingerprint"), name="one_issued_token"),)
        indexes = (models.Index(fields=("expires_at",), name="issued_tokens_by_expiry"),)

    def __str__(self) -> str:
        return self.label


class BlockedSas(models.Model):
    """Blocked SAS token."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="blocked_sas")
    fingerprint = models.CharField(max_length=64)
    author = models.CharField(max_length=150)
    blocked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "storage_blockedtoken"  # its name in 0.4, whose servers may still run
        constraints = (models.UniqueConstraint(fields=("account", "fingerprint"), name="one_blocked_token"),)

    def __str__(self) -> str:
        return self.fingerprint


class ApiToken(models.Model):
    """API token with which a script acts for a user; only its hash is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=64)
    scope = models.CharField(max_length=8)  # domain.access.roles.Scope
    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")  # null: all
    digest = models.CharField(max_length=64, unique=True)  # hexadecimal SHA-256
    prefix = models.CharField(max_length=16)  # the part of the secret that may be shown
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, default=None)
    last_used_at = models.DateTimeField(null=True, default=None)
    last_used_from = models.CharField(max_length=64, blank=True, default="")
    revoked_at = models.DateTimeField(null=True, default=None)
    # requests in the current minute
    window_started_at = models.DateTimeField(null=True, default=None)
    window_requests = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class IdempotencyRecord(models.Model):
    """Result of a request with an Idempotency-Key, without secrets, so that a retry creates nothing."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)  # the hash of the request
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    # the fingerprint of an issued token, or the number of a job
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "storage_keyedrequest"  # its name in 0.4, whose servers may still run
        constraints = (models.UniqueConstraint(fields=("token", "key"), name="one_request_of_a_key"),)
        indexes = (models.Index(fields=("created_at",), name="keyed_requests_by_time"),)

    def __str__(self) -> str:
        return self.key


REQUEST_SERIES_KEY: Final = ("account", "table_id", "minutes", "period", "process")


class RecordedRequest(models.Model):
    """Logged request to the Table service: refused, failed, slow, or sampled."""

    # ordered by id as they were committed, so that a follower misses none
    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )
    at = models.DateTimeField()  # when it arrived
    request_id = models.UUIDField()  # x-ms-request-id
    client_request_id = models.CharField(max_length=128)
    outcome = models.CharField(max_length=7)  # domain.requests.recorded.Outcome
    status = models.PositiveSmallIntegerField()  # 0: the client closed the connection before
    error = models.CharField(max_length=64)
    operation = models.CharField(max_length=32)  # empty for an unknown one
    method = models.CharField(max_length=16)
    table_name = models.CharField(max_length=255)  # as addressed
    path = models.TextField()
    options = models.JSONField()  # pairs of the query string
    seconds = models.FloatField()
    ingress = models.BigIntegerField()  # bytes
    egress = models.BigIntegerField()
    authentication = models.CharField(max_length=16)
    credential = models.CharField(
        max_length=256
    )  # as observed.Credential.name; of a SAS also if it was refused
    address = models.CharField(max_length=64)
    agent = models.CharField(max_length=256)
    version = models.CharField(max_length=16)  # x-ms-version
    # domain.filters.access_plan.AccessPath; empty without a query
    access_path = models.CharField(max_length=16)
    candidates = models.JSONField(null=True)  # properties whose index may have spared it rows
    fault = models.JSONField(null=True)  # domain.requests.recorded.dump_fault
    report = models.JSONField(null=True)  # why access was refused: storage.inspector.records.dump_report
    alike = models.PositiveIntegerField()  # further ones, which are only counted

    class Meta:
        indexes = (
            models.Index(fields=("account", "id"), name="recorded_requests_of_account"),
            models.Index(fields=("request_id",), name="recorded_requests_by_id"),
            models.Index(
                fields=("account", "client_request_id"),
                condition=~Q(client_request_id=""),
                name="recorded_requests_by_client_id",
            ),
        )

    def __str__(self) -> str:
        return f"{self.status} {self.operation}"


class RehearsalSet(models.Model):
    """Set of rules of an account, beside those that every account has."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="rehearsal_sets")
    name = models.CharField(max_length=64)
    description = models.TextField(max_length=2000, blank=True, default="")
    rules = models.JSONField()  # storage.rehearsal.rules.dump_rules

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="one_set_of_a_name"),)

    def __str__(self) -> str:
        return self.name


class Rehearsal(models.Model):
    """Run of a set of rules in an account, or in one of its tables."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="rehearsals")
    set_name = models.CharField(max_length=64)
    rules = models.JSONField()  # those that the set had when it was started
    table_name = models.CharField(max_length=255, blank=True, default="")  # empty: the whole account
    seed = models.BigIntegerField()
    scale = models.FloatField(default=1.0)  # factor of the rates at which its rules begin
    started_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, default=None)  # before its end
    started_by = models.JSONField()  # storage.domain.access.actor.Actor

    class Meta:
        indexes = (models.Index(fields=("account", "started_at"), name="rehearsals_of_account"),)

    def __str__(self) -> str:
        return f"{self.set_name} (seed {self.seed})"


class RehearsalClient(models.Model):
    """Client of a rehearsal, and how many of its requests each rule was about."""

    rehearsal = models.ForeignKey(Rehearsal, on_delete=models.CASCADE, related_name="clients", db_index=False)
    agent = models.CharField(max_length=256)
    credential = models.CharField(max_length=256)  # its kind and name; empty for an unknown one
    requests = models.BigIntegerField()
    matches = models.JSONField()  # a number for each rule

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("rehearsal", "agent", "credential"), name="one_client_of_a_rehearsal"
            ),
        )

    def __str__(self) -> str:
        return self.agent


class RehearsalRate(models.Model):
    """Rate of requests that a rule of a rehearsal is about, as the level of a leaking bucket."""

    rehearsal = models.ForeignKey(Rehearsal, on_delete=models.CASCADE, related_name="+", db_index=False)
    rule = models.PositiveSmallIntegerField()  # its position
    scope = models.CharField(max_length=64)  # digest of the account, table or partition
    level = models.FloatField()
    exceeded = models.BooleanField()  # by the last request
    at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("rehearsal", "rule", "scope"), name="one_rate"),)

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.level}"


class RehearsedRequest(models.Model):
    """Request of a client in a rehearsal, whether a rule was about it or not."""

    rehearsal = models.ForeignKey(
        Rehearsal, on_delete=models.CASCADE, related_name="requests", db_index=False
    )
    client = models.ForeignKey(
        RehearsalClient, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    number = models.BigIntegerField()  # among those of the client, in the order of arrival
    at = models.DateTimeField()  # when it arrived
    request_id = models.UUIDField()  # x-ms-request-id
    exchange = models.JSONField()  # storage.rehearsal.records.dump_exchange

    class Meta:
        indexes = (
            models.Index(
                fields=("rehearsal", "client"),
                condition=Q(exchange__has_key="faulted"),
                name="faulted_requests",
            ),
            models.Index(fields=("rehearsal", "id"), name="rehearsed_requests_in_order"),
            models.Index(fields=("client",), name="rehearsed_requests_of_client"),
        )

    def __str__(self) -> str:
        return str(self.request_id)


class RequestSeries(models.Model):
    """Request counts of an account or table in a period; see domain.requests.series."""

    # account 0: an empty count in each minute in which a server ran
    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    table_id = models.BigIntegerField()  # 0: the whole account
    minutes = models.PositiveSmallIntegerField()  # the length of the period
    period = models.DateTimeField()  # its start
    process = models.CharField(max_length=16)
    counts = models.JSONField()
    # all requests in the counts, so that sums need not read these; older servers write it, too
    requests = models.GeneratedField(
        expression=models.Func(models.F("counts"), function="series_requests"),
        output_field=models.BigIntegerField(),
        db_persist=True,
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=REQUEST_SERIES_KEY, name="one_series_row"),)
        indexes = (
            models.Index(fields=("minutes", "period"), name="series_by_period"),
            # rows that are not added up yet
            models.Index(
                fields=("account", "table_id", "period"),
                name="new_series_rows",
                condition=Q(minutes=1) & ~Q(process=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.account_id}/{self.table_id} at {self.period}"


class QueryShape(models.Model):
    """Queries of a table on a day with the same filter apart from its values; see storage.metrics.query_shapes."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    table_id = models.BigIntegerField()
    day = models.DateField()
    digest = models.CharField(max_length=32)  # digest of shape and client
    shape = models.TextField()  # the filter with … for each value; empty without one
    path = models.CharField(max_length=16)  # domain.filters.access_plan.AccessPath
    client = models.CharField(max_length=128)  # User-Agent
    requests = models.BigIntegerField()
    entities = models.BigIntegerField()  # that they returned

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "table_id", "day", "digest"), name="one_count_of_a_shape"
            ),
        )
        indexes = (models.Index(fields=("day",), name="query_shapes_by_day"),)

    def __str__(self) -> str:
        return self.shape


class SizeSample(models.Model):
    """Size of an account or table at a time; stored only when it has changed."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    table_id = models.BigIntegerField()  # 0: the whole account
    at = models.DateTimeField()
    entities = models.BigIntegerField()  # an estimate
    size = models.BigIntegerField()  # bytes on disk
    history = models.BigIntegerField()  # bytes on disk of the history, of an account only

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("account", "table_id", "at"), name="one_sample_at_a_time"),
        )
        indexes = (models.Index(fields=("at",), name="samples_by_time"),)

    def __str__(self) -> str:
        return f"{self.account_id}/{self.table_id} at {self.at}"


class SeenCredential(models.Model):
    """Key or token seen in requests; ``name`` as in domain.requests.observed, never a signature."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    authentication = models.CharField(max_length=16)
    name = models.CharField(max_length=256)
    parameters = models.JSONField()  # pairs
    first_used_at = models.DateTimeField()
    last_used_at = models.DateTimeField()
    address = models.CharField(max_length=64)  # where it was last used from
    agent = models.CharField(max_length=256)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("account", "authentication", "name"), name="one_of_a_credential"),
        )
        indexes = (models.Index(fields=("last_used_at",), name="credentials_by_last_use"),)

    def __str__(self) -> str:
        return self.name


class CredentialUse(models.Model):
    """Uses of a key or token by a client in an hour, counted by one process."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    authentication = models.CharField(max_length=16)
    name = models.CharField(max_length=256)
    hour = models.DateTimeField()  # its start
    address = models.CharField(max_length=64)
    agent = models.CharField(max_length=256)
    process = models.CharField(max_length=16)
    count = models.BigIntegerField()
    last_used_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "authentication", "name", "hour", "address", "agent", "process"),
                name="one_use_in_an_hour",
            ),
        )
        indexes = (models.Index(fields=("hour",), name="uses_by_hour"),)

    def __str__(self) -> str:
        return self.name


class Activity(models.Model):
    """Activity log entry, immutable and deleted after its retention."""

    at = models.DateTimeField(auto_now_add=True)
    verb = models.CharField(max_length=32)  # storage.core.verbs.Verb
    # no constraints: entries outlive their accounts and tables
    account = models.ForeignKey(
        Account, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    account_name = models.CharField(max_length=24, blank=True, default="")
    table = models.ForeignKey(
        Table, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    table_name = models.CharField(max_length=255, blank=True, default="")
    # domain.access.actor.Actor
    actor_kind = models.CharField(max_length=8)
    actor = models.CharField(max_length=256, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")
    agent = models.CharField(max_length=256, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    # how many entities were changed, and the first of them as KEYS of storage.activity.activity
    entities = models.PositiveIntegerField(default=0, db_default=0)
    keys = models.JSONField(null=True, default=None)
    # where the history has the changes, as storage.sql.changes.Span; null: nowhere; empty: in the history of a
    # table alone, by the request
    recorded = models.JSONField(null=True, default=None)
    detail = models.JSONField(default=dict)
    # before and after a change of settings
    before = models.JSONField(null=True, default=None)
    after = models.JSONField(null=True, default=None)
    undoes = models.ForeignKey(
        "self", on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="undone_by"
    )
    # not stored: the changes of an account without history, for an undo right after them
    unrecorded: Sequence[RecordedChange] = ()

    class Meta:
        indexes = (
            models.Index(fields=("account", "-at", "-id"), name="activity_of_an_account"),
            models.Index(fields=("at",), name="activity_by_time"),
        )

    def __str__(self) -> str:
        return self.verb

    @property
    def effective_verb(self) -> Verb:
        """Return the verb of the activity, or for an UNDO, the verb of the reverted change."""
        return registry.find_verb(
            self.detail.get("verb", self.verb) if self.verb == ActivityVerb.UNDO else self.verb
        )


class EntityChange(models.Model):
    """Entity before and after a change in the console, as stored by versions without Activity.entities.

    Rows are only read and expired; the model can be removed once all are older than the retention of the
    activity log. ``before`` and ``after`` are the members of its JSON, as in
    domain.entities.entity.StoredEntity. They are text, because PostgreSQL's JSON cannot store every string
    that an entity can.
    """

    activity = models.ForeignKey(Activity, on_delete=models.CASCADE, related_name="changes")
    place = models.PositiveIntegerField()  # position in the request, from 0
    table = models.ForeignKey(
        Table, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    partition_key = models.TextField()
    row_key = models.TextField()
    key_digest = models.BinaryField(max_length=16)  # a hash of both keys, which are too long for an index
    before = models.TextField(null=True, default=None)  # noqa: DJ001  null: it did not exist
    after = models.TextField(null=True, default=None)  # noqa: DJ001  null: it was deleted
    ticks_before = models.BigIntegerField(null=True, default=None)  # Timestamp
    ticks_after = models.BigIntegerField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("activity", "place"), name="one_change_at_a_place"),)
        indexes = (models.Index(fields=("table", "key_digest"), name="changes_of_an_entity"),)

    def __str__(self) -> str:
        return f"{self.partition_key} {self.row_key}"


class HistorySegment(models.Model):
    """Segment of an account's history: see storage.sql.history."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()  # by the database's clock
    ended_at = models.DateTimeField(null=True, default=None)
    packed = models.BooleanField(default=False)
    dropped_at = models.DateTimeField(null=True, default=None)
    last_xid = models.BigIntegerField(null=True, default=None)  # all its changes have smaller ones
    # the PostgreSQL cluster whose transactions they are
    cluster = models.BigIntegerField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "number"), name="one_segment_of_a_number"),)

    def __str__(self) -> str:
        return f"history_{self.account_id}_{self.number}"

    @property
    def is_broken(self) -> bool:
        """Return whether the segment is dropped, or followed by a gap."""
        return self.dropped_at is not None or (self.ended_at is not None and self.last_xid is None)


class FeedMark(models.Model):
    """PostgreSQL snapshot taken every few thousand changes; readers far behind proceed from mark to mark."""

    snapshot = models.TextField()  # a pg_snapshot
    next_xid = models.BigIntegerField(db_index=True)  # the end of the snapshot
    changes = models.BigIntegerField()  # recorded until then, in all accounts
    at = models.BigIntegerField()  # just before, in ticks

    def __str__(self) -> str:
        return self.snapshot


class HistoryActor(models.Model):
    """Actor of recorded changes: domain.access.actor.Actor without its request."""

    id = models.AutoField(primary_key=True)
    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=256)
    address = models.CharField(max_length=64)
    agent = models.CharField(max_length=256)
    token = models.CharField(max_length=64)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("kind", "name", "address", "agent", "token"), name="one_actor"),
        )

    def __str__(self) -> str:
        return self.name


class Snapshot(models.Model):
    """Snapshot of an account: see storage.snapshots.snapshots."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="snapshots")
    name = models.CharField(max_length=64)
    reason = models.CharField(max_length=8)  # snapshots.schedule.SnapshotReason
    is_whole = models.BooleanField(default=True)  # it has all tables, not only some
    taken_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, default=None)  # when it is deleted; null: never
    visible = models.TextField()
    ticks = models.BigIntegerField()
    service_properties = models.JSONField(null=True, default=None)  # null: the defaults
    actor_kind = models.CharField(max_length=8)  # domain.access.actor.Actor
    actor = models.CharField(max_length=256, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="one_snapshot_of_a_name"),)
        indexes = (models.Index(fields=("expires_at",), name="snapshots_by_expiry"),)

    def __str__(self) -> str:
        return self.name


class SnapshotTable(models.Model):
    """Table in a snapshot; its entities are in the history or, with ``is_copied``, in a separate relation."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="tables")
    # no constraint: what is copied outlives its table
    table = models.ForeignKey(Table, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+")
    name = models.CharField(max_length=255)
    folded_name = models.CharField(max_length=255)
    description = models.TextField(max_length=2000, blank=True, default="")
    tags = models.JSONField(default=list)
    throughput = models.PositiveIntegerField(default=0)
    policies = models.JSONField(default=list)  # as operations.policies writes them
    entities = models.BigIntegerField()  # an estimate, until they are copied
    size = models.BigIntegerField()  # bytes of the table on disk when it was taken
    is_copied = models.BooleanField(default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("snapshot", "table"), name="one_table_of_a_snapshot"),)

    def __str__(self) -> str:
        return self.name


class SnapshotSchedule(models.Model):
    """Snapshot schedule of an account: snapshots.schedule.Schedule."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, primary_key=True, related_name="+")
    hour = models.PositiveSmallIntegerField()  # in UTC
    weekday = models.PositiveSmallIntegerField(null=True, default=None)  # null: every day
    keep = models.PositiveSmallIntegerField()
    next_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"snapshots of {self.account_id}"


class Branch(models.Model):
    """Branch, an account created from another one's present or past: see storage.branches.branches."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, primary_key=True, related_name="branch")
    source = models.ForeignKey(Account, on_delete=models.SET_NULL, null=True, related_name="branches")
    source_name = models.CharField(max_length=24)
    snapshot_name = models.CharField(max_length=64, blank=True, default="")  # empty: made from a time
    at = models.DateTimeField()  # the time of the source that it was made from
    is_whole = models.BooleanField(default=True, db_default=True)  # it was given all tables, not only some
    origin = models.ForeignKey(Snapshot, on_delete=models.SET_NULL, null=True, default=None, related_name="+")
    masking = models.JSONField(default=dict)  # rules by table and property
    originals = models.JSONField(default=list)  # where original values were found that should be masked
    actor_kind = models.CharField(max_length=8)  # domain.access.actor.Actor
    actor = models.CharField(max_length=256, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    reset_at = models.DateTimeField(null=True, default=None)  # last
    reset_entities = models.BigIntegerField(default=0)
    reset_seconds = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"branch of {self.source_name}"


class CopiedTable(models.Model):
    """Progress of copying a table between an account and another service: see storage.copies.copying."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_index=False, related_name="+")
    is_outgoing = models.BooleanField()
    service = models.TextField()  # its URL or the name of a file, and the account there; no credentials
    source = models.CharField(max_length=255)  # the names of the table at both ends
    target = models.CharField(max_length=255)
    job = models.BigIntegerField()  # the last one that worked on it
    progress = models.JSONField()  # as operations.remote_copies.progress writes it
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "is_outgoing", "service", "source", "target"), name="one_copy_of_a_table"
            ),
        )

    def __str__(self) -> str:
        return f"{self.source} to {self.target}"


class DatabaseVersion(models.Model):
    """Single row with the versions that may write to the database: see storage.health.database_version."""

    writer = models.PositiveIntegerField()  # the least number of versions that may write
    release = models.CharField(max_length=32)  # the version that stored it

    def __str__(self) -> str:
        return f"{self.writer} ({self.release})"


class OldRows(models.Model):
    """Table that may have rows from versions before 1.1: see storage.relations.old_rows."""

    table = models.OneToOneField(Table, on_delete=models.CASCADE, primary_key=True)
    last = models.JSONField(null=True, default=None)  # the key up to which they are rewritten, as two texts

    def __str__(self) -> str:
        return f"{self.table} after {self.last}"


class PeriodicRun(models.Model):
    """Last run of periodic work that one process at a time does: see storage.runtime.periodic."""

    name = models.CharField(max_length=32, primary_key=True)
    done_at = models.DateTimeField()

    class Meta:
        db_table = "storage_job"  # its name in 0.4, whose servers may still run

    def __str__(self) -> str:
        return self.name


class Job(models.Model):
    """Job, long work in steps: see storage.jobs.running."""

    kind = models.CharField(max_length=32)  # the name of an operations.jobs.kinds.JobKind
    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, null=True, related_name="+"
    )  # null: server
    # no constraint: a job outlives its table, and must not wait for changes of it
    table = models.ForeignKey(
        Table, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    table_name = models.CharField(max_length=255, blank=True, default="")
    actor = models.JSONField()  # the actor that started it: the fields of a domain.access.actor.Actor
    # the user, and the token of the management API, that started it; null: the server, a command, or an older server
    starter = models.BigIntegerField(null=True, default=None)
    starter_token = models.BigIntegerField(null=True, default=None)
    request_id = models.UUIDField()  # the request id of all its changes in the history
    arguments = models.JSONField(default=dict)
    state = models.JSONField(null=True, default=None)  # where its next step begins; null before the first one
    status = models.CharField(max_length=9)  # jobs.states.JobStatus
    wish = models.CharField(max_length=6, blank=True, default="")  # jobs.states.Wish
    # a step is only committed by the process that has read this number
    steps = models.BigIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)  # since the last step that ended
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True, default=None)  # null: not known
    rate = models.FloatField(default=0)  # done per second, lately
    counts = models.JSONField(default=dict)  # numbers by name
    failed = models.BigIntegerField(default=0)
    failures = models.JSONField(default=list)  # the first ones, as operations.jobs.jobs writes them
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")  # why it failed: a Refusal as JSON
    # no constraint: the activity log has a retention of its own
    activity = models.ForeignKey(
        Activity,
        on_delete=models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, default=None)
    stepped_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    seen_at = models.DateTimeField(null=True, default=None)  # when its user has seen the end

    class Meta:
        db_table = "storage_jobs"  # storage_job is that of PeriodicRun
        indexes = (
            models.Index(fields=("stepped_at",), condition=Q(ended_at=None), name="jobs_to_do"),
            models.Index(fields=("ended_at",), name="jobs_by_end"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class JobFile(models.Model):
    """File that a job reads or produces, stored in pieces so that every process can reach it."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")
    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, null=True, related_name="files"
    )  # null: not started
    name = models.CharField(max_length=255)
    content_type = models.CharField(max_length=127, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")  # the name of a user
    size = models.BigIntegerField(default=0)
    is_complete = models.BooleanField(default=False)
    is_result = models.BooleanField(default=False)  # the job has made it
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=("expires_at",), name="job_files_by_expiry"),)

    def __str__(self) -> str:
        return self.name


class JobFilePiece(models.Model):
    """Piece of a file, beginning at the byte ``start``."""

    file = models.ForeignKey(JobFile, on_delete=models.CASCADE, db_index=False, related_name="pieces")
    start = models.BigIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("file", "start"), name="one_piece_at_a_start"),)

    def __str__(self) -> str:
        return f"{self.file_id} from {self.start}"


class ImportDraft(models.Model):
    """Import that a user prepares: the file, its layout, the column mapping, and the jobs.

    Once the import has started, the file belongs to the job, and the mapping is proposed for the next file.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    table_name = models.CharField(max_length=255)  # the table need not exist yet
    owner = models.CharField(max_length=256)  # the name of a user
    file = models.OneToOneField(JobFile, on_delete=models.CASCADE, null=True, related_name="draft")
    file_name = models.CharField(max_length=255)
    size = models.BigIntegerField()  # that the file is going to have
    # JSON texts: names of columns may hold what PostgreSQL's JSON cannot
    wishes = models.TextField(blank=True, default="")  # how the file is read, if not as it was found out
    mapping = models.TextField(blank=True, default="")
    mode = models.CharField(max_length=7)  # storage.entities.writing.WriteMode
    check_job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=("account", "table_name"), name="import_drafts_by_table"),)

    def __str__(self) -> str:
        return f"{self.file_name} into {self.table_name}"


class KeyRotation(models.Model):
    """Last rotation of an account key, kept because the activity log expires after some months."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_index=False, related_name="+")
    number = models.PositiveSmallIntegerField()  # 1 or 2
    rotated_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "number"), name="one_rotation_of_a_key"),)

    def __str__(self) -> str:
        return f"key{self.number}"


class Notice(models.Model):
    """Notice about a condition, until it is resolved: see storage.notices."""

    kind = models.CharField(max_length=32)  # storage.core.notices.NoticeKind
    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, null=True, db_index=False, related_name="+"
    )  # null: of the whole server, or of a user
    # the only one who sees it; null: all with the capability of its kind in the account
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    # the thing in the account that it is about
    subject = models.CharField(max_length=128, blank=True, default="")
    severity = models.CharField(max_length=8)  # storage.core.notices.Severity
    facts = models.JSONField(default=dict)  # values for the placeholders of its sentence
    news = models.CharField(max_length=64, blank=True, default="")  # when it changes, people are told again
    opened_at = models.DateTimeField()
    news_at = models.DateTimeField()
    found_at = models.DateTimeField()  # last
    resolved_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "account", "user", "subject"),
                condition=Q(resolved_at=None),
                name="one_open_notice",
                nulls_distinct=False,
            ),
        )
        indexes = (
            models.Index(fields=("account", "-news_at"), name="notices_of_an_account"),
            models.Index(fields=("resolved_at",), name="notices_by_end"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class NoticeRule(models.Model):
    """Rule that overrides the defaults of a notice kind, for an account or, without one, for the server."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")
    kind = models.CharField(max_length=32)
    is_on = models.BooleanField(default=True)
    threshold = models.FloatField(null=True, default=None)  # null: the default of the kind

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "kind"), name="one_rule_of_a_notice", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return self.kind


class NoticeReader(models.Model):
    """Notice settings of a user: the last notice seen, and the confirmed e-mail address."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    seen_at = models.DateTimeField(null=True, default=None)  # news until then is seen
    address = models.CharField(max_length=254, blank=True, default="")
    confirmed_at = models.DateTimeField(null=True, default=None)
    # the hash of the code that the address was sent
    code_digest = models.CharField(max_length=64, blank=True, default="")
    code_expires_at = models.DateTimeField(null=True, default=None)
    code_attempts = models.PositiveSmallIntegerField(default=0)

    def __str__(self) -> str:
        return self.address


class NoticeMute(models.Model):
    """Muted notices of a user: those that match all given fields."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")  # null: any
    kind = models.CharField(max_length=32, blank=True, default="")  # empty: any
    subject = models.CharField(max_length=128, null=True, default=None)  # noqa: DJ001  null: any; empty is one
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("user", "account", "kind", "subject"), name="one_mute", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"{self.user}: {self.kind}"


class Webhook(models.Model):
    """Webhook that receives the notices of an account, or without one of the server and all accounts."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=64)
    url = models.TextField(max_length=2000)
    kinds = models.JSONField(default=list)  # kinds of notices; empty: all
    enabled = models.BooleanField(default=True)
    format = models.CharField(max_length=16, default="json", db_default="json")
    secret_sealed = models.BinaryField()
    author = models.CharField(max_length=150)  # name of a user; empty: a command
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, default=None)  # last
    failed_at = models.DateTimeField(null=True, default=None)  # first of the attempts that failed since
    failures = models.PositiveIntegerField(default=0)  # since something was delivered

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "name"), name="one_webhook_of_a_name", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return self.name


class NoticeDelivery(models.Model):
    """Pending delivery of a notice to a webhook or e-mail address, until it is delivered or given up."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, null=True, related_name="deliveries")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, null=True, related_name="+")  # null: a test
    event = models.CharField(max_length=8)  # storage.notices.kinds.NoticeEvent
    message_id = models.UUIDField(unique=True)  # the same at each attempt
    body = models.TextField(blank=True, default="")  # the message to a webhook, byte for byte
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)  # when the next attempt is due; null: none is left
    attempts = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True, default=None)  # the last answer over HTTP
    error = models.CharField(max_length=256, blank=True, default="")  # why the last attempt failed
    delivered_at = models.DateTimeField(null=True, default=None)

    class Meta:
        indexes = (
            models.Index(fields=("due_at",), condition=~Q(due_at=None), name="deliveries_to_do"),
            models.Index(fields=("created_at",), name="deliveries_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.event} {self.message_id}"


class CommentThread(models.Model):
    """Thread of comments on an entity, table or saved query: see storage.comments."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_index=False, related_name="+")
    # without a constraint, so that deleting a table does not wait for locks
    table = models.ForeignKey(
        Table, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )
    subject = models.CharField(max_length=8)  # storage.comments.content.SubjectKind
    partition_key = models.TextField(blank=True, default="")
    row_key = models.TextField(blank=True, default="")
    # the id of the saved query, which is the console's; null: it is about something else
    query = models.BigIntegerField(null=True, default=None)
    digest = models.BinaryField(max_length=16)  # a hash of the subject, whose keys are too long for an index
    created_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, default=None)
    resolved_by = models.CharField(max_length=256, blank=True, default="")  # the name of a user

    class Meta:
        indexes = (
            models.Index(fields=("table", "digest"), name="threads_of_a_subject"),
            models.Index(fields=("account", "-id"), name="threads_of_an_account"),
        )

    def __str__(self) -> str:
        return f"{self.subject} {self.pk}"


class Comment(models.Model):
    """Comment of a user in a thread; deleted comments are kept for a while so that the deletion can be undone."""

    thread = models.ForeignKey(CommentThread, on_delete=models.CASCADE, related_name="comments")
    # null: the user is gone, or wrote it on another server
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, db_index=False, related_name="+"
    )
    author_name = models.CharField(max_length=256)
    text = models.TextField(max_length=4000)
    former_text = models.TextField(null=True, default=None)  # noqa: DJ001  before the last edit
    created_at = models.DateTimeField()
    edited_at = models.DateTimeField(null=True, default=None)
    deleted_at = models.DateTimeField(null=True, default=None)

    class Meta:
        indexes = (
            models.Index(fields=("author", "created_at"), name="comments_of_a_user"),
            models.Index(fields=("deleted_at",), condition=~Q(deleted_at=None), name="deleted_comments"),
        )

    def __str__(self) -> str:
        return f"{self.author_name}: {self.text[:64]}"


class EntityMove(models.Model):
    """Changed key of an entity: see storage.history.key_changes."""

    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    partition_key = models.TextField(blank=True)
    row_key = models.TextField(blank=True)
    new_partition_key = models.TextField(blank=True)
    new_row_key = models.TextField(blank=True)
    moved_at = models.DateTimeField(db_index=True)
    has_comments = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"{self.partition_key}, {self.row_key}"


class CommentMention(models.Model):
    """Mention of a user in a comment with @, and when the user saw it."""

    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="mentions")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, related_name="+"
    )
    seen_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("comment", "user"), name="one_mention_of_a_user"),)
        indexes = (models.Index(fields=("user",), condition=Q(seen_at=None), name="mentions_not_seen"),)

    def __str__(self) -> str:
        return f"{self.user_id} in {self.comment_id}"


class ShortLink(models.Model):
    """Short link to a page of an account: see storage.links.links."""

    key = models.CharField(max_length=16, primary_key=True)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, db_index=False, related_name="+")
    address = models.TextField()  # below that of the account
    created_at = models.DateTimeField()
    used_at = models.DateTimeField()

    class Meta:
        indexes = (
            models.Index(fields=("used_at",), name="links_by_use"),
            models.Index(fields=("account", "-used_at"), name="links_of_an_account"),
        )

    def __str__(self) -> str:
        return self.key


class Presence(models.Model):
    """Browser tab that views a table: see storage.presence.presence. The relation is unlogged."""

    tab = models.UUIDField()  # as the browser names it
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_constraint=False, related_name="+"
    )
    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    process = models.CharField(max_length=16)  # that writes to its stream
    entity = models.TextField(blank=True, default="")  # that it shows; empty: the table
    seen_at = models.DateTimeField()  # by the database's clock

    class Meta:
        constraints = (models.UniqueConstraint(fields=("tab", "user"), name="one_presence_of_a_tab"),)

    def __str__(self) -> str:
        return f"{self.user_id} in {self.table_id}"
