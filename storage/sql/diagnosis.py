"""What the database says about itself and its cluster."""

from typing import NamedTuple

from storage.sql.django import fetch


class About(NamedTuple):
    version: str
    size: int  # bytes
    is_standby: bool


def about() -> About:
    [found] = fetch(
        "SELECT current_setting('server_version'), pg_database_size(current_database()), pg_is_in_recovery()"
    )
    return About(*found)


def prepared_transactions(minutes: int) -> list[tuple[str, int]]:
    """Return the names of transactions that have been prepared for longer, with their ages in minutes."""
    return [
        (name, age)
        for name, age in fetch(
            "SELECT gid, (extract(epoch FROM now() - prepared) / 60)::integer FROM pg_prepared_xacts"
            " WHERE database = current_database() AND prepared < now() - make_interval(mins => %s) ORDER BY prepared",
            minutes,
        )
    ]


# of a coordinator


def citus_version() -> str:
    found = fetch("SELECT extversion FROM pg_extension WHERE extname = 'citus'")
    return str(found[0][0]) if found else "?"


def nodes() -> list[str]:
    """Return the addresses of the nodes that can have rows."""
    return _addresses(
        "SELECT nodename, nodeport FROM pg_dist_node"
        " WHERE noderole = 'primary' AND isactive AND shouldhaveshards ORDER BY nodename, nodeport"
    )


def unreachable_nodes() -> list[str]:
    return _addresses(
        # a node that is down reaches no other, which does not make the others unreachable
        "SELECT to_nodename, to_nodeport FROM citus_check_cluster_node_health()"
        " GROUP BY 1, 2 HAVING bool_and(result IS NOT TRUE) ORDER BY 1, 2"
    )


def _addresses(text: str) -> list[str]:
    return [f"{name}:{port}" for name, port in fetch(text)]


def distributed_by_hand() -> list[str]:
    """Return the relations of tables that are known to Citus by the names of local ones."""
    return [
        name
        for (name,) in fetch(
            "SELECT logicalrelid::text FROM pg_dist_partition"
            " WHERE logicalrelid::text ~ '^(deleted_)?entity_[0-9]+(_long)?$' ORDER BY 1"
        )
    ]
