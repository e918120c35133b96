"""Declaration of the subject "rehearsal": see storage.core.registry."""

from typing import Final

from storage.core.setting import Setting, Switch
from storage.core.subject import (
    Command,
    CommandGroup,
    HelpEntry,
    Hook,
    Page,
    Part,
    Place,
    Section,
    Slot,
    StyleSheet,
    Subject,
    Word,
)
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.refusals import AnyReason
from storage.domain.translation import mark as _

_UNDO: Final = Undo("storage.rehearsal.rehearsals.undo_set_change", Capability.MANAGE_TABLES)


class RehearsalVerb(Verb):
    START = Act(
        "rehearsal.start",
        Group.SETTINGS,
        "flask-conical",
        _("%(who)s started the rehearsal %(rehearsal)s of %(account)s"),
        is_marked=True,
    )
    STOP = Act(
        "rehearsal.stop",
        Group.SETTINGS,
        "flask-conical",
        _("%(who)s stopped the rehearsal %(rehearsal)s of %(account)s"),
        is_marked=True,
    )
    # a set of rules of the account's own
    SET_CHANGE = Act(
        "rehearsal.set.change",
        Group.SETTINGS,
        "flask-conical",
        _("%(who)s changed the rules %(set)s for rehearsals of %(account)s"),
        undone=_("Restored the set of rules."),
        undo=_UNDO,
    )
    SET_DELETE = Act(
        "rehearsal.set.delete",
        Group.SETTINGS,
        "flask-conical",
        _("%(who)s deleted the rules %(set)s for rehearsals of %(account)s"),
        undone=_("Deleted the set of rules."),
        undo=_UNDO,
    )


class RehearsalReason(AnyReason):
    """Reasons why a rehearsal cannot be started, or its rules not be read."""

    RULES_MALFORMED = _("Rules are a list of 1 to %(most)s objects.")
    # facts of each of these: number
    RULE_NO_OBJECT = _("Rule %(number)s must be an object.")
    RULE_MEMBER = _("Rule %(number)s cannot have a member “%(member)s”. Use %(names)s.")
    RULE_NAME = _("Rule %(number)s: “name” must have 1 to %(most)s ASCII characters and no comma.")
    RULE_NAME_TWICE = _("Rule %(number)s: another rule has this name.")
    RULE_CHOICE = _("Rule %(number)s: “%(member)s” must be one of %(choices)s.")
    RULE_LIST = _("Rule %(number)s: “%(member)s” must be a list of %(choices)s.")
    RULE_NUMBER = _("Rule %(number)s: “%(member)s” must be a number from %(least)s to %(most)s.")
    RULE_INTEGER = _("Rule %(number)s: “%(member)s” must be an integer from 1.")
    RULE_INTEGERS = _("Rule %(number)s: “%(member)s” must be a list of integers from 1.")
    RULE_TEXT = _("Rule %(number)s: “%(member)s” must be a text of at most %(most)s characters.")
    RULE_WHEN = _("Rule %(number)s: “when” must be an object.")
    RULE_WITHOUT_RATE = _("Rule %(number)s: “per” needs a “rate”.")
    MAY_NOT_REHEARSE = _(
        "Failures may not be rehearsed in the account %(account)s. Allow it in the settings of the account."
    )
    PROTECTED_NOT_REHEARSED = _("The account %(account)s is protected, so failures are not rehearsed in it.")
    REHEARSAL_RUNS = _("The rehearsal %(set)s is running. Stop it first.")
    NO_SUCH_SET = _("There is no set of rules named “%(set)s”.")
    SET_NAME = _("The name of a set has 1 to %(most)s letters, digits, hyphens and underscores.")
    READY_SET_NAME = _("“%(set)s” is the name of a ready set. Choose another name.")
    TOO_MANY_SETS = _("An account can have at most %(most)s sets of rules.")
    DURATION = _("A rehearsal takes %(least)s seconds to %(most)s hours.")
    DURATION_MALFORMED = _("Write a duration like 90s, 10m or 2h.")
    TABLE_NAME = _("“%(table)s” is not a possible name of a table.")
    SCALE = _("The scale must be a number from %(least)s to %(most)s.")
    SEED = _("The seed must be an integer from 0 to %(most)s.")


_MAY_REHEARSE: Final = Setting(
    "may_rehearse",
    bool,
    "Failures may be rehearsed: by a rehearsal, or by the header `x-tablero-rehearse` of a request.",
    is_in_catalog=True,
    label=_("Rehearsals"),
    explanation=_(
        "Allows rehearsing Azure's failures: throttling, lost answers, short pages and others. Never turn it on for "
        "production data."
    ),
    section="guard",
    is_in_files=False,
    after="read_only",
    switch=Switch(
        "rehearsals",
        "allow rehearsals of failures (on), or not (off)",
        "Failures may be rehearsed in {name}.",
        "Failures are not rehearsed in {name}.",
        shown_on="rehearsals",
    ),
)

SUBJECT = Subject(
    name="rehearsal",
    stands_on=("access", "accounts", "activity"),
    is_optional=True,
    api="storage.rehearsal.api",
    api_tags=("Rehearsals",),
    verbs=RehearsalVerb,
    words=(Word("rehearsal", "", "rehearsal:show", "rehearsal", label="set"),),
    reasons=RehearsalReason,
    account_settings=(_MAY_REHEARSE,),
    hooks={
        Hook.REHEARSER: "storage.rehearsal.rehearser.find",
        Hook.REHEARSAL_SETS: "storage.rehearsal.declared.DeclaredSets",
    },
    documents=("rehearse",),
    help_entries=(
        HelpEntry(
            "rehearse",
            _("Rehearse"),
            _("Fail as Azure does, and see how your clients behave."),
            after="testing",
        ),
    ),
    commands=(
        Command(
            "rehearse",
            CommandGroup.PEOPLE,
            "account",
            "Rehearse failures in an account, and report what its clients did.",
        ),
    ),
    has_commands=True,
    tidying={"rehearsals": "storage.rehearsal.rehearsals.tidy"},
    pages=(
        Page(
            Place.ACCOUNT,
            115,
            "rehearsal:index",
            _("Rehearse"),
            "flask-conical",
            section=Section.TRAFFIC,
            letter="E",
        ),
        Page(
            Place.ACCOUNT_SEARCH,
            45,
            "rehearsal:new_set",
            _("New set of rules"),
            "flask-conical",
            Capability.MANAGE_TABLES,
        ),
    ),
    parts=(
        Part(Slot.ACCOUNT_STATE, 10, "console/rehearsal/_band.html", "console.rehearsal.parts.find_running"),
        Part(
            Slot.REQUEST_FACTS, 10, "console/rehearsal/_fact.html", "console.rehearsal.parts.find_rehearsal"
        ),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.rehearsal.urls",),
)
