"""Labels of actors: SAS tokens are labelled on display, never in the log."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from django.db.models import OuterRef, Subquery

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.stored import read_member
from storage.models import Activity, HistoryActor, RegisteredSas
from storage.sql.changes import Unnamed

# annotates an activity whose actor is a SAS token
SAS_LABEL: Final = Subquery(
    RegisteredSas.objects.filter(account=OuterRef("account_id"), fingerprint=OuterRef("actor")).values(
        "label"
    )[:1]
)


def read_actor(stored: HistoryActor, request: str = "") -> Actor:
    return Actor(
        read_member(ActorKind, stored.kind), stored.name, stored.address, stored.agent, request, stored.token
    )


def name_actors(account_id: int, changes: Unnamed) -> list[RecordedChange]:
    """Load the actors of several changes at once."""
    stored = HistoryActor.objects.in_bulk({pk for pk, _ in changes})
    nobody = HistoryActor(kind=ActorKind.SERVER)
    actors = (read_actor(stored.get(pk, nobody), it.actor.request_id) for pk, it in changes)
    named = label_actors(account_id, actors)
    return [it._replace(actor=actor) for (_, it), actor in zip(changes, named, strict=True)]


def label_actors(account_id: int, actors: Iterable[Actor]) -> list[Actor]:
    """Add the labels of SAS tokens to several actors at once."""
    given = list(actors)
    labels = _sas_labels(account_id, {it.name for it in given if it.kind is ActorKind.SAS})
    return [replace(it, label=labels.get(it.name, "")) if it.kind is ActorKind.SAS else it for it in given]


def _sas_labels(account_id: int, fingerprints: set[str]) -> dict[str, str]:
    if not fingerprints:
        return {}
    registered = RegisteredSas.objects.filter(account=account_id, fingerprint__in=fingerprints)
    return dict(registered.values_list("fingerprint", "label"))


def actor_of(done: Activity) -> Actor:
    """Return the actor of an activity, with the label of the SAS token if the query was annotated with SAS_LABEL."""
    return Actor(
        read_member(ActorKind, done.actor_kind),
        done.actor,
        done.address,
        done.agent,
        done.request_id,
        done.detail.get("by_token", ""),
        getattr(done, "sas_label", None) or "",
    )
