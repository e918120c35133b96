"""Stand-ins of the functions of Citus that we call: they record the call, and leave a relation where it is.

So the form of a distributed relation is tested on PostgreSQL itself. Refusals of Citus are in test_cluster_rules.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from storage.cluster import relations
from storage.sql.django import execute, fetch

INSTALL = """
CREATE TABLE citus_call (number serial, call text);
CREATE TABLE pg_dist_partition (logicalrelid regclass, colocationid serial);
CREATE TABLE pg_dist_object (
    classid oid, objid oid, distribution_argument_index integer, colocationid integer, force_delegation boolean
);
CREATE TABLE pg_dist_node (
    nodename text, nodeport integer, noderole text, isactive boolean, shouldhaveshards boolean, is_up boolean
);
CREATE FUNCTION citus_check_cluster_node_health() RETURNS TABLE (
    from_nodename text, from_nodeport integer, to_nodename text, to_nodeport integer, result boolean
)
LANGUAGE sql AS $$
    SELECT a.nodename, a.nodeport, b.nodename, b.nodeport, CASE WHEN a.is_up THEN b.is_up END
    FROM pg_dist_node AS a, pg_dist_node AS b
$$;
CREATE TABLE pg_dist_shard_placement (shardid bigint, nodename text, nodeport integer);
CREATE TABLE pg_dist_placement (shardid bigint, groupid integer);
CREATE TABLE pg_dist_local_group (groupid integer);
-- two shards, of keys before and after m
CREATE FUNCTION get_shard_id_for_distribution_column(relation regclass, value text) RETURNS bigint
LANGUAGE sql AS $$ SELECT CASE WHEN value COLLATE "C" < 'm' THEN 1 ELSE 2 END $$;
CREATE FUNCTION citus_check_connection_to_node(name text, port integer) RETURNS boolean
LANGUAGE sql AS $$ SELECT is_up FROM pg_dist_node WHERE (nodename, nodeport) = (name, port) $$;
CREATE FUNCTION create_distributed_table(relation regclass, column_name text, colocate_with text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = relation) THEN
        RAISE EXCEPTION 'table % is already distributed', relation;
    END IF;
    INSERT INTO pg_dist_partition VALUES (relation);
    IF colocate_with <> 'none' THEN
        UPDATE pg_dist_partition SET colocationid = (
            SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass
        ) WHERE logicalrelid = relation;
    END IF;
    INSERT INTO citus_call (call) VALUES (format('table %s by %s beside %s', relation, column_name, colocate_with));
END $$;
CREATE FUNCTION undistribute_table(relation regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM pg_dist_partition WHERE logicalrelid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table % is not distributed', relation;
    END IF;
    INSERT INTO citus_call (call) VALUES (format('gather %s', relation));
END $$;
CREATE FUNCTION create_distributed_function(
    f regprocedure, argument text DEFAULT NULL, colocate_with text DEFAULT 'default',
    force_delegation boolean DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF argument IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass
    ) THEN
        RAISE EXCEPTION 'relation % is not distributed', colocate_with;
    END IF;
    INSERT INTO pg_dist_object VALUES (
        'pg_proc'::regclass, f, CASE WHEN argument IS NOT NULL THEN 0 END,
        (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid::text = colocate_with), force_delegation);
    INSERT INTO citus_call (call) VALUES (
        format('function %s by %s beside %s', split_part(f::text, '(', 1), argument, colocate_with));
END $$;
CREATE FUNCTION truncate_local_data_after_distributing_table(relation regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO citus_call (call) VALUES (format('free %s', relation));
END $$;
CREATE FUNCTION run_command_on_all_nodes(command text) RETURNS TABLE (nodeid integer, success boolean, result text)
LANGUAGE plpgsql AS $$
BEGIN
    nodeid := 1;
    success := true;
    -- the relation itself is its only shard
    EXECUTE replace(replace(command, '_[0-9]+$', '$'), '(relname,', '(relname || ''_102008'',') INTO result;
    RETURN NEXT;
END $$;
"""

REMOVE = """
DROP TABLE IF EXISTS citus_call, pg_dist_partition, pg_dist_object, pg_dist_node, pg_dist_shard_placement,
    pg_dist_placement, pg_dist_local_group CASCADE;
DROP FUNCTION IF EXISTS get_shard_id_for_distribution_column, citus_check_cluster_node_health,
    citus_check_connection_to_node, create_distributed_table, undistribute_table,
    create_distributed_function, truncate_local_data_after_distributing_table,
    run_command_on_all_nodes;
"""


def install():
    execute(INSTALL)


@contextmanager
def installed() -> Iterator[None]:
    """Install the stand-ins for a test with real transactions, and remove them, or they would affect other tests."""
    relations.can_distribute.cache_clear()
    install()
    try:
        yield
    finally:
        execute(REMOVE)
        relations.can_distribute.cache_clear()


def calls():
    """Return the calls since the last time, in order."""
    results = [call for (call,) in fetch("SELECT call FROM citus_call ORDER BY number")]
    execute("DELETE FROM citus_call")
    return results
