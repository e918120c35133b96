"""Declaration of the subject "cluster": see storage.core.registry."""

from datetime import timedelta
from typing import Final

from storage.core.relation_forms import Ability, Capabilities, Extension, RelationForm
from storage.core.setting import Setting, Switch
from storage.core.subject import (
    AccountSection,
    Command,
    CommandGroup,
    Examination,
    HelpEntry,
    Hook,
    JobTitle,
    Part,
    Periodic,
    Slot,
    Subject,
)
from storage.core.verbs import Act, Group, Verb
from storage.domain.refusals import AnyReason
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


class ClusterReason(AnyReason):
    """Reasons why tables cannot be distributed or gathered, and operations that distributed tables refuse."""

    DISTRIBUTED_HAS_NO_IMAGES = _(
        "The table %(table)s is distributed over several nodes and cannot be restored or made equal to another table."
    )
    DISTRIBUTED_HAS_NO_FEED = (
        "The table %(table)s is distributed over several nodes, so that its changes are in a feed of distributed tables"
        " only. Name the tables of the feed."
    )
    DISTRIBUTED_NOT_COMPARED = _(
        "The table %(table)s is distributed over several nodes and cannot be compared. Name the tables to compare."
    )
    DISTRIBUTED_NOT_COPIED = _(
        "The table %(table)s is distributed over several nodes and cannot be copied with others. Name the tables to"
        " copy."
    )
    DISTRIBUTED_NOT_IN_SNAPSHOT = _(
        "The table %(table)s is distributed over several nodes and cannot be part of a snapshot. Take a snapshot of the"
        " other tables."
    )
    NO_COORDINATOR_FOR_NEW_TABLES = _(
        "Tables can be distributed only in the database of a Citus coordinator."
    )
    NO_COORDINATOR = _("The database is not the coordinator of a Citus cluster.")
    NOT_DISTRIBUTED = _("The table %(table)s is not distributed.")
    ROWS_ARE_MOVED = _("The rows of the table %(table)s are being moved.")
    DISTRIBUTED_ALREADY = _("The table %(table)s is distributed already.")
    NO_COORDINATOR_YET = _(
        "The database is not the coordinator of a Citus cluster: see docs/cluster.md for what it needs."
    )
    INDEX_IN_THE_MAKING = _(
        "An index of %(table)s is being built, or its rows are being moved. Try again when that is done."
    )
    SNAPSHOT_JUST_TAKEN = _("A snapshot of %(table)s was just taken. Try again.")
    LONG_KEYS_NOT_DISTRIBUTED = _(
        "The table %(table)s has entities whose keys take more than 2,600 bytes, which can be on one node only."
    )
    DISTRIBUTION_FAILED = _("The table %(table)s could not be distributed: %(why)s")
    GATHERING_FAILED = _("The table %(table)s could not be brought back: %(why)s")
    LOCK_FAILED = _("The table %(table)s could not be locked: %(why)s")


_DISTRIBUTES: Final = Setting(
    "distributes",
    bool,
    "New tables are distributed over the nodes of the Citus cluster; 409 if there is none.",
    is_in_catalog=True,
    label=_("Distribute new tables"),
    explanation=_(
        "Distributes new tables over the nodes of the cluster. To distribute an existing table, open "
        "its Settings page, which lists the costs and limitations."
    ),
    section="cluster",
    is_in_files=False,  # it is about this server
    after="adaptive_indexes",
    switch=Switch(
        "distributes",
        "distribute new tables over the nodes of a Citus cluster (on), or not (off)",
        "New tables of {name} are distributed.",
        "New tables of {name} are local.",
        shown_on="distributes",
    ),
)
FORM: Final = RelationForm(
    prefix="distributed_",
    # its rows are on several nodes, each with a log and a history of its own
    capabilities=Capabilities(
        joins_partitions=False,
        records_in_account=False,
        has_past=False,
        merges_in_insert=False,
        has_long_keys=False,
        has_floor=False,
        is_measured_here=False,
    ),
    account_column="distributes",
    column="distributed",
    description="Whether its rows are on several nodes of a cluster.",
    rows_column="distributed_rows",
    bytes_column="distributed_bytes",
    since_column="distributed_since",
    operations="storage.cluster.relations",
    watch="storage.cluster.node_watch.NodeWatch",
    creation_wait=15.0,  # less than a request has
    # each is hundreds of files on every node, and a node that has crashed writes all of them to its disk before it
    # answers again
    most_deleted=20,
    longest_deleted=timedelta(days=1),
    unavailable=ClusterReason.NO_COORDINATOR_FOR_NEW_TABLES,
    lacks={
        Ability.IMAGES: ClusterReason.DISTRIBUTED_HAS_NO_IMAGES,
        Ability.FEED: ClusterReason.DISTRIBUTED_HAS_NO_FEED,
        Ability.COMPARISON: ClusterReason.DISTRIBUTED_NOT_COMPARED,
        Ability.COPY: ClusterReason.DISTRIBUTED_NOT_COPIED,
        Ability.SNAPSHOT: ClusterReason.DISTRIBUTED_NOT_IN_SNAPSHOT,
    },
    extension=Extension(
        "citus",
        # it would fail while a worker is down
        ddl_settings={"citus.enable_ddl_propagation": "off"},
        # A coordinator keeps connections to nodes, with which the first transaction after a restart of a node fails.
        # To open them for each transaction takes milliseconds, which do not count in these sessions.
        session_settings={"citus.max_cached_conns_per_worker": "0"},
        # There are no generic plans of most statements. A second connection to a node, which Citus makes for a page and
        # closes after it, takes more time than the shards of a page on one.
        key_settings={"plan_cache_mode": "auto", "citus.max_adaptive_executor_pool_size": "1"},
        # a read of all shards at once would keep the transaction from changing the relation and its function
        before_scan="SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
        # the coordinator keeps a connection of each session to each node, and notices with its next use that one is
        # lost
        renewal=(
            "SELECT count(citus_check_connection_to_node(nodename, nodeport)) FROM pg_dist_node"
            " WHERE noderole = 'primary' AND isactive"
        ),
        lost=("failure on connection", "postmaster was shut down"),
        moved="cache lookup failed for function",
        # the plan of one task is shown
        remote_plan=("Distributed Query", "Job", "Tasks", 0, "Remote Plan", 0, 0, "Plan"),
        remote_count=("Distributed Query", "Job", "Task Count"),
        everywhere="SELECT success, result FROM run_command_on_all_nodes($${command}$$)",
        dump_refusal=(
            "The database is a Citus cluster, whose nodes pg_dump does not read; back up each node with the tools"
            " of PostgreSQL."
        ),
    ),
)
SUBJECT = Subject(
    name="cluster",
    stands_on=("activity", "health", "jobs", "accounts", "history"),
    is_optional=True,
    api="storage.cluster.api",
    verbs=ClusterVerb,
    reasons=ClusterReason,
    account_settings=(_DISTRIBUTES,),
    relation_forms=(FORM,),
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
    hooks={Hook.SPREADS_TABLES: "storage.cluster.relations.can_distribute"},
    commands=(
        Command(
            "distribute", CommandGroup.TABLES, "branch", "Spread a table over the nodes of a Citus cluster."
        ),
        Command(
            "undistribute", CommandGroup.TABLES, "distribute", "Bring a distributed table back to one node."
        ),
    ),
    has_commands=True,
    account_sections=(AccountSection("cluster", "console/cluster/_account.html"),),
    documents=("cluster",),
    help_entries=(
        HelpEntry(
            "cluster",
            _("Cluster"),
            _("Distribute tables over the nodes of a Citus cluster."),
            after="consistency",
        ),
    ),
    urls=("console.cluster.urls",),
    examinations=(Examination("cluster", "tables", "storage.cluster.examination.examine"),),
    job_titles={
        "table.distribute": JobTitle(_("Bring %(table)s back"), _("Distribute %(table)s"), ("distributed",)),
    },
    jobs=("storage.cluster.distribution_jobs.DISTRIBUTION_JOB",),
)
