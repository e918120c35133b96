"""Names of actors: users, keys and tokens; SAS tokens by label, with a link."""

from collections.abc import Mapping
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from storage.domain.access.actor import Actor, ActorKind

# how an actor came in; the values appear in URLs
DOOR_LABELS: Final[Mapping[str, Promise]] = {
    ActorKind.USER: _("Console"),
    ActorKind.KEY: _("Account key"),
    ActorKind.SAS: _("SAS token"),
    ActorKind.BEARER: _("Bearer token"),
    ActorKind.TOKEN: _("API token"),
    ActorKind.COMMAND: _("Command line"),
    ActorKind.SERVER: _("Server"),
}


def label_door(kind: str) -> str:
    """Return the label of an actor kind; an unknown kind is returned unchanged."""
    return str(DOOR_LABELS.get(kind, kind))


def name_actor(actor: Actor) -> str:
    return actor.short_name or label_door(actor.kind)


def name_sas(fingerprint: str, label: str = "") -> str:
    """Return the label of a SAS token, or what tells it from others."""
    return label or gettext("SAS token %(start)s") % {"start": fingerprint[:8]}


def draw_actor(actor: Actor, account: str = "") -> SafeString:
    """Render an actor's name; in an account, a SAS label is linked."""
    if actor.kind is not ActorKind.SAS:
        return format_html("<bdi>{}</bdi>", name_actor(actor))
    if not actor.label:
        return format_html('<span title="{}">{}</span>', actor.name, name_sas(actor.name))
    if not account:
        return format_html("<bdi>{}</bdi>", actor.label)
    return format_html(
        '<a href="{}"><bdi>{}</bdi></a>', reverse("sas:show", args=(account, actor.name)), actor.label
    )
