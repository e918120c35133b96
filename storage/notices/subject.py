"""Declaration of the subject "notices": see storage.core.registry."""

from datetime import timedelta

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Hook, Page, Periodic, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class NoticeVerb(Verb):
    WEBHOOK_CREATE = Act(
        "webhook.create", Group.SETTINGS, "bell", _("%(who)s created the webhook %(webhook)s")
    )
    WEBHOOK_CHANGE = Act(
        "webhook.change", Group.SETTINGS, "bell", _("%(who)s changed the webhook %(webhook)s")
    )
    WEBHOOK_DELETE = Act(
        "webhook.delete", Group.SETTINGS, "bell-off", _("%(who)s deleted the webhook %(webhook)s")
    )
    # whether there are notices of a kind, and from when on
    RULE = Act("notice.rule", Group.SETTINGS, "bell", _("%(who)s changed the notices of the kind %(notice)s"))


class WebhookNotice(NoticeKind):
    FAILING = Condition(
        "webhook.failing",
        _("Webhook fails"),
        _(
            "The webhook “%(webhook)s” has not accepted notices since %(failed_at)s: %(attempts)s attempts failed."
        ),
        Severity.ERROR,
        "{scope}notices/settings/",
        "storage.notices.conditions.find_failing_webhooks",
        capability=Capability.MANAGE_ACCESS,
    )


SUBJECT = Subject(
    name="notices",
    stands_on=("activity", "health", "accounts", "people"),
    verbs=NoticeVerb,
    notices=WebhookNotice,
    api="storage.notices.api",
    periodic=(
        Periodic(
            "deliveries",
            "storage.notices.delivery.deliver",
            5.0,
            "Notices could not be sent",
            is_exclusive=False,
            takes_time=False,
        ),
        Periodic(
            "notices",
            "storage.notices.evaluation.evaluate",
            60.0,
            "Notices could not be evaluated",
            late_after=timedelta(minutes=20),
        ),
    ),
    tidying={"notices": "storage.notices.evaluation.tidy"},
    hooks={Hook.RESEAL: "storage.notices.webhooks.reseal"},
    pages=(
        Page(
            Place.ACCOUNT, 120, "notices:account", _("Notices"), "bell", section=Section.TRAFFIC, letter="N"
        ),
        Page(Place.SERVER, 20, "notices:index", _("Notices"), "bell", letter="N"),
        Page(Place.ACCOUNT_SEARCH, 80, "notices:settings", _("Notice settings"), "bell", Capability.OWN),
        Page(Place.ACCOUNT_SEARCH, 90, "notices:webhook_new", _("New webhook"), "plus", Capability.OWN),
        Page(Place.SERVER_SEARCH, 60, "notices:personal", _("My notices"), "bell"),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.notices.urls",),
)
