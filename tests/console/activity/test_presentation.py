"""Every verb of the activity log is shown, and can be undone exactly if the domain says so."""

from pathlib import Path

import pytest
from django.utils import translation

from console.activity.presentation import GROUP_LABELS, PRESENTATIONS, Group
from console.activity.sentences import plain_sentence, report_undo, sentence
from console.activity.undo import CONSOLE_UNDO
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.service.activity import Verb
from storage.operations.activity import activity
from storage.operations.undo.undo import STORAGE_UNDO

VERBS = sorted(set(Verb) - {Verb.UNDO})
SPRITES = Path(__file__).parents[3] / "static/vendor/lucide"
EVE = Actor(ActorKind.USER, "eve")


def test_every_verb_has_a_presentation():
    assert sorted(PRESENTATIONS) == VERBS
    assert set(GROUP_LABELS) == set(Group) == {shown.group for shown in PRESENTATIONS.values()}


def test_every_verb_has_an_icon_and_is_undone_as_the_domain_says():
    (sprite,) = (path.read_text() for path in SPRITES.glob("*/sprite.svg"))
    for verb in VERBS:
        can_undo = verb.undo_capability is not None or verb is Verb.USER_CHANGE  # which admins undo
        assert can_undo == (verb in STORAGE_UNDO or verb in CONSOLE_UNDO), verb
        assert f'id="{PRESENTATIONS[verb].icon}"' in sprite, verb


@pytest.mark.parametrize("language", ["en", "tr", "zh-hans"])
def test_every_verb_is_a_sentence(account, cast, language):
    with translation.override(language):
        for verb in VERBS:
            detail = {"user": "bob", "key": "key1"}
            done = activity.record(verb, EVE, account=account, detail=detail)
            assert "eve" in sentence(done) and "%(" not in sentence(done)
            undone = activity.record(verb, EVE, account=account, detail=detail, undoes=done)
            assert plain_sentence(undone) == plain_sentence(done)
            for several in ([undone], [undone, undone]):
                assert report_undo(several) and "%(" not in report_undo(several)
