"""Every verb of the activity log is shown, and can be undone exactly if the domain says so."""

from pathlib import Path

from django.utils import translation
from django.utils.module_loading import import_string

from console.activity.presentation import GROUP_LABELS
from console.activity.sentences import plain_sentence, report_undo, sentence
from storage.activity import activity
from storage.activity.subject import ActivityVerb
from storage.comments.subject import CommentVerb
from storage.core import registry
from storage.core.verbs import Group
from storage.domain.access.actor import Actor, ActorKind
from storage.people.subject import PeopleVerb

VERBS = sorted(set(registry.verbs().values()) - {ActivityVerb.UNDO})
SPRITES = Path(__file__).parents[2] / "static/vendor/lucide"
EVE = Actor(ActorKind.USER, "eve")


def test_every_group_has_a_label_and_verbs():
    assert set(GROUP_LABELS) == set(Group) == {verb.act.group for verb in VERBS}


def test_every_verb_has_an_icon_and_a_way_to_undo_it_or_none():
    (sprite,) = (path.read_text() for path in SPRITES.glob("*/sprite.svg"))
    for verb in VERBS:
        assert f'id="{verb.act.icon}"' in sprite, verb
        undo = verb.act.undo
        if undo is not None:
            assert callable(import_string(undo.do or undo.request)), verb
            assert undo.capability is not None or verb is PeopleVerb.USER_CHANGE, verb  # undone by admins


def test_every_verb_is_a_sentence_in_every_language(account, cast):
    detail = {"user": "bob", "key": "key1"}
    for verb in VERBS:
        done = activity.record(verb, EVE, account=account, detail=detail)
        undone = activity.record(verb, EVE, account=account, detail=detail, undoes=done)
        for language in ("en", "tr", "zh-hans"):
            with translation.override(language):
                assert "eve" in sentence(done) and "%(" not in sentence(done), (verb, language)
                assert plain_sentence(undone) == plain_sentence(done), (verb, language)
                for several in ([undone], [undone, undone]):
                    assert report_undo(several) and "%(" not in report_undo(several), (verb, language)


def test_an_activity_of_a_subject_that_is_left_out_keeps_its_sentence(account, cast):
    done = activity.record(
        CommentVerb.CREATE, EVE, account=account, detail={"thread": 1, "of_table": "people"}
    )
    try:
        registry.leave_out({"comments"})
        assert plain_sentence(done) == "eve wrote a comment in people"
        assert "/comments/" not in sentence(done)
        assert registry.undo_of(done.effective_verb) is None
    finally:
        registry.leave_out(())
    assert "/comments/1/" in sentence(done)
    assert registry.undo_of(done.effective_verb) is not None
