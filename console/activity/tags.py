"""Template tags that tell what was done."""

from django import template
from django.utils.safestring import SafeString

from console.activity import sentences
from storage.domain.entities.entity import EntityKey
from storage.models import Activity

register = template.Library()


@register.simple_tag
def activity_sentence(done: Activity) -> SafeString:
    """Who did what to what."""
    return sentences.sentence(done)


@register.simple_tag
def activity_entity(done: Activity, key: EntityKey) -> str:
    """Where an entity may be that was changed."""
    return sentences.entity_address(done, *key)


@register.filter
def activity_icon(done: Activity) -> str:
    return sentences.icon_of(done)
