"""Queries to the coordinator of a cluster: its version, its nodes, and the sizes of relations on them."""

import json
from collections.abc import Mapping
from typing import Final

from storage.sql.background import Size
from storage.sql.django import fetch

# the shards of a relation have its name and a number; the size of one that is being dropped is null
_SHARD_SIZES: Final = """
SELECT success, result FROM run_command_on_all_nodes($$
    SELECT coalesce(json_object_agg(relname, json_build_array(
        coalesce(pg_total_relation_size(oid), 0), greatest(reltuples, pg_stat_get_live_tuples(oid), 0))), '{}')
    FROM pg_class WHERE relkind = 'r' AND relname ~ '^(deleted_)?distributed_[0-9]+(_history)?_[0-9]+$'
$$)
"""


def distributed_sizes() -> Mapping[str, Size]:
    """Return the sizes of all distributed relations by name, with row estimates of the last ANALYZE."""
    sizes: dict[str, Size] = {}
    nodes = fetch(_SHARD_SIZES)
    for _, shards in nodes if all(is_up for is_up, _ in nodes) else ():
        for shard, (capacity, rows) in json.loads(shards).items():
            relation = shard.rpartition("_")[0]
            known = sizes.get(relation, Size(0, 0))
            sizes[relation] = Size(
                known.capacity + capacity, known.rows + round(rows), is_measured_here=False
            )
    return sizes


def citus_version() -> str:
    """Return the version of the Citus extension."""
    rows = fetch("SELECT extversion FROM pg_extension WHERE extname = 'citus'")
    return str(rows[0][0]) if rows else "?"


def nodes() -> list[str]:
    """Return the addresses of the nodes that can hold rows."""
    return _addresses(
        "SELECT nodename, nodeport FROM pg_dist_node"
        " WHERE noderole = 'primary' AND isactive AND shouldhaveshards ORDER BY nodename, nodeport"
    )


def unreachable_nodes() -> list[str]:
    """Return the nodes that other nodes cannot reach; hangs while a node does not respond at all."""
    return _addresses(
        # a node that is down reaches no other, which does not make the others unreachable
        "SELECT to_nodename, to_nodeport FROM citus_check_cluster_node_health()"
        " GROUP BY 1, 2 HAVING bool_and(result IS NOT TRUE) ORDER BY 1, 2"
    )


def _addresses(text: str) -> list[str]:
    return [f"{name}:{port}" for name, port in fetch(text)]


def distributed_by_hand() -> list[str]:
    """Return the entity relations that someone distributed with Citus by hand, under the names of local relations."""
    return [
        name
        for (name,) in fetch(
            "SELECT logicalrelid::text FROM pg_dist_partition"
            " WHERE logicalrelid::text ~ '^(deleted_)?entity_[0-9]+(_long)?$' ORDER BY 1"
        )
    ]
