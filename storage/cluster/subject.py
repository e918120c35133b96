"""What the subject of tables over the nodes of a cluster contributes: see storage.core.registry."""

from storage.core.subject import (
    Command,
    CommandGroup,
    Examination,
    Hook,
    JobTitle,
    Part,
    Periodic,
    Slot,
    Subject,
)
from storage.core.verbs import Act, Group, Verb
from storage.domain.translation import mark as _


class ClusterVerb(Verb):
    # over the nodes of a cluster
    DISTRIBUTE = Act(
        "table.distribute",
        Group.TABLES,
        "database",
        _("%(who)s distributed the table %(table)s over the nodes of the cluster"),
        is_marked=True,
    )
    UNDISTRIBUTE = Act(
        "table.undistribute",
        Group.TABLES,
        "database",
        _("%(who)s brought the table %(table)s back to the coordinator"),
        is_marked=True,
    )


SUBJECT = Subject(
    name="cluster",
    stands_on=("activity", "health", "jobs", "accounts", "history"),
    is_optional=True,
    api="storage.cluster.api",
    verbs=ClusterVerb,
    periodic=(
        Periodic(
            "distribution",
            "storage.cluster.distribution.tidy",
            60.0,
            "Distributed tables could not be measured",
        ),
    ),
    parts=(
        Part(
            Slot.TABLE_SETTINGS, 10, "console/cluster/_card.html", values="console.cluster.views.card_values"
        ),
    ),
    hooks={Hook.SPREADS_TABLES: "storage.relations.table_relations.can_distribute"},
    commands=(
        Command("distribute", CommandGroup.TABLES, 11, "Spread a table over the nodes of a Citus cluster."),
        Command("undistribute", CommandGroup.TABLES, 12, "Bring a distributed table back to one node."),
    ),
    documents=("cluster",),
    urls=("console.cluster.urls",),
    examinations=(Examination("cluster", 7, "storage.cluster.examination.examine"),),
    job_titles={
        "table.distribute": JobTitle(_("Bring %(table)s back"), _("Distribute %(table)s"), ("distributed",)),
    },
    jobs=("storage.cluster.distribution_jobs.DISTRIBUTION_JOB",),
)
