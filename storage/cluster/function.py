"""The function that applies a change set to a distributed relation, on the node with its partition."""

from typing import Final

from storage.domain.values.kinds import AccountKind
from storage.sql import entities, moments
from storage.sql.batch import TEXT
from storage.sql.failures import IN_DISORDER
from storage.sql.forms import history_of, table_id_of
from storage.sql.history import Op

# It runs on the node that has the partition, where every statement must find the partition key as it was given. It
# writes the history beside the entities, in one transaction on one node. The result of a merge is computed before, so
# that each statement is a plain one by the primary key. They are planned with their values: with each use of a generic
# plan for a shard of its own node, Citus 14.0 makes another one and keeps all of them, 20 to 60 KB for each change.
_DELEGATED: Final = f"""
CREATE OR REPLACE FUNCTION {{relation}}_change_set(
    p text, places integer[], ops text[], rks text[], expecteds bigint[],
    propss jsonb[], annss text[], valss text[], gones text[], by_actor integer, in_request uuid
) RETURNS text[]
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    -- of all changes, so that there is no moment that has a part of them
    moment bigint;
    latest bigint;
    c record;
    failed integer;
    failure text;
    done bigint;
    applied bigint[] := '{{{{}}}}';
    problem text;
    inserted integer;
    op_of_all text := CASE WHEN cardinality(rks) > 1 AND ops[1] <> 'insert' AND ops[1] = ALL (ops) THEN ops[1] END;
    -- the entities that were found, and in the order of the changes what was there and what becomes of it
    found_rks text[];
    found_ts bigint[];
    found_anns text[];
    found_vals text[];
    found_props jsonb[];
    before_ts bigint[];
    before_anns text[];
    before_vals text[];
    after_props jsonb[];
    after_vals text[];
    is_refused boolean;
    -- an entity as it was, and what becomes of it
    was_ts bigint;
    was_anns text;
    was_vals text;
    new_rk text;
    new_props jsonb;
    new_vals text;
    recorded_op "char";
    inserted_rks text[];
BEGIN
    PERFORM {moments.WRITE.format(table_id="{table_id}")};
    -- A call that waited there while the relation was distributed was planned before, and would write from here, with
    -- the clock of this node. It is repeated, and then runs on the node with the partition.
    IF current_setting('application_name') NOT LIKE 'citus_internal%' AND to_regclass('pg_dist_placement') IS NOT NULL
    THEN
        IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = '{{relation}}'::regclass) THEN
            IF EXISTS (
                SELECT FROM pg_dist_placement
                WHERE shardid = get_shard_id_for_distribution_column('{{relation}}', p)
                    AND groupid <> (SELECT groupid FROM pg_dist_local_group)
            ) THEN
                RAISE EXCEPTION USING ERRCODE = '{IN_DISORDER}';
            END IF;
        END IF;
    END IF;
    IF cardinality(rks) = 1 AND coalesce(ops[1] = 'insert', true) THEN
        -- without what several changes need, which takes longer than the insertion
        moment := node_moment();
        new_rk := rks[1];
        new_props := propss[1];
        new_vals := CASE WHEN annss[1] IS NULL THEN valss[1] ELSE entity_content(annss[1], valss[1]) END;
        INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals)
        VALUES (p, new_rk, moment, new_props, '', new_vals)
        ON CONFLICT DO NOTHING
        RETURNING e.ts INTO done;
        IF done IS NULL THEN
            RETURN ARRAY['TB001', places[1] || ' EntityAlreadyExists'];
        END IF;
        IF by_actor IS NOT NULL THEN
            IF {moments.IS_OVERTAKEN} THEN
                SELECT max(h.ts) INTO latest FROM {{history}} AS h
                WHERE h.pk = p AND h.rk = new_rk AND h.ts >= moment AND h.op = '{Op.DELETE}';
                IF latest IS NOT NULL THEN
                    moment := greatest(latest + 1, node_moment());
                    UPDATE {{relation}} AS e SET ts = moment WHERE e.pk = p AND e.rk = new_rk;
                END IF;
            END IF;
            INSERT INTO {{history}} (pk, rk, ts, op, actor, request)
            VALUES (p, new_rk, moment, '{Op.INSERT}', by_actor, in_request);
        END IF;
        RETURN ARRAY[moment::text];
    END IF;
    IF ops IS NULL AND cardinality(rks) > 1 THEN
        moment := node_moment();
        -- all at once takes half the time; if one fails, the loop below finds out which
        BEGIN
            WITH done AS (
                INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
                SELECT p, rk, moment, props, '', {TEXT}
                FROM unnest(rks, propss, annss, valss) AS change (rk, props, anns, vals)
                ON CONFLICT DO NOTHING
                RETURNING 1
            )
            -- not ROW_COUNT, in which Citus counts the conflicts too
            SELECT count(*) INTO inserted FROM done;
            IF by_actor IS NOT NULL AND {moments.IS_OVERTAKEN} THEN
                SELECT max(h.ts) INTO latest FROM {{history}} AS h
                WHERE h.pk = p AND h.rk = ANY (rks) AND h.ts >= moment AND h.op = '{Op.DELETE}';
            END IF;
            IF inserted = cardinality(rks) AND latest IS NULL THEN
                IF by_actor IS NOT NULL THEN
                    INSERT INTO {{history}} (pk, rk, ts, op, actor, request)
                    SELECT p, rk, moment, '{Op.INSERT}'::"char", by_actor, in_request FROM unnest(rks) AS rk;
                END IF;
                RETURN array_fill(moment::text, ARRAY[inserted]);
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TB002';
        EXCEPTION WHEN SQLSTATE 'TB002' OR feature_not_supported OR internal_error THEN
            -- within a transaction, Citus may refuse what takes more than one step
            moment := NULL;
        END;
    END IF;
    IF ops IS NOT NULL THEN
        -- A shard that is being moved waits for transactions that have written to it, but not for those that have only
        -- locked rows: these would then write elsewhere, over the writes of others. Nothing has such a key.
        DELETE FROM {{relation}} AS e WHERE e.pk = p AND e.rk IS NULL;
    END IF;
    IF op_of_all IS NOT NULL THEN
        BEGIN
            SELECT array_agg(rk), array_agg(ts), array_agg(anns), array_agg(vals), array_agg(props)
            INTO found_rks, found_ts, found_anns, found_vals, found_props
            FROM (
                SELECT e.rk, e.ts, e.anns, e.vals, e.props FROM {{relation}} AS e
                WHERE e.pk = p AND e.rk = ANY (rks) ORDER BY e.rk FOR UPDATE
            ) AS found;
            moment := greatest(node_moment(), (SELECT max(was) + 1 FROM unnest(found_ts) AS was));
            SELECT array_agg(was_ts ORDER BY place), array_agg(was_anns ORDER BY place),
                array_agg(was_vals ORDER BY place), array_agg(coalesce(was_props || props, props) ORDER BY place),
                array_agg(text ORDER BY place),
                bool_or(CASE
                    WHEN was_ts IS NULL THEN op_of_all NOT IN ('upsert', 'upsert_merge')
                    WHEN was_ts <> expected THEN true
                    WHEN octet_length(text) < 1764 THEN false
                    ELSE {{excess_of_kind}}(p, rk, text) IS NOT NULL
                END)
            INTO before_ts, before_anns, before_vals, after_props, after_vals, is_refused
            FROM (
                SELECT place, c.rk, expected, props, was_ts, was_anns, was_vals,
                    CASE WHEN op_of_all IN ('merge', 'upsert_merge') THEN was_props END AS was_props,
                    CASE WHEN was_ts IS NOT NULL AND op_of_all IN ('merge', 'upsert_merge')
                        THEN {{merged_of_kind}} ELSE c.vals END AS text
                FROM (
                    SELECT place, rk, expected, props, {TEXT} AS vals, gone::text[] AS gone
                    FROM unnest(rks, expecteds, propss, annss, valss, gones) WITH ORDINALITY
                        AS change (rk, expected, props, anns, vals, gone, place)
                ) AS c
                LEFT JOIN unnest(found_rks, found_ts, found_anns, found_vals, found_props)
                    AS f (rk, was_ts, was_anns, was_vals, was_props) ON f.rk = c.rk
            ) AS change;
            IF is_refused THEN
                RAISE EXCEPTION USING ERRCODE = 'TB002';
            END IF;
            IF op_of_all = 'delete' THEN
                DELETE FROM {{relation}} AS e WHERE e.pk = p AND e.rk = ANY (rks);
                PERFORM raise_moment_floor(moment);
            ELSE
                IF found_rks IS NOT NULL THEN
                    INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals)
                    SELECT p, rk, moment, props, '', vals
                    FROM unnest(rks, after_props, after_vals, before_ts) AS change (rk, props, vals, was)
                    WHERE was IS NOT NULL
                    ON CONFLICT (pk, rk) DO UPDATE
                    SET ts = excluded.ts, props = excluded.props, anns = '', vals = excluded.vals;
                END IF;
                IF array_position(before_ts, NULL) IS NOT NULL THEN
                    WITH done AS (
                        INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
                        SELECT p, rk, moment, props, '', vals
                        FROM unnest(rks, after_props, after_vals, before_ts) AS change (rk, props, vals, was)
                        WHERE was IS NULL
                        ON CONFLICT DO NOTHING
                        RETURNING 1
                    )
                    SELECT count(*) INTO inserted FROM done;
                    IF by_actor IS NOT NULL AND {moments.IS_OVERTAKEN} THEN
                        SELECT max(h.ts) INTO latest FROM {{history}} AS h
                        WHERE h.pk = p AND h.rk = ANY (rks) AND h.ts >= moment AND h.op = '{Op.DELETE}';
                    END IF;
                    IF inserted + coalesce(cardinality(found_rks), 0) < cardinality(rks) OR latest IS NOT NULL THEN
                        RAISE EXCEPTION USING ERRCODE = 'TB002';
                    END IF;
                END IF;
            END IF;
            IF by_actor IS NOT NULL THEN
                INSERT INTO {{history}} (pk, rk, ts, was, actor, op, request, anns, vals)
                SELECT p, rk, moment, was, by_actor,
                    CASE WHEN was IS NULL THEN '{Op.INSERT}' WHEN op_of_all = 'delete' THEN '{Op.DELETE}'
                        ELSE '{Op.UPDATE}' END::"char",
                    in_request, anns, vals
                FROM unnest(rks, before_ts, before_anns, before_vals) AS change (rk, was, anns, vals);
            END IF;
            RETURN CASE WHEN op_of_all = 'delete' THEN before_ts::text[]
                ELSE array_fill(moment::text, ARRAY[cardinality(rks)]) END;
        EXCEPTION
        WHEN SQLSTATE 'TB002' OR cardinality_violation OR feature_not_supported OR internal_error THEN
            moment := NULL;
        END;
    END IF;
    LOOP
    -- a refusal is returned, not raised: Citus closes its connection to a node where a statement has failed
    BEGIN
    applied := '{{{{}}}}';
    latest := 0;
    FOR c IN
        SELECT i, coalesce(op, 'insert') AS op, rk, expected, props, {TEXT} AS vals, gone::text[] AS gone
        FROM unnest(places, ops, rks, expecteds, propss, annss, valss, gones)
            AS change (i, op, rk, expected, props, anns, vals, gone)
    LOOP
        done := NULL;
        problem := NULL;
        was_ts := NULL;
        was_anns := NULL;
        was_vals := NULL;
        LOOP
            IF c.op <> 'insert' THEN
                SELECT e.ts, e.anns, e.vals INTO was_ts, was_anns, was_vals
                FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk FOR UPDATE;
                EXIT WHEN was_ts IS NOT NULL OR c.op NOT IN ('upsert', 'upsert_merge');
            END IF;
            moment := coalesce(moment, node_moment());
            INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, moment, c.props, '', c.vals)
            ON CONFLICT DO NOTHING
            RETURNING e.ts INTO done;
            -- else another transaction has inserted it
            EXIT WHEN done IS NOT NULL OR c.op = 'insert';
        END LOOP;
        recorded_op := '{Op.INSERT}';
        IF done IS NOT NULL THEN
            inserted_rks := inserted_rks || c.rk;
        END IF;
        IF was_ts IS NOT NULL AND (c.expected IS NULL OR was_ts = c.expected) THEN
            -- after the lock, so that it is seldom earlier than what others have written meanwhile
            moment := coalesce(moment, greatest(node_moment(), was_ts + 1));
            latest := greatest(latest, was_ts + 1);
            CASE c.op
            WHEN 'replace', 'upsert' THEN
                recorded_op := '{Op.UPDATE}';
                UPDATE {{relation}} AS e SET ts = moment, props = c.props, anns = '', vals = c.vals
                WHERE e.pk = p AND e.rk = c.rk
                RETURNING e.ts INTO done;
            WHEN 'merge', 'upsert_merge' THEN
                recorded_op := '{Op.UPDATE}';
                new_vals := {{merged_of_kind}};
                IF octet_length(new_vals) >= 1764 THEN
                    problem := {{excess_of_kind}}(p, c.rk, new_vals);
                END IF;
                IF problem IS NULL THEN
                    UPDATE {{relation}} AS e SET ts = moment, props = e.props || c.props, anns = '',
                        vals = new_vals
                    WHERE e.pk = p AND e.rk = c.rk
                    RETURNING e.ts INTO done;
                END IF;
            WHEN 'delete' THEN
                recorded_op := '{Op.DELETE}';
                DELETE FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk
                RETURNING e.ts INTO done;
            END CASE;
        END IF;
        IF done IS NULL THEN
            problem := CASE
                WHEN c.op = 'insert' THEN 'EntityAlreadyExists'
                WHEN was_ts IS NULL THEN 'ResourceNotFound'
                WHEN was_ts <> c.expected THEN 'UpdateConditionNotSatisfied'
                ELSE problem
            END;
            -- the changes come in the order of their keys, but the first failure counts in the order of the request
            IF failed IS NULL OR c.i < failed THEN
                failed := c.i;
                failure := problem;
            END IF;
        ELSIF by_actor IS NOT NULL THEN
            INSERT INTO {{history}} (pk, rk, ts, was, actor, op, request, anns, vals)
            VALUES (p, c.rk, moment, was_ts, by_actor, recorded_op, in_request, was_anns, was_vals);
        END IF;
        applied := applied || done;
    END LOOP;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TB001';
    END IF;
    IF inserted_rks IS NOT NULL AND by_actor IS NOT NULL AND {moments.IS_OVERTAKEN} THEN
        SELECT greatest(latest, max(h.ts) + 1) INTO latest FROM {{history}} AS h
        WHERE h.pk = p AND h.rk = ANY (inserted_rks) AND h.ts >= moment AND h.op = '{Op.DELETE}';
    END IF;
    IF latest > moment THEN
        RAISE EXCEPTION USING ERRCODE = 'TB003';
    END IF;
    IF 'delete' = ANY (ops) THEN
        PERFORM raise_moment_floor(moment);
    END IF;
    RETURN applied::text[];
    EXCEPTION WHEN SQLSTATE 'TB001' THEN
        RETURN ARRAY['TB001', failed || ' ' || failure];
    WHEN SQLSTATE 'TB003' THEN
        moment := greatest(latest, node_moment());
        inserted_rks := NULL;
    END;
    END LOOP;
END
$$
"""


_MERGED_OF_KIND: Final = {
    AccountKind.STORAGE: "entity_merged(entity_content(was_anns, was_vals), c.vals, c.gone)",
    AccountKind.COSMOS: "entity_merged_in_place(entity_content(was_anns, was_vals), c.vals)",
}


def create_delegated_function(relation: str, kind: AccountKind) -> str:
    """Return SQL that creates the delegated function, called by storage.sql.batch like the one of a local relation."""
    return _DELEGATED.format(
        relation=relation,
        table_id=table_id_of(relation),
        history=history_of(relation),
        merged_of_kind=_MERGED_OF_KIND[kind],
        excess_of_kind=entities.EXCESS_FUNCTIONS[kind],
    )
