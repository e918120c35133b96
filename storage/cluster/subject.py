"""What the subject of tables over the nodes of a cluster contributes: see storage.core.registry."""

from storage.core.subject import Examination, JobTitle, Periodic, Subject
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
    examinations=(Examination("cluster", 7, "storage.cluster.examination.examine"),),
    job_titles={
        "table.distribute": JobTitle(_("Bring %(table)s back"), _("Distribute %(table)s"), ("distributed",)),
    },
    jobs=("storage.cluster.distribution_jobs.DISTRIBUTION_JOB",),
)
