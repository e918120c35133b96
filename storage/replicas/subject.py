"""Declaration of the subject "replicas": see storage.core.registry."""

from storage.core.subject import AccountSection, Examination, HelpEntry, Hook, Page, Place, Section, Subject
from storage.core.variables import Variable
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="replicas",
    stands_on=("health",),
    is_optional=True,
    api="storage.replicas.api",
    pages=(
        Page(
            Place.SERVER,
            70,
            "replicas:index",
            _("Replicas"),
            "database",
            section=Section.SERVER,
            is_for_admins=True,
            is_wanted="storage.replicas.replicas.are_configured",
        ),
    ),
    hooks={
        Hook.READ_ROUTER: "storage.replicas.replicas.make_router",
        Hook.ACCOUNT_WARNINGS: "console.replicas.views.find_warnings",
    },
    examinations=(Examination("replicas", "jobs", "storage.replicas.examination.examine"),),
    variables=(
        Variable(
            "REPLICAS",
            "",
            "streaming replicas of DATABASE_URL (several: space)",
            "URL",
            separator=" ",
            alias="replica",
            after="OAUTH",
        ),
        Variable(
            "REPLICA_LAG",
            "30",
            "seconds by which a replica may be behind",
            "SECONDS",
            least=1,
            most=86_400,
            after="REPLICAS",
        ),
    ),
    account_sections=(
        AccountSection(
            "consistency", "console/replicas/_consistency.html", "console.replicas.consistency.values"
        ),
    ),
    api_tags=("Replicas",),
    help_entries=(
        HelpEntry(
            "deployment",
            _("Deployment in several regions"),
            _("Replicas, standby and failover, and what each level costs."),
            after="tracing",
        ),
        HelpEntry(
            "consistency",
            _("Consistency and replicas"),
            _("Consistency levels, session tokens and the secondary address."),
            after="deployment",
        ),
    ),
    urls=("console.replicas.urls",),
)
