"""Template tags that draw an activity."""

from django import template

from console.activity import sentences
from console.activity.presentation import PRESENTATIONS
from storage.domain.entities.entity import EntityKey
from storage.models import Activity
from storage.operations.undo import effect

register = template.Library()
register.simple_tag(sentences.sentence, name="activity_sentence")


@register.simple_tag
def activity_entity(done: Activity, key: EntityKey) -> str:
    """The address of an entity that was changed."""
    return sentences.entity_address(done, *key)


@register.filter
def activity_icon(done: Activity) -> str:
    return PRESENTATIONS[effect(done)].icon
