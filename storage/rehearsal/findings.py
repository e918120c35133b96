"""Findings of a rehearsal: kinds, sentences, and remedies by SDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from storage.domain.translation import mark as _

REQUESTS_LIMIT: Final = 10  # that a finding names


class Severity(StrEnum):
    """Severity of a finding; only a fault fails a run."""

    FAULT = "fault"
    NOTE = "note"


class FindingKind(StrEnum):
    """Kind of a finding, by its name in JSON."""

    IGNORED_TOKEN = "ignored-token"  # noqa: S105
    NOT_RETRIED = "not-retried"
    RETRIED_AT_ONCE = "retried-at-once"
    RETRIED_BEFORE_RETRY_AFTER = "retried-before-retry-after"
    RETRIED_REFUSED = "retried-refused"
    RETRIES_EXHAUSTED = "retries-exhausted"
    INSERT_REPEATED = "insert-repeated"
    INSERTED_TWICE = "inserted-twice"
    UPDATE_REPEATED = "update-repeated-412"
    DELETE_REPEATED = "delete-repeated-404"
    ADDED_TWICE = "added-twice"
    LOST_UPDATE = "lost-update"
    STALE_READ = "stale-read"
    EXPIRED_SAS = "expired-sas"
    HOT_PARTITION = "hot-partition"
    AZURE_REFUSES = "azure-refuses"
    GAVE_UP = "gave-up"

    @property
    def label(self) -> str:
        """Short English text, marked for translation."""
        return TITLES[self]


class Phrase(str):
    """English fact of a sentence, marked for translation."""

    __slots__ = ()


NO_ANSWER: Final = Phrase(_("no answer"))
HALF_AN_ANSWER: Final = Phrase(_("half an answer"))


class Sdk(StrEnum):
    """SDK of a client, by its User-Agent."""

    PYTHON = "python"
    JAVASCRIPT = "js"
    DOTNET = "net"
    GO = "go"
    JAVA = "java"
    OTHER = ""


def find_sdk(agent: str) -> Sdk:
    """Return the SDK that a User-Agent names, such as ``azsdk-python-data-tables/12.7.0``."""
    for sdk in Sdk:
        if sdk and f"azsdk-{sdk}-" in agent.lower():
            return sdk
    return Sdk.OTHER


@dataclass(frozen=True)
class Finding:
    """Fact about the requests of a client, in the words of its first case.

    ``template`` and ``remedies`` are marked for translation, as are the facts that are phrases.
    """

    kind: FindingKind
    severity: Severity
    template: str
    facts: Mapping[str, object]
    count: int = 1
    requests: Sequence[str] = ()  # x-ms-request-id of the first cases
    remedies: Sequence[str] = field(default=())

    @property
    def text(self) -> str:
        """English sentence: the request, its answer, and the requests after it."""
        return self.template % self.facts

    @property
    def remedy(self) -> str:
        """English advice for the client's SDK."""
        return " ".join(self.remedies)


TITLES: Final[Mapping[FindingKind, str]] = {
    FindingKind.IGNORED_TOKEN: _("Ignored a continuation token"),
    FindingKind.NOT_RETRIED: _("Did not retry"),
    FindingKind.RETRIED_AT_ONCE: _("Retried without a delay"),
    FindingKind.RETRIED_BEFORE_RETRY_AFTER: _("Retried before Retry-After"),
    FindingKind.RETRIED_REFUSED: _("Retried a refused request"),
    FindingKind.RETRIES_EXHAUSTED: _("Gave up after several attempts"),
    FindingKind.INSERT_REPEATED: _("Repeated an insert and got a conflict with itself"),
    FindingKind.INSERTED_TWICE: _("Inserted the same entity under two keys"),
    FindingKind.UPDATE_REPEATED: _("Repeated a conditional change and got a conflict with itself"),
    FindingKind.DELETE_REPEATED: _("Repeated a deletion and did not find the entity"),
    FindingKind.ADDED_TWICE: _("Added a number twice"),
    FindingKind.LOST_UPDATE: _("Overwrote a change of another client"),
    FindingKind.STALE_READ: _("Read its own write from the secondary too early"),
    FindingKind.EXPIRED_SAS: _("Kept using an expired SAS"),
    FindingKind.HOT_PARTITION: _("Hot partition"),
    FindingKind.AZURE_REFUSES: _("Azure would refuse a request"),
    FindingKind.GAVE_UP: _("Closed the connection before the answer"),
}

_RETRIES: Final = {
    Sdk.PYTHON: _("TableServiceClient(…, retry_total=10, retry_backoff_factor=0.8) sets them."),
    Sdk.JAVASCRIPT: _("The option retryOptions: { maxRetries, retryDelayInMs } of TableClient sets them."),
    Sdk.DOTNET: _("TableClientOptions.Retry sets them: MaxRetries, Delay and Mode."),
    Sdk.GO: _("aztables.ClientOptions sets them with azcore's policy.RetryOptions."),
    Sdk.JAVA: _("TableClientBuilder.retryOptions(…) or retryPolicy(…) sets them."),
}

# a general sentence, then one of the SDK
REMEDIES: Final[Mapping[FindingKind, tuple[str, Mapping[Sdk, str]]]] = {
    FindingKind.IGNORED_TOKEN: (
        _(
            "Follow continuation tokens until an answer has none. A page can be short or empty before the end."
        ),
        {
            Sdk.PYTHON: _(
                "Iterate over all of query_entities() or list_entities(), or over all pages of by_page()."
            ),
            Sdk.JAVASCRIPT: _(
                "Iterate with for await over listEntities(), or over all pages of byPage(), not with one next()."
            ),
            Sdk.DOTNET: _("Iterate over all of Query() or QueryAsync(), not over the first of AsPages()."),
            Sdk.GO: _("Call NextPage() of the pager while More() is true."),
            Sdk.JAVA: _("Iterate over all of listEntities(), not over the first of iterableByPage()."),
        },
    ),
    FindingKind.NOT_RETRIED: (
        _("Retry 500, 503, 429 and lost connections with growing delays."),
        {
            **_RETRIES,
            Sdk.PYTHON: _(
                "TableServiceClient(…, retry_total=10, retry_backoff_factor=0.8) does, except inserts, merges and "
                "change sets after a lost connection: catch ServiceResponseError and repeat these yourself."
            ),
            Sdk.JAVASCRIPT: _(
                "The option retryOptions: { maxRetries, retryDelayInMs } of TableClient does, except after half an "
                "answer: repeat the operation yourself."
            ),
        },
    ),
    FindingKind.RETRIED_AT_ONCE: (
        _("Wait between attempts, each time longer, from the second retry on."),
        _RETRIES,
    ),
    FindingKind.RETRIED_BEFORE_RETRY_AFTER: (
        _(
            "Wait as long as Retry-After says. The retry policies of the SDKs do; a loop around them must, too."
        ),
        {},
    ),
    FindingKind.RETRIED_REFUSED: (
        _("Do not repeat a request that was refused for its content; change it first."),
        {},
    ),
    FindingKind.RETRIES_EXHAUSTED: (
        _("If the operation matters, allow more attempts, or keep it to repeat it later."),
        _RETRIES,
    ),
    FindingKind.INSERT_REPEATED: (
        _("After a conflict that follows a lost answer, read the entity and compare it, or use an upsert."),
        {
            Sdk.PYTHON: _("Use upsert_entity(), or catch ResourceExistsError and call get_entity()."),
            Sdk.JAVASCRIPT: _("Use upsertEntity(), or call getEntity() after a RestError with status 409."),
            Sdk.DOTNET: _(
                "Use UpsertEntity(), or call GetEntity() after a RequestFailedException with status 409."
            ),
            Sdk.GO: _("Use UpsertEntity(), or call GetEntity() after a ResponseError with status 409."),
            Sdk.JAVA: _(
                "Use upsertEntity(), or call getEntity() after a TableServiceException with status 409."
            ),
        },
    ),
    FindingKind.INSERTED_TWICE: (
        _("Choose the keys once, before the first attempt, so that a repeated insert meets its own entity."),
        {},
    ),
    FindingKind.UPDATE_REPEATED: (
        _("After 412 that follows a lost answer, read the entity again: it may have your own change."),
        {
            Sdk.PYTHON: _("Catch ResourceModifiedError and call get_entity()."),
            Sdk.JAVASCRIPT: _("Call getEntity() after a RestError with status 412."),
            Sdk.DOTNET: _("Call GetEntity() after a RequestFailedException with status 412."),
            Sdk.GO: _("Call GetEntity() after a ResponseError with status 412."),
            Sdk.JAVA: _("Call getEntity() after a TableServiceException with status 412."),
        },
    ),
    FindingKind.DELETE_REPEATED: (
        _("Take 404 for success if an attempt before it got no answer, or an error of the server."),
        {
            Sdk.JAVASCRIPT: _("deleteEntity() throws a RestError with status 404."),
            Sdk.GO: _("DeleteEntity() returns a ResponseError with status 404."),
        },
    ),
    FindingKind.ADDED_TWICE: (
        _(
            "Store a mark of the change, such as its own id, with the number. After a lost answer, read the entity "
            "and add only if the mark is not there."
        ),
        {},
    ),
    FindingKind.LOST_UPDATE: (
        _("Send the ETag that was read as If-Match, and repeat the whole change after 412."),
        {
            Sdk.PYTHON: _(
                "Pass etag=entity.metadata['etag'] and match_condition=MatchConditions.IfNotModified to "
                "update_entity()."
            ),
            Sdk.JAVASCRIPT: _("Pass { etag: entity.etag } to updateEntity()."),
            Sdk.DOTNET: _("Pass entity.ETag to UpdateEntity(), not ETag.All."),
            Sdk.GO: _("Set IfMatch in UpdateEntityOptions."),
            Sdk.JAVA: _("Call updateEntityWithResponse() with ifUnchanged set to true."),
        },
    ),
    FindingKind.STALE_READ: (
        _("Read your own writes from the primary, or compare with LastSyncTime of the service statistics."),
        {
            Sdk.PYTHON: _("get_service_stats() has it; retry_to_secondary=False keeps reads at the primary."),
            Sdk.DOTNET: _("TableServiceClient.GetStatistics() has it."),
            Sdk.JAVASCRIPT: _("TableServiceClient.getStatistics() has it."),
            Sdk.GO: _("ServiceClient.GetStatistics() has it."),
            Sdk.JAVA: _("TableServiceClient.getStatistics() has it."),
        },
    ),
    FindingKind.EXPIRED_SAS: (
        _("Get a new SAS before its end, or after 403, and do not send the old one again."),
        {
            Sdk.PYTHON: _("AzureSasCredential.update() exchanges it in a client."),
            Sdk.JAVASCRIPT: _("AzureSASCredential.update() exchanges it in a client."),
            Sdk.DOTNET: _("AzureSasCredential.Update() exchanges it in a client."),
            Sdk.JAVA: _("AzureSasCredential.update() exchanges it in a client."),
        },
    ),
    FindingKind.HOT_PARTITION: (
        _("Spread the entities over more partitions, or send them in change sets at a bounded rate."),
        {},
    ),
    FindingKind.AZURE_REFUSES: (_("Change the request before it goes to Azure."), {}),
    FindingKind.GAVE_UP: (
        _("If the timeout is shorter than the delays of the service, make it longer."),
        {
            Sdk.PYTHON: _("read_timeout=… of the client sets it, in seconds."),
            Sdk.DOTNET: _("TableClientOptions.Retry.NetworkTimeout sets it."),
            Sdk.GO: _("TryTimeout of azcore's policy.RetryOptions sets it."),
            Sdk.JAVASCRIPT: _("abortSignal of an operation sets it."),
        },
    ),
}


def find_remedies(kind: FindingKind, agent: str) -> Sequence[str]:
    """Return the sentences of advice for a client."""
    general, by_sdk = REMEDIES[kind]
    own = by_sdk.get(find_sdk(agent))
    return (general,) if own is None else (general, own)
