"""Template tags that render activities."""

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from console.activity import sentences
from console.activity.presentation import presentation_of
from storage.domain.entities.entity import EntityKey
from storage.models import Activity

register = template.Library()


@register.simple_tag(takes_context=True)
def activity_sentence(context: Context, done: Activity) -> SafeString:
    allowed, user = context.get("may"), context.get("user")
    links_tokens = allowed["manage_access"] if allowed else bool(getattr(user, "is_admin", False))
    return sentences.sentence(done, links_tokens=links_tokens)


@register.simple_tag
def activity_entity(done: Activity, key: EntityKey) -> str:
    """Return the address of a changed entity."""
    return sentences.entity_address(done, *key)


@register.filter
def activity_icon(done: Activity) -> str:
    return presentation_of(done.effective_verb).icon
