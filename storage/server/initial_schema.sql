-- written by python3 -m tests.initial_schema
SET LOCAL check_function_bodies = off;


CREATE FUNCTION public.activity_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('tablero.tidying', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The record of activity is only added to.' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.close_moment(moment bigint, latest bigint, relation regclass) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF moment > coalesce(pg_sequence_last_value('moment_floor'::regclass), 0) THEN
        IF moment > greatest((CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END), least(latest, (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 + 936000000000 - 1)) THEN
            RETURN NULL;
        END IF;
        PERFORM raise_moment_floor(moment);
    END IF;
    RETURN ARRAY(
        SELECT l.virtualtransaction FROM pg_locks AS l
        WHERE l.locktype = 'relation' AND l.relation = close_moment.relation AND l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
            AND l.pid IS DISTINCT FROM pg_backend_pid()
            AND CASE WHEN l.pid IS NOT NULL THEN (
                SELECT coalesce(xact_start <= to_timestamp(moment / 10000000.0), true)
                FROM pg_stat_get_activity(l.pid)
            ) ELSE true END
    );
END
$$;

CREATE FUNCTION public.close_node_moment(moment bigint, table_id integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM node_moment();
    PERFORM raise_moment_floor(moment);
    IF moment > pg_sequence_last_value('moment_floor'::regclass) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT count(*) FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.classid = 1952542071 AND l.objid = table_id::oid AND l.objsubid = 2
            AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.pid IS DISTINCT FROM pg_backend_pid() AND CASE WHEN l.pid IS NOT NULL THEN (
                SELECT coalesce(xact_start <= to_timestamp(moment / 10000000.0), true)
                FROM pg_stat_get_activity(l.pid)
            ) ELSE true END
    );
END
$$;

CREATE FUNCTION public.cosmos_entity_excess(pk text, rk text, content text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 'EntityTooLarge'
    WHERE octet_length(pk) + octet_length(rk) + octet_length(
        regexp_replace(regexp_replace(content, '\t[^\t]*\t', '', 'g'), '\\u[0-9a-f]{4}', 'xxx', 'g')) > 2097152
$$;

CREATE FUNCTION public.cosmos_entity_excess(pk text, rk text, anns text, vals text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 'EntityTooLarge'
    WHERE octet_length(pk) + octet_length(rk)
        + octet_length(regexp_replace(vals, '\\u[0-9a-f]{4}', 'xxx', 'g')) > 2097152
$$;

CREATE FUNCTION public.create_table(of_account bigint, new_name text, new_folded text, about text, new_tags jsonb, note_at timestamp with time zone, note_verb text, note_account_name text, note_actor_kind text, note_actor text, note_address text, note_agent text, note_request_id text, note_detail jsonb, OUT new_id bigint, OUT created timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    began timestamptz := clock_timestamp();
BEGIN
    INSERT INTO storage_table (account_id, name, folded_name, created_at, description, tags, relation_pending)
    VALUES (of_account, new_name, new_folded, to_timestamp(((CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END) + 9) / 10 / 1000000.0), about, new_tags, true)
    ON CONFLICT DO NOTHING
    RETURNING id, created_at INTO new_id, created;
    IF new_id IS NULL THEN
        RETURN;
    END IF;
    IF clock_timestamp() - began >= interval '100 us' THEN
        -- it may have waited for the deletion of a table with this name
        created := to_timestamp(((CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END) + 9) / 10 / 1000000.0);
        UPDATE storage_table SET created_at = created WHERE id = new_id;
    END IF;
    INSERT INTO storage_activity (at, verb, account_name, actor_kind, actor, address, agent, request_id, detail, account_id, table_id, table_name)
    VALUES (note_at, note_verb, note_account_name, note_actor_kind, note_actor, note_address, note_agent, note_request_id, note_detail, of_account, new_id, new_name);
END
$$;

CREATE FUNCTION public.delete_table(of_account bigint, of_name text, most_kept integer, note_at timestamp with time zone, note_verb text, note_account_name text, note_actor_kind text, note_actor text, note_address text, note_agent text, note_request_id text, note_detail jsonb, OUT is_deleted boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    known record;
    gone record;
BEGIN
    -- A table whose relation is pending has nothing, and no other process has it in its catalog. As an integer, because
    -- PostgreSQL would look through the index of all such tables, which has the deleted ones too.
    UPDATE storage_table AS t SET deleted_at = to_timestamp(((CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END) + 9) / 10 / 1000000.0)
    WHERE t.account_id = of_account AND t.folded_name = of_name AND t.deleted_at IS NULL
        AND t.relation_pending::integer = 1
    RETURNING t.id, t.name, t.description, t.tags INTO known;
    is_deleted := FOUND;
    IF is_deleted THEN
        INSERT INTO storage_activity (at, verb, account_name, actor_kind, actor, address, agent, request_id, detail, account_id, table_id, table_name, before) VALUES (note_at, note_verb, note_account_name, note_actor_kind, note_actor, note_address, note_agent, note_request_id, note_detail, of_account, known.id, known.name,
            jsonb_build_object('description', known.description, 'tags', known.tags));
        RETURN;
    END IF;
    SELECT t.id, t.name, t.description, t.tags INTO known FROM storage_table AS t
    WHERE t.account_id = of_account AND t.folded_name = of_name AND t.deleted_at IS NULL
        AND NOT (t.distributed)
        AND NOT EXISTS (SELECT FROM storage_storedaccesspolicy AS p WHERE p.table_id = t.id);
    is_deleted := FOUND;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    SELECT * INTO gone FROM remove_table(known.id, NULL, most_kept);
    is_deleted := gone.is_deleted;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    IF gone.kept IS NOT NULL THEN
        note_detail := note_detail || jsonb_build_object('kept_days', extract(day FROM gone.kept)::integer);
    END IF;
    INSERT INTO storage_activity (at, verb, account_name, actor_kind, actor, address, agent, request_id, detail, account_id, table_id, table_name, before) VALUES (note_at, note_verb, note_account_name, note_actor_kind, note_actor, note_address, note_agent, note_request_id, note_detail, of_account, known.id, known.name,
            jsonb_build_object('description', known.description, 'tags', known.tags));
END
$$;

CREATE FUNCTION public.entity_content(anns text, vals text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
    IF anns = '' THEN
        RETURN vals;
    END IF;
    RETURN (
        SELECT coalesce(string_agg(
            CASE WHEN a.line IS NULL THEN E'\n' || v.line ELSE E'\n\t' || a.line || E'\t' || v.line END,
            '' ORDER BY v.place), '')
        FROM string_to_table(right(vals, -1), E'\n') WITH ORDINALITY AS v (line, place)
        LEFT JOIN string_to_table(right(anns, -1), E'\n') AS a (line)
            ON split_part(split_part(a.line, '"', 2), '@', 1) = split_part(v.line, '"', 2)
    );
END
$$;

CREATE FUNCTION public.entity_deleted_ahead(was bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    ticks bigint := greatest((CASE WHEN abs((date_part('epoch', statement_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', statement_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', statement_timestamp()) * 1000000)::bigint * 10) END), was + 1);
BEGIN
    IF ticks >= (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 THEN
        PERFORM raise_moment_floor(ticks);  -- the entity may be inserted again
    END IF;
    RETURN ticks;
END
$$;

CREATE FUNCTION public.entity_escaped(quoted text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN (
        SELECT string_agg(
            CASE
                WHEN token = '\u0000' THEN '\u0001\u0001'
                WHEN token = '\u0001' THEN '\u0001\u0002'
                WHEN token = '\ue000' THEN '\ue000\u0802'
                WHEN length(token) = 6 AND token ~ '^\\ud[89a-f]' THEN
                    '\ue000\u' || lpad(to_hex(('x' || right(token, 4))::bit(16)::integer - 55296 + 2), 4, '0')
                ELSE token
            END, '' ORDER BY place)
        FROM regexp_matches(quoted, '\\ud[89ab]..\\ud[c-f]..|\\u....|\\.|[^\\]+', 'g')
            WITH ORDINALITY AS found (tokens, place),
            LATERAL (SELECT tokens[1] AS token) AS first
    );
END
$$;

CREATE FUNCTION public.entity_excess(pk text, rk text, content text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    size bigint;
BEGIN
    -- every property is one line
    IF octet_length(content) - octet_length(replace(content, E'\n', '')) > 252 THEN
        RETURN 'TooManyProperties';
    END IF;
    IF octet_length(content) <= 500000 THEN
        RETURN NULL;
    END IF;
    WITH member AS (
        SELECT CASE WHEN starts_with(line, E'\t') THEN split_part(line, '"', 4) END AS type,
            CASE WHEN starts_with(line, E'\t') THEN split_part(line, E'\t', 3) ELSE line END AS line
        FROM string_to_table(right(content, -1), E'\n') AS line
    ), named AS (
        SELECT type, split_part(line, '"', 2) AS name, substr(line, strpos(line, ':') + 1) AS value FROM member
    ), measured AS (
        -- an escape of either form stands for one UTF-16 unit
        SELECT length(regexp_replace(name, '\\u[0-9a-f]{4}', 'x', 'g')) AS name_length,
               CASE
                   WHEN type = 'Edm.Guid' THEN 16
                   WHEN type = 'Edm.Binary' THEN octet_length(decode(trim(value, '"'), 'base64')) + 4
                   WHEN type IS NOT NULL THEN 8
                   WHEN value LIKE '"%' THEN
                       2 * (length(regexp_replace(value, '\\(u[0-9a-f]{4}|.)', 'x', 'g')) - 2) + 4
                   WHEN value IN ('true', 'false') THEN 1
                   WHEN value ~ '[.E]' THEN 8
                   ELSE 4
               END AS value_size
        FROM named
    )
    SELECT 4 + 2 * (entity_key_length(pk) + entity_key_length(rk)) + sum(8 + 2 * name_length + value_size)
    INTO size FROM measured;
    IF size > 1048576 THEN
        RETURN 'EntityTooLarge';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.entity_excess(pk text, rk text, anns text, vals text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    size bigint;
BEGIN
    -- every property is one line
    IF octet_length(vals) - octet_length(replace(vals, E'\n', '')) > 252 THEN
        RETURN 'TooManyProperties';
    END IF;
    IF octet_length(vals) <= 500000 THEN
        RETURN NULL;
    END IF;
    WITH line AS (
        SELECT split_part(l, '"', 2) AS name, substr(l, strpos(l, ':') + 1) AS value
        FROM string_to_table(substr(vals, 2), E'\n') AS l
    ), annotation AS (
        SELECT split_part(split_part(l, '"', 2), '@', 1) AS name, split_part(l, '"', 4) AS type
        FROM string_to_table(substr(anns, 2), E'\n') AS l
    ), measured AS (
        -- an escape of either form stands for one UTF-16 unit
        SELECT length(regexp_replace(name, '\\u[0-9a-f]{4}', 'x', 'g')) AS name_length,
               CASE
                   WHEN type = 'Edm.Guid' THEN 16
                   WHEN type = 'Edm.Binary' THEN octet_length(decode(trim(value, '"'), 'base64')) + 4
                   WHEN type IS NOT NULL THEN 8
                   WHEN value LIKE '"%' THEN
                       2 * (length(regexp_replace(value, '\\(u[0-9a-f]{4}|.)', 'x', 'g')) - 2) + 4
                   WHEN value IN ('true', 'false') THEN 1
                   WHEN value ~ '[.E]' THEN 8
                   ELSE 4
               END AS value_size
        FROM line LEFT JOIN annotation USING (name)
    )
    SELECT 4 + 2 * (entity_key_length(pk) + entity_key_length(rk)) + sum(8 + 2 * name_length + value_size)
    INTO size FROM measured;
    IF size > 1048576 THEN
        RETURN 'EntityTooLarge';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.entity_key_hash(pk text, rk text) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT sha256(convert_to(length(pk) || ' ' || pk || rk, 'UTF8'))
$$;

CREATE FUNCTION public.entity_key_length(key text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    -- UTF-16 units: an astral character counts twice
    SELECT length(key) + length(regexp_replace(key, '[\u0001-\uffff]', '', 'g'))
$$;

CREATE FUNCTION public.entity_keyed_hash(secret bytea, value text) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT sha256(secret || sha256(secret || convert_to(value, 'UTF8')))
$$;

CREATE FUNCTION public.entity_make_room(relation text, p text, r text, place integer) RETURNS void
    LANGUAGE plpgsql
    AS $_$
BEGIN
    IF to_regclass(relation || '_long') IS NULL THEN
        EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', relation);
        IF to_regclass(relation || '_long') IS NULL THEN
            EXECUTE format('
                CREATE TABLE %2$I () INHERITS (%1$I) WITH (
                    toast_tuple_target = 4080,
                    autovacuum_vacuum_scale_factor = 0.05,
                    autovacuum_vacuum_insert_scale_factor = 0.05,
                    autovacuum_analyze_scale_factor = 0.02
                );
                CREATE UNIQUE INDEX ON %2$I (entity_key_hash(pk, rk));
                CREATE INDEX ON %2$I USING hash (pk);
                CREATE INDEX ON %2$I USING hash (rk);
                CREATE INDEX ON %2$I USING gin (props jsonb_path_ops)',
                relation, relation || '_long');
        END IF;
    END IF;
    EXECUTE format('
        WITH old AS (DELETE FROM ONLY %I WHERE pk = $1 AND rk = $2 RETURNING *)
        INSERT INTO %I SELECT * FROM old',
        relation, relation || '_long') USING p, r;
EXCEPTION WHEN feature_not_supported OR wrong_object_type THEN
    -- a distributed relation has no children
    RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = place || ' KeyValueTooLarge';
END
$_$;

CREATE FUNCTION public.entity_masked(names text[], members text[], masks text[], constants text[], secret bytea, INOUT props jsonb, INOUT content text) RETURNS record
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    original text;
    kind text;
    hash bytea;
    digits text;
    number text;
    masked text;
    projected jsonb;
    written text;
    type text;
BEGIN
    FOR i IN 1 .. cardinality(names) LOOP
        original := props ->> names[i];
        CONTINUE WHEN original IS NULL;
        -- the type of a number is in its scale: see storage.domain.values.encoding.project
        kind := CASE jsonb_typeof(props -> names[i])
            WHEN 'string' THEN left(original, 1)
            WHEN 'boolean' THEN '?'
            WHEN 'number' THEN CASE
                WHEN original LIKE '%.00' AND original <> '0.000' THEN '6'
                WHEN strpos(original, '.') = 0 AND length(original) < 12 THEN '3'
                ELSE 'n'
            END
        END;
        IF masks[i] IN ('hash', 'name', 'email', 'phone') THEN
            hash := entity_keyed_hash(secret, CASE kind WHEN 's' THEN substr(original, 2) ELSE original END);
            digits := encode(hash, 'hex');
        END IF;
        masked := NULL;
        projected := NULL;
        CASE masks[i]
        WHEN 'remove' THEN
            NULL;
        WHEN 'constant' THEN
            masked := constants[i];
        WHEN 'name' THEN
            masked := entity_masked_name(hash);
            IF kind = 's' AND masked = substr(original, 2) THEN
                masked := entity_masked_name(substr(hash, 3));
            END IF;
        WHEN 'email' THEN
            masked := 'u' || left(digits, 12) || '@example.com';
        WHEN 'phone' THEN
            masked := entity_masked_phone(CASE kind WHEN 's' THEN substr(original, 2) ELSE original END, digits);
        WHEN 'hash' THEN
            number := ('x' || left(digits, 7))::bit(28)::integer::text;
            CASE kind
            WHEN '3' THEN projected := to_jsonb(number::integer); written := number;
            WHEN '6' THEN projected := (number || '.00')::jsonb; written := '"' || number || '"';
            WHEN 'n' THEN projected := (number || '.0')::jsonb; written := number || '.0';
            WHEN 'g' THEN
                projected := to_jsonb('g' || left(digits, 32)::uuid);
                written := '"' || left(digits, 32)::uuid || '"';
            WHEN '?' THEN projected := 'false'; written := 'false';
            ELSE masked := 'h:' || left(digits, 20);
            END CASE;
        WHEN 'blank' THEN
            CASE kind
            WHEN '3' THEN projected := '0'; written := '0';
            WHEN '6' THEN projected := '0.00'; written := '"0"';
            WHEN 'n' THEN projected := '0.0'; written := '0.0';
            WHEN '?' THEN projected := 'false'; written := 'false';
            WHEN 'g' THEN
                projected := '"g00000000-0000-0000-0000-000000000000"';
                written := '"00000000-0000-0000-0000-000000000000"';
            WHEN 't' THEN projected := '"t2000-01-01T00:00:00.0000000"'; written := '"2000-01-01T00:00:00Z"';
            WHEN 'b' THEN projected := '"b"'; written := '""';
            ELSE masked := '';
            END CASE;
        END CASE;
        IF masked IS NOT NULL THEN
            projected := to_jsonb('s' || masked);
            written := '"' || masked || '"';
        END IF;
        IF projected IS NULL THEN
            props := props - names[i];
            content := entity_with_line(content, members[i], '');
        ELSE
            props := props || jsonb_build_object(names[i], projected);
            type := CASE WHEN masked IS NULL THEN
                CASE kind WHEN '6' THEN 'Int64' WHEN 'g' THEN 'Guid' WHEN 't' THEN 'DateTime' WHEN 'b' THEN 'Binary' END
            END;
            content := entity_with_line(
                content, members[i],
                E'\n' || coalesce(E'\t,' || left(members[i], -1) || '@odata.type":"Edm.' || type || E'"\t', '')
                    || ',' || members[i] || ':' || written);
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION public.entity_masked(names text[], starts text[], annotation_starts text[], masks text[], constants text[], secret bytea, INOUT props jsonb, INOUT anns text, INOUT vals text) RETURNS record
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    original text;
    kind text;
    hash bytea;
    digits text;
    number text;
    masked text;
    projected jsonb;
    written text;
BEGIN
    FOR i IN 1 .. cardinality(names) LOOP
        original := props ->> names[i];
        CONTINUE WHEN original IS NULL;
        -- the type of a number is in its scale: see storage.domain.values.encoding.project
        kind := CASE jsonb_typeof(props -> names[i])
            WHEN 'string' THEN left(original, 1)
            WHEN 'boolean' THEN '?'
            WHEN 'number' THEN CASE
                WHEN original LIKE '%.00' AND original <> '0.000' THEN '6'
                WHEN strpos(original, '.') = 0 AND length(original) < 12 THEN '3'
                ELSE 'n'
            END
        END;
        IF masks[i] IN ('hash', 'name', 'email', 'phone') THEN
            hash := entity_keyed_hash(secret, CASE kind WHEN 's' THEN substr(original, 2) ELSE original END);
            digits := encode(hash, 'hex');
        END IF;
        masked := NULL;
        projected := NULL;
        CASE masks[i]
        WHEN 'remove' THEN
            NULL;
        WHEN 'constant' THEN
            masked := constants[i];
        WHEN 'name' THEN
            masked := entity_masked_name(hash);
            IF kind = 's' AND masked = substr(original, 2) THEN
                masked := entity_masked_name(substr(hash, 3));
            END IF;
        WHEN 'email' THEN
            masked := 'u' || left(digits, 12) || '@example.com';
        WHEN 'phone' THEN
            masked := entity_masked_phone(CASE kind WHEN 's' THEN substr(original, 2) ELSE original END, digits);
        WHEN 'hash' THEN
            number := ('x' || left(digits, 7))::bit(28)::integer::text;
            CASE kind
            WHEN '3' THEN projected := to_jsonb(number::integer); written := number;
            WHEN '6' THEN projected := (number || '.00')::jsonb; written := '"' || number || '"';
            WHEN 'n' THEN projected := (number || '.0')::jsonb; written := number || '.0';
            WHEN 'g' THEN
                projected := to_jsonb('g' || left(digits, 32)::uuid);
                written := '"' || left(digits, 32)::uuid || '"';
            WHEN '?' THEN projected := 'false'; written := 'false';
            ELSE masked := 'h:' || left(digits, 20);
            END CASE;
        WHEN 'blank' THEN
            CASE kind
            WHEN '3' THEN projected := '0'; written := '0';
            WHEN '6' THEN projected := '0.00'; written := '"0"';
            WHEN 'n' THEN projected := '0.0'; written := '0.0';
            WHEN '?' THEN projected := 'false'; written := 'false';
            WHEN 'g' THEN
                projected := '"g00000000-0000-0000-0000-000000000000"';
                written := '"00000000-0000-0000-0000-000000000000"';
            WHEN 't' THEN projected := '"t2000-01-01T00:00:00.0000000"'; written := '"2000-01-01T00:00:00Z"';
            WHEN 'b' THEN projected := '"b"'; written := '""';
            ELSE masked := '';
            END CASE;
        END CASE;
        IF masked IS NOT NULL THEN
            projected := to_jsonb('s' || masked);
            written := '"' || masked || '"';
        END IF;
        IF projected IS NULL THEN
            props := props - names[i];
            vals := entity_replaced_line(vals, starts[i], '');
        ELSE
            props := props || jsonb_build_object(names[i], projected);
            vals := entity_replaced_line(vals, starts[i], starts[i] || written);
        END IF;
        -- a Double has one only if it is not finite
        IF anns <> '' AND (masked IS NOT NULL OR projected IS NULL OR kind = 'n') THEN
            anns := entity_replaced_line(anns, annotation_starts[i], '');
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION public.entity_masked_key(value text, secret bytea) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 'h:' || left(encode(entity_keyed_hash(secret, value), 'hex'), 20)
$$;

CREATE FUNCTION public.entity_masked_name(hash bytea) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT split_part(
        'Ada Ahmet Aiko Alma Amara Anders Aylin Bao Berk Bianca Carla Cem Chen Clara Daniel '
        'Deniz Diego Elif Elena Emeka Emil Emre Fatma Felix Freya Gita Hana Hugo Ida Ines Ivan '
        'Jana Jonas Kemal Keiko Lale Lars Leila Lena Li Lucas Maja Marta Mei Merve Milan Mina '
        'Nadia Nils Noor Olga Omar Pablo Priya Rafael Rosa Sami Selin Sofia Tariq Uma Vera Yusuf '
        'Zeynep',
        ' ', get_byte(hash, 0) % 64 + 1) || ' ' || split_part(
        'Acar Adeyemi Aksoy Alvarez Andersen Arslan Aydin Bauer Becker Bianchi Bose Castro Chen '
        'Costa Dahl Demir Diaz Dogan Eriksen Farouk Fischer Fontana Garcia Gupta Haddad Hansen '
        'Ito Ivanov Jansen Kaplan Kaya Keller Kim Kovac Kumar Larsen Lehmann Lin Lopez Mancini '
        'Meyer Mori Nakamura Novak Nowak Okafor Olsen Ortiz Ozturk Park Patel Petrov Reyes Rossi '
        'Sahin Santos Sato Schmidt Silva Tanaka Vogel Wang Weber Yilmaz',
        ' ', get_byte(hash, 1) % 64 + 1)
$$;

CREATE FUNCTION public.entity_masked_phone(value text, hash text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    digits text := translate(hash, 'abcdef', '024680');
    written text := '';
    symbol text;
    place integer := 0;
BEGIN
    IF length(regexp_replace(value, '[^0-9]', '', 'g')) < 5 OR length(value) > 40 THEN
        RETURN '+00' || left(digits, 10);
    END IF;
    FOREACH symbol IN ARRAY string_to_array(value, NULL) LOOP
        IF symbol BETWEEN '0' AND '9' THEN
            place := place + 1;
            IF place > 2 OR NOT starts_with(value, '+') THEN
                symbol := substr(digits, place, 1);
            END IF;
        ELSIF symbol NOT IN ('+', ' ', '-', '(', ')', '.') THEN
            symbol := ' ';
        END IF;
        written := written || symbol;
    END LOOP;
    RETURN written;
END
$$;

CREATE FUNCTION public.entity_merged(content text, change text, gone text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, '' ORDER BY replace(name, '\u', '~') COLLATE "C"), '')
        FROM string_to_table(right(change || content, -1), E'\n') WITH ORDINALITY AS member (line, place),
            split_part(split_part(line, '"', 2), '@', 1) AS name
        WHERE place <= cardinality(gone) OR name <> ALL (gone)
    );
END
$$;

CREATE FUNCTION public.entity_merged_in_place(content text, change text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, '' ORDER BY first), '')
        FROM (
            SELECT DISTINCT ON (name) line, min(place) OVER (PARTITION BY name) AS first
            FROM (
                SELECT line, place, split_part(split_part(line, '"', 2), '@', 1) AS name
                FROM string_to_table(right(content || change, -1), E'\n') WITH ORDINALITY AS member (line, place)
            ) AS named
            ORDER BY name, place DESC
        ) AS latest
    );
END
$$;

CREATE FUNCTION public.entity_projection(content text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    line text;
    name text;
    value text;
    type text;
    members text := '';
BEGIN
    FOREACH line IN ARRAY string_to_array(right(content, -1), E'\n') LOOP
        type := '';
        IF starts_with(line, E'\t') THEN
            type := substr(split_part(line, '"', 4), 5);
            line := split_part(line, E'\t', 3);
        END IF;
        name := split_part(line, '"', 2);
        value := substr(line, length(name) + 5);
        members := members || ',"' || name || '":' || CASE
            WHEN type = '' THEN CASE
                WHEN starts_with(value, '"') THEN
                    CASE WHEN strpos(value, '\u') > 0 AND value ~ '\\u(0000|0001|e000|d[89a-f])'
                        THEN '"s' || substr(entity_escaped(value), 2) ELSE '"s' || substr(value, 2) END
                WHEN value = '-0.0' THEN '0.000'
                WHEN strpos(value, 'E') > 0 THEN
                    value::numeric || CASE WHEN scale(value::numeric) = 0 THEN '.0' ELSE '' END
                ELSE value END
            WHEN type = 'DateTime' THEN
                '"t' || rpad(trim('"Z' FROM value) || CASE WHEN strpos(value, '.') = 0 THEN '.' ELSE '' END, 27, '0')
                || '"'
            WHEN type = 'Int64' THEN trim('"' FROM value) || '.00'
            WHEN type = 'Guid' THEN '"g' || substr(value, 2)
            WHEN type = 'Binary' THEN
                '"b' || encode(decode(trim('"' FROM value), 'base64'), 'hex') || '"'
            ELSE CASE value WHEN '"Infinity"' THEN '1e400' WHEN '"-Infinity"' THEN '-1e400' ELSE '"n"' END
            END;
    END LOOP;
    RETURN ('{' || substr(members, 2) || '}')::jsonb;
END
$$;

CREATE FUNCTION public.entity_projection(anns text, vals text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    line text;
    name text;
    value text;
    type text := '';
    members text := '';
BEGIN
    FOREACH line IN ARRAY string_to_array(substr(vals, 4), E'\n,"') LOOP
        name := split_part(line, '"', 1);
        value := substr(line, length(name) + 3);
        IF anns <> '' THEN
            type := split_part(split_part(anns, ',"' || name || '@odata.type":"Edm.', 2), '"', 1);
        END IF;
        members := members || ',"' || name || '":' || CASE
            WHEN type = '' THEN CASE
                WHEN starts_with(value, '"') THEN
                    CASE WHEN strpos(value, '\u') > 0 AND value ~ '\\u(0000|0001|e000|d[89a-f])'
                        THEN '"s' || substr(entity_escaped(value), 2) ELSE '"s' || substr(value, 2) END
                WHEN value = '-0.0' THEN '0.000'
                WHEN strpos(value, 'E') > 0 THEN
                    value::numeric || CASE WHEN scale(value::numeric) = 0 THEN '.0' ELSE '' END
                ELSE value END
            WHEN type = 'DateTime' THEN
                '"t' || rpad(trim('"Z' FROM value) || CASE WHEN strpos(value, '.') = 0 THEN '.' ELSE '' END, 27, '0')
                || '"'
            WHEN type = 'Int64' THEN trim('"' FROM value) || '.00'
            WHEN type = 'Guid' THEN '"g' || substr(value, 2)
            WHEN type = 'Binary' THEN
                '"b' || encode(decode(trim('"' FROM value), 'base64'), 'hex') || '"'
            ELSE CASE value WHEN '"Infinity"' THEN '1e400' WHEN '"-Infinity"' THEN '-1e400' ELSE '"n"' END
            END;
    END LOOP;
    RETURN ('{' || substr(members, 2) || '}')::jsonb;
END
$$;

CREATE FUNCTION public.entity_replaced_line(lines text, start text, line text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    first integer := strpos(lines, start);
    rest text;
    stop integer;
BEGIN
    IF first = 0 THEN
        RETURN lines;
    END IF;
    rest := substr(lines, first + 1);
    stop := strpos(rest, E'\n');
    RETURN left(lines, first - 1) || line || CASE WHEN stop = 0 THEN '' ELSE substr(rest, stop) END;
END
$$;

CREATE FUNCTION public.entity_with_line(content text, member text, line text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    first integer := strpos(content, E'\n,' || member || ':');
    length integer;
BEGIN
    IF first = 0 THEN
        first := strpos(content, E'\n\t,' || left(member, -1) || '@odata.type":');
    END IF;
    IF first = 0 THEN
        RETURN content;
    END IF;
    length := strpos(substr(content, first + 1), E'\n');
    RETURN left(content, first - 1) || line || CASE WHEN length = 0 THEN '' ELSE substr(content, first + length) END;
END
$$;

CREATE FUNCTION public.entity_without(lines text, gone text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN (
        SELECT coalesce(string_agg(E'\n' || line, ''), '')
        FROM string_to_table(substr(lines, 2), E'\n') AS line
        -- between the first two quotation marks: a name, or a name with what it is annotated with
        WHERE split_part(split_part(line, '"', 2), '@', 1) <> ALL (gone)
    );
END
$$;

CREATE FUNCTION public.keep_moment_floor() RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    floor bigint;
    noted bigint;
    ticks bigint;
    is_remembered boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(1952542054);
    floor := coalesce(pg_sequence_last_value('moment_floor'::regclass), 0);
    noted := coalesce(pg_sequence_last_value('moment_noted'::regclass), 0);
    ticks := (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10;  -- read last: if it is earlier than one that was noted, it has been set back
    is_remembered := floor < coalesce(pg_sequence_last_value('moment_jump_to'::regclass), 0) + 25920000000000;
    IF ticks >= noted THEN
        IF noted > 0 AND ticks > noted + 936000000000 THEN
            IF NOT is_remembered THEN
                PERFORM setval('moment_jump_from', noted + 300000000);
            END IF;
            PERFORM setval('moment_jump_to', ticks);
        END IF;
        PERFORM setval('moment_noted', ticks);
        IF ticks - 1 > floor THEN
            PERFORM setval('moment_floor', ticks - 1);
        END IF;
    ELSIF floor > ticks + 936000000000 AND is_remembered AND ticks >= coalesce(pg_sequence_last_value('moment_jump_from'::regclass), 0) - 300000000 THEN
        PERFORM setval('moment_noted', ticks);
        PERFORM setval('moment_floor', greatest(ticks, coalesce(pg_sequence_last_value('moment_jump_from'::regclass), 0)) - 1);
    ELSIF noted + 300000000 - 1 > floor THEN
        PERFORM setval('moment_floor', noted + 300000000 - 1);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TB005';
EXCEPTION WHEN SQLSTATE 'TB005' THEN
    NULL;
END
$$;

CREATE FUNCTION public.make_relation(of_table bigint, ddl text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM storage_table WHERE id = of_table AND relation_pending AND deleted_at IS NULL FOR NO KEY UPDATE;
    IF FOUND THEN
        EXECUTE ddl;
        UPDATE storage_table SET relation_pending = false WHERE id = of_table;
    END IF;
END
$$;

CREATE FUNCTION public.next_moment(ticks bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    floor bigint := coalesce(pg_sequence_last_value('moment_floor'::regclass), 0);
    noted bigint := coalesce(pg_sequence_last_value('moment_noted'::regclass), 0);
    clock bigint := (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10;  -- read last, as above
BEGIN
    IF ticks > floor + 500000
        OR clock < noted AND (floor < noted + 300000000 - 1 OR floor > clock + 936000000000)
    THEN
        PERFORM keep_moment_floor();
    END IF;
    RETURN greatest(ticks, pg_sequence_last_value('moment_floor'::regclass) + 1);
END
$$;

CREATE FUNCTION public.node_moment() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END);
EXCEPTION WHEN undefined_table THEN  -- the node is new
    PERFORM pg_advisory_xact_lock(1952542054);
    CREATE SEQUENCE IF NOT EXISTS moment_floor AS bigint MINVALUE 0 START 0;
    CREATE SEQUENCE IF NOT EXISTS moment_noted AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS moment_jump_from AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS moment_jump_to AS bigint MINVALUE 0 START 0;
    RETURN (CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END);
END
$$;

CREATE FUNCTION public.raise_moment_floor(ticks bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF ticks > coalesce(pg_sequence_last_value('moment_floor'::regclass), 0) AND ticks < (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 + 936000000000 THEN
        PERFORM pg_advisory_xact_lock(1952542054);
        IF ticks > coalesce(pg_sequence_last_value('moment_floor'::regclass), 0) THEN
            PERFORM setval('moment_floor', ticks);
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'TB005';
    END IF;
EXCEPTION WHEN SQLSTATE 'TB005' THEN
    NULL;
END
$$;

CREATE FUNCTION public.remove_table(of_table bigint, keep interval, most_kept integer, OUT is_deleted boolean, OUT kept interval) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    known record;
    relation text := 'entity_' || of_table;
    deleted text := 'deleted_entity_' || of_table;
    has_long boolean;
    is_used boolean := false;
    present timestamptz;
BEGIN
    SELECT t.account_id, t.folded_name, t.relation_pending, a.history_days INTO known
    FROM storage_table AS t JOIN storage_account AS a ON a.id = t.account_id
    WHERE t.id = of_table AND t.deleted_at IS NULL FOR UPDATE OF t;
    is_deleted := FOUND;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    IF NOT known.relation_pending THEN
        IF NOT pg_try_advisory_xact_lock(1952539245, of_table::integer) THEN
            PERFORM * FROM (
SELECT pg_cancel_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = 1952539245 AND objid = of_table
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
) AS cancelled;
        END IF;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', relation, deleted);
        has_long := to_regclass(relation || '_long') IS NOT NULL;
        IF has_long THEN
            EXECUTE format('ALTER TABLE %I RENAME TO %I', relation || '_long', deleted || '_long');
        END IF;
        IF keep IS NULL AND (has_long OR pg_relation_size(deleted::regclass) > 0) THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %I)', deleted) INTO is_used;
        END IF;
    END IF;
    kept := keep;
    -- while the relation is locked, so that a reader of the past waits for it: see storage.sql.moments
    present := to_timestamp(((CASE WHEN abs((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 - pg_sequence_last_value('moment_floor'::regclass) - 250000) < 250000 THEN (date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10 ELSE next_moment((date_part('epoch', clock_timestamp()) * 1000000)::bigint * 10) END) + 9) / 10 / 1000000.0);
    IF is_used AND known.history_days > 0 THEN
        kept := make_interval(days => known.history_days);
        -- clients that make and delete tables all day may not fill the disk
        UPDATE storage_table SET kept_until = present WHERE id IN (
            SELECT id FROM storage_table WHERE account_id = known.account_id AND kept_until > present
            ORDER BY deleted_at DESC OFFSET most_kept - 1
        );
    END IF;
    UPDATE storage_table SET deleted_at = present, kept_until = present + kept WHERE id = of_table;
    PERFORM pg_notify('tablero_catalog', 'table ' || known.account_id || ' ' || known.folded_name);
END
$$;

CREATE FUNCTION public.series_requests(counts jsonb) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT coalesce(sum((kind ->> 3)::bigint), 0)::bigint FROM jsonb_array_elements(counts -> 0) AS kind
$$;

CREATE TABLE public.account_emailaddress (
    id integer NOT NULL,
    email character varying(254) NOT NULL,
    verified boolean NOT NULL,
    "primary" boolean NOT NULL,
    user_id bigint NOT NULL
);

ALTER TABLE public.account_emailaddress ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.account_emailaddress_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.account_emailconfirmation (
    id integer NOT NULL,
    created timestamp with time zone NOT NULL,
    sent timestamp with time zone,
    key character varying(64) NOT NULL,
    email_address_id integer NOT NULL
);

ALTER TABLE public.account_emailconfirmation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.account_emailconfirmation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);

ALTER TABLE public.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL
);

ALTER TABLE public.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL
);

ALTER TABLE public.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_bookmark (
    id bigint NOT NULL,
    is_starred boolean NOT NULL,
    opened_at timestamp with time zone,
    table_id bigint NOT NULL,
    user_id bigint NOT NULL
);

ALTER TABLE public.console_bookmark ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_bookmark_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_cache (
    cache_key character varying(255) NOT NULL,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);

CREATE TABLE public.console_columnlayout (
    id bigint NOT NULL,
    name character varying(64) NOT NULL,
    tables character varying(64) NOT NULL,
    columns jsonb NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    user_id bigint
);

ALTER TABLE public.console_columnlayout ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_columnlayout_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_invitation (
    id bigint NOT NULL,
    token_hash character varying(64) NOT NULL,
    note character varying(150) NOT NULL,
    is_admin boolean NOT NULL,
    role smallint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    account_id bigint,
    invited_by_id bigint NOT NULL,
    user_id bigint,
    CONSTRAINT console_invitation_role_check CHECK ((role >= 0))
);

ALTER TABLE public.console_invitation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_invitation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_membership (
    id bigint NOT NULL,
    role smallint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    user_id bigint NOT NULL,
    given_by character varying(200) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT console_membership_role_check CHECK ((role >= 0))
);

ALTER TABLE public.console_membership ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_membership_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_propertyorder (
    table_id bigint NOT NULL,
    names jsonb NOT NULL,
    widths jsonb NOT NULL
);

CREATE TABLE public.console_recentquery (
    id bigint NOT NULL,
    digest bytea NOT NULL,
    text text NOT NULL,
    used_at timestamp with time zone NOT NULL,
    table_id bigint NOT NULL,
    user_id bigint NOT NULL
);

ALTER TABLE public.console_recentquery ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_recentquery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_savedquery (
    id bigint NOT NULL,
    table_name character varying(63) NOT NULL,
    slug character varying(64) NOT NULL,
    name character varying(64) NOT NULL,
    description text NOT NULL,
    content jsonb NOT NULL,
    is_shared boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    owner_id bigint,
    deleted_at timestamp with time zone
);

ALTER TABLE public.console_savedquery ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_savedquery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_savedqueryversion (
    id bigint NOT NULL,
    number integer NOT NULL,
    content jsonb NOT NULL,
    author character varying(150) NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    query_id bigint NOT NULL,
    CONSTRAINT console_savedqueryversion_number_check CHECK ((number >= 0))
);

ALTER TABLE public.console_savedqueryversion ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_savedqueryversion_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_savedurl (
    key character varying(24) CONSTRAINT console_storedstate_key_not_null NOT NULL,
    state text CONSTRAINT console_storedstate_state_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT console_storedstate_created_at_not_null NOT NULL,
    used_at timestamp with time zone CONSTRAINT console_storedstate_used_at_not_null NOT NULL,
    account_id bigint
);

CREATE TABLE public.console_setup (
    id bigint NOT NULL,
    token_hashes jsonb NOT NULL,
    done_at timestamp with time zone
);

ALTER TABLE public.console_setup ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_setup_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.console_user (
    id bigint NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    username character varying(150) NOT NULL,
    is_admin boolean NOT NULL,
    is_active boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    language character varying(16) NOT NULL,
    time_zone character varying(64) NOT NULL,
    theme character varying(16) NOT NULL,
    density character varying(16) NOT NULL,
    edit_mode character varying(8) NOT NULL,
    shortcuts boolean NOT NULL,
    admin_given_by character varying(200) DEFAULT ''::character varying NOT NULL,
    hides_presence boolean DEFAULT false NOT NULL,
    temporary_password_until timestamp with time zone
);

ALTER TABLE public.console_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.console_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL
);

ALTER TABLE public.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);

ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL
);

CREATE TABLE public.entity_template (
    pk text NOT NULL COLLATE pg_catalog."C",
    rk text NOT NULL COLLATE pg_catalog."C",
    ts bigint NOT NULL,
    props jsonb NOT NULL,
    anns text NOT NULL,
    vals text NOT NULL
);

CREATE SEQUENCE public.history_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.mfa_authenticator (
    id bigint NOT NULL,
    type character varying(20) NOT NULL,
    data jsonb NOT NULL,
    user_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone
);

ALTER TABLE public.mfa_authenticator ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.mfa_authenticator_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE public.moment_floor
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE SEQUENCE public.moment_jump_from
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE SEQUENCE public.moment_jump_to
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE SEQUENCE public.moment_noted
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.socialaccount_socialaccount (
    id integer NOT NULL,
    provider character varying(200) NOT NULL,
    uid character varying(191) NOT NULL,
    last_login timestamp with time zone NOT NULL,
    date_joined timestamp with time zone NOT NULL,
    extra_data jsonb NOT NULL,
    user_id bigint NOT NULL
);

ALTER TABLE public.socialaccount_socialaccount ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.socialaccount_socialaccount_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.socialaccount_socialapp (
    id integer NOT NULL,
    provider character varying(30) NOT NULL,
    name character varying(40) NOT NULL,
    client_id character varying(191) NOT NULL,
    secret character varying(191) NOT NULL,
    key character varying(191) NOT NULL,
    provider_id character varying(200) NOT NULL,
    settings jsonb NOT NULL
);

ALTER TABLE public.socialaccount_socialapp ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.socialaccount_socialapp_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.socialaccount_socialtoken (
    id integer NOT NULL,
    token text NOT NULL,
    token_secret text NOT NULL,
    expires_at timestamp with time zone,
    account_id integer NOT NULL,
    app_id integer
);

ALTER TABLE public.socialaccount_socialtoken ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.socialaccount_socialtoken_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_account (
    id bigint NOT NULL,
    name character varying(24) NOT NULL,
    primary_key_sealed bytea NOT NULL,
    secondary_key_sealed bytea NOT NULL,
    enabled boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    service_properties jsonb,
    shared_key_access boolean NOT NULL,
    networks jsonb NOT NULL,
    colour character varying(7) NOT NULL,
    description text NOT NULL,
    label character varying(64) NOT NULL,
    protected boolean NOT NULL,
    read_only boolean NOT NULL,
    expires_at timestamp with time zone,
    labels jsonb NOT NULL,
    frozen_at timestamp with time zone,
    request_digest character varying(64) NOT NULL,
    kind character varying(7) DEFAULT 'storage'::character varying NOT NULL,
    adaptive_indexes boolean DEFAULT true NOT NULL,
    history_days smallint DEFAULT 7 NOT NULL,
    history_bytes bigint,
    consistency character varying(16) DEFAULT 'Strong'::character varying NOT NULL,
    max_staleness integer DEFAULT 5 NOT NULL,
    distributes boolean DEFAULT false NOT NULL,
    snapshot_limit integer,
    saved_query_limit integer,
    sas_limit integer,
    may_rehearse boolean DEFAULT false NOT NULL,
    strictness character varying(16) DEFAULT 'friendly'::character varying NOT NULL,
    CONSTRAINT storage_account_history_days_check CHECK ((history_days >= 0)),
    CONSTRAINT storage_account_max_staleness_check CHECK ((max_staleness >= 0)),
    CONSTRAINT storage_account_sas_limit_check CHECK ((sas_limit >= 0)),
    CONSTRAINT storage_account_saved_query_limit_check CHECK ((saved_query_limit >= 0)),
    CONSTRAINT storage_account_snapshot_limit_check CHECK ((snapshot_limit >= 0))
);

ALTER TABLE public.storage_account ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_account_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_activity (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    verb character varying(32) NOT NULL,
    account_name character varying(24) NOT NULL,
    table_name character varying(255) NOT NULL,
    actor_kind character varying(8) NOT NULL,
    actor character varying(256) NOT NULL,
    address character varying(64) NOT NULL,
    agent character varying(256) NOT NULL,
    request_id character varying(64) NOT NULL,
    detail jsonb NOT NULL,
    before jsonb,
    after jsonb,
    account_id bigint,
    table_id bigint,
    undoes_id bigint,
    entities integer DEFAULT 0 NOT NULL,
    keys jsonb,
    recorded jsonb,
    CONSTRAINT storage_activity_entities_check CHECK ((entities >= 0))
);

ALTER TABLE public.storage_activity ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_activity_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_analyticsprogress (
    account_id bigint NOT NULL,
    minute timestamp with time zone,
    hour timestamp with time zone,
    capacity timestamp with time zone
);

CREATE TABLE public.storage_apitoken (
    id bigint NOT NULL,
    name character varying(64) NOT NULL,
    scope character varying(8) NOT NULL,
    digest character varying(64) NOT NULL,
    prefix character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    last_used_from character varying(64) NOT NULL,
    revoked_at timestamp with time zone,
    account_id bigint,
    user_id bigint NOT NULL,
    window_requests integer NOT NULL,
    window_started_at timestamp with time zone,
    CONSTRAINT storage_apitoken_window_requests_check CHECK ((window_requests >= 0))
);

ALTER TABLE public.storage_apitoken ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_apitoken_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_blockedtoken (
    id bigint NOT NULL,
    fingerprint character varying(64) NOT NULL,
    author character varying(150) NOT NULL,
    blocked_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_blockedtoken ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_blockedtoken_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_branch (
    account_id bigint NOT NULL,
    source_name character varying(24) NOT NULL,
    snapshot_name character varying(64) NOT NULL,
    at timestamp with time zone NOT NULL,
    masking jsonb NOT NULL,
    originals jsonb NOT NULL,
    actor_kind character varying(8) NOT NULL,
    actor character varying(256) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    reset_at timestamp with time zone,
    reset_entities bigint NOT NULL,
    reset_seconds double precision NOT NULL,
    origin_id bigint,
    source_id bigint,
    is_whole boolean DEFAULT true NOT NULL
);

CREATE TABLE public.storage_comment (
    id bigint NOT NULL,
    thread_id bigint NOT NULL,
    author_id bigint,
    author_name character varying(256) NOT NULL,
    text text NOT NULL,
    former_text text,
    created_at timestamp with time zone NOT NULL,
    edited_at timestamp with time zone,
    deleted_at timestamp with time zone
);

ALTER TABLE public.storage_comment ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_comment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_commentmention (
    id bigint NOT NULL,
    comment_id bigint NOT NULL,
    user_id bigint NOT NULL,
    seen_at timestamp with time zone
);

ALTER TABLE public.storage_commentmention ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_commentmention_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_commentthread (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    table_id bigint NOT NULL,
    subject character varying(8) NOT NULL,
    partition_key text NOT NULL,
    row_key text NOT NULL,
    query bigint,
    digest bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    resolved_by character varying(256) NOT NULL
);

ALTER TABLE public.storage_commentthread ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_commentthread_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_copiedtable (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    is_outgoing boolean NOT NULL,
    service text NOT NULL,
    source character varying(255) NOT NULL,
    target character varying(255) NOT NULL,
    job bigint NOT NULL,
    progress jsonb NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.storage_copiedtable ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_copiedtable_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_credentialuse (
    id bigint NOT NULL,
    authentication character varying(16) NOT NULL,
    name character varying(256) NOT NULL,
    hour timestamp with time zone NOT NULL,
    address character varying(64) NOT NULL,
    agent character varying(256) NOT NULL,
    process character varying(16) NOT NULL,
    count bigint NOT NULL,
    last_used_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_credentialuse ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_credentialuse_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_databaseversion (
    id bigint NOT NULL,
    writer integer NOT NULL,
    release character varying(32) NOT NULL,
    CONSTRAINT storage_databaseversion_writer_check CHECK ((writer >= 0))
);

ALTER TABLE public.storage_databaseversion ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_databaseversion_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_entitychange (
    id bigint NOT NULL,
    place integer NOT NULL,
    partition_key text NOT NULL,
    row_key text NOT NULL,
    key_digest bytea NOT NULL,
    before text,
    after text,
    ticks_before bigint,
    ticks_after bigint,
    activity_id bigint NOT NULL,
    table_id bigint NOT NULL,
    CONSTRAINT storage_entitychange_place_check CHECK ((place >= 0))
);

ALTER TABLE public.storage_entitychange ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_entitychange_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_entitymove (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    partition_key text NOT NULL,
    row_key text NOT NULL,
    new_partition_key text NOT NULL,
    new_row_key text NOT NULL,
    moved_at timestamp with time zone NOT NULL,
    has_comments boolean NOT NULL
);

ALTER TABLE public.storage_entitymove ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_entitymove_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_feedmark (
    id bigint NOT NULL,
    snapshot text NOT NULL,
    next_xid bigint NOT NULL,
    changes bigint NOT NULL,
    at bigint NOT NULL
);

ALTER TABLE public.storage_feedmark ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_feedmark_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_historyactor (
    id integer NOT NULL,
    kind character varying(8) NOT NULL,
    name character varying(256) NOT NULL,
    address character varying(64) NOT NULL,
    agent character varying(256) NOT NULL,
    token character varying(64) NOT NULL
);

ALTER TABLE public.storage_historyactor ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_historyactor_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_historysegment (
    id bigint NOT NULL,
    number integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    packed boolean NOT NULL,
    dropped_at timestamp with time zone,
    last_xid bigint,
    account_id bigint NOT NULL,
    cluster bigint,
    CONSTRAINT storage_historysegment_number_check CHECK ((number >= 0))
);

ALTER TABLE public.storage_historysegment ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_historysegment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_importdraft (
    id bigint NOT NULL,
    table_name character varying(63) NOT NULL,
    owner character varying(256) NOT NULL,
    file_name character varying(255) NOT NULL,
    size bigint NOT NULL,
    wishes text NOT NULL,
    mapping text NOT NULL,
    mode character varying(7) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    check_job_id bigint,
    file_id bigint,
    job_id bigint
);

ALTER TABLE public.storage_importdraft ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_importdraft_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_issuedtoken (
    id bigint NOT NULL,
    fingerprint character varying(64) NOT NULL,
    kind character varying(8) NOT NULL,
    table_name character varying(255) NOT NULL,
    parameters jsonb NOT NULL,
    label character varying(64) NOT NULL,
    purpose text NOT NULL,
    owner character varying(150) NOT NULL,
    author character varying(150) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_issuedtoken ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_issuedtoken_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_job (
    name character varying(32) NOT NULL,
    done_at timestamp with time zone NOT NULL
);

CREATE TABLE public.storage_jobfile (
    id bigint NOT NULL,
    name character varying(255) NOT NULL,
    content_type character varying(127) NOT NULL,
    owner character varying(256) NOT NULL,
    size bigint NOT NULL,
    is_complete boolean NOT NULL,
    is_result boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    account_id bigint,
    job_id bigint
);

ALTER TABLE public.storage_jobfile ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_jobfile_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_jobfilepiece (
    id bigint NOT NULL,
    start bigint NOT NULL,
    content bytea NOT NULL,
    file_id bigint NOT NULL
);
ALTER TABLE ONLY public.storage_jobfilepiece ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE public.storage_jobfilepiece ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_jobfilepiece_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_jobs (
    id bigint NOT NULL,
    kind character varying(32) NOT NULL,
    table_name character varying(255) NOT NULL,
    actor jsonb NOT NULL,
    request_id uuid NOT NULL,
    arguments jsonb NOT NULL,
    state jsonb,
    status character varying(9) NOT NULL,
    wish character varying(6) NOT NULL,
    steps bigint NOT NULL,
    attempts smallint NOT NULL,
    done bigint NOT NULL,
    total bigint,
    rate double precision NOT NULL,
    counts jsonb NOT NULL,
    failed bigint NOT NULL,
    failures jsonb NOT NULL,
    result jsonb NOT NULL,
    error text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    stepped_at timestamp with time zone,
    ended_at timestamp with time zone,
    seen_at timestamp with time zone,
    account_id bigint,
    activity_id bigint,
    table_id bigint,
    starter bigint,
    starter_token bigint,
    CONSTRAINT storage_jobs_attempts_check CHECK ((attempts >= 0))
);

ALTER TABLE public.storage_jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_keyedrequest (
    id bigint NOT NULL,
    key character varying(255) NOT NULL,
    digest character varying(64) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    token_id bigint NOT NULL
);

ALTER TABLE public.storage_keyedrequest ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_keyedrequest_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_keyrotation (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    number smallint NOT NULL,
    rotated_at timestamp with time zone NOT NULL,
    CONSTRAINT storage_keyrotation_number_check CHECK ((number >= 0))
);

ALTER TABLE public.storage_keyrotation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_keyrotation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_notice (
    id bigint NOT NULL,
    kind character varying(32) NOT NULL,
    account_id bigint,
    user_id bigint,
    subject character varying(128) NOT NULL,
    severity character varying(8) NOT NULL,
    facts jsonb NOT NULL,
    news character varying(64) NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    news_at timestamp with time zone NOT NULL,
    found_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone
);

ALTER TABLE public.storage_notice ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_notice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_noticedelivery (
    id bigint NOT NULL,
    webhook_id bigint,
    user_id bigint,
    notice_id bigint,
    event character varying(8) NOT NULL,
    message_id uuid NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    attempts smallint NOT NULL,
    status smallint,
    error character varying(256) NOT NULL,
    delivered_at timestamp with time zone,
    CONSTRAINT storage_noticedelivery_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT storage_noticedelivery_status_check CHECK ((status >= 0))
);

ALTER TABLE public.storage_noticedelivery ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_noticedelivery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_noticemute (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    account_id bigint,
    kind character varying(32) NOT NULL,
    subject character varying(128),
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE public.storage_noticemute ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_noticemute_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_noticereader (
    user_id bigint NOT NULL,
    seen_at timestamp with time zone,
    address character varying(254) NOT NULL,
    confirmed_at timestamp with time zone,
    code_digest character varying(64) NOT NULL,
    code_expires_at timestamp with time zone,
    code_attempts smallint NOT NULL,
    CONSTRAINT storage_noticereader_code_attempts_check CHECK ((code_attempts >= 0))
);

CREATE TABLE public.storage_noticerule (
    id bigint NOT NULL,
    account_id bigint,
    kind character varying(32) NOT NULL,
    is_on boolean NOT NULL,
    threshold double precision
);

ALTER TABLE public.storage_noticerule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_noticerule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_oldrows (
    table_id bigint NOT NULL,
    last jsonb
);

CREATE UNLOGGED TABLE public.storage_presence (
    id bigint NOT NULL,
    tab uuid NOT NULL,
    user_id bigint NOT NULL,
    table_id bigint NOT NULL,
    process character varying(16) NOT NULL,
    entity text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

ALTER TABLE public.storage_presence ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_presence_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_propertyindex (
    id bigint NOT NULL,
    name character varying(255) NOT NULL,
    state character varying(8) NOT NULL,
    origin character varying(8) NOT NULL,
    error text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    scans bigint NOT NULL,
    table_id bigint NOT NULL,
    reason jsonb
);

ALTER TABLE public.storage_propertyindex ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_propertyindex_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_propertyscans (
    id bigint NOT NULL,
    name character varying(255) NOT NULL,
    day date NOT NULL,
    scans bigint NOT NULL,
    seconds double precision NOT NULL,
    table_id bigint NOT NULL,
    filter text DEFAULT ''::text NOT NULL
);

ALTER TABLE public.storage_propertyscans ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_propertyscans_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_queryshape (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    table_id bigint NOT NULL,
    day date NOT NULL,
    digest character varying(32) NOT NULL,
    shape text NOT NULL,
    path character varying(16) NOT NULL,
    client character varying(128) NOT NULL,
    requests bigint NOT NULL,
    entities bigint NOT NULL
);

ALTER TABLE public.storage_queryshape ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_queryshape_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_recordedrequest (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    request_id uuid NOT NULL,
    client_request_id character varying(128) NOT NULL,
    outcome character varying(7) NOT NULL,
    status smallint NOT NULL,
    error character varying(64) NOT NULL,
    operation character varying(32) NOT NULL,
    method character varying(16) NOT NULL,
    table_name character varying(255) NOT NULL,
    path text NOT NULL,
    options jsonb NOT NULL,
    seconds double precision NOT NULL,
    ingress bigint NOT NULL,
    egress bigint NOT NULL,
    authentication character varying(16) NOT NULL,
    credential character varying(256) NOT NULL,
    address character varying(64) NOT NULL,
    agent character varying(256) NOT NULL,
    version character varying(16) NOT NULL,
    access_path character varying(16) NOT NULL,
    candidates jsonb,
    fault jsonb,
    report jsonb,
    alike integer NOT NULL,
    account_id bigint NOT NULL,
    CONSTRAINT storage_recordedrequest_alike_check CHECK ((alike >= 0)),
    CONSTRAINT storage_recordedrequest_status_check CHECK ((status >= 0))
);

ALTER TABLE public.storage_recordedrequest ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_recordedrequest_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_rehearsal (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    set_name character varying(64) NOT NULL,
    rules jsonb NOT NULL,
    table_name character varying(255) NOT NULL,
    seed bigint NOT NULL,
    scale double precision NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    stopped_at timestamp with time zone,
    started_by jsonb NOT NULL
);

ALTER TABLE public.storage_rehearsal ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_rehearsal_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_rehearsalclient (
    id bigint NOT NULL,
    rehearsal_id bigint NOT NULL,
    agent character varying(256) NOT NULL,
    credential character varying(256) NOT NULL,
    requests bigint NOT NULL,
    matches jsonb NOT NULL
);

ALTER TABLE public.storage_rehearsalclient ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_rehearsalclient_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_rehearsalrate (
    id bigint NOT NULL,
    rehearsal_id bigint NOT NULL,
    rule smallint NOT NULL,
    scope character varying(64) NOT NULL,
    level double precision NOT NULL,
    exceeded boolean NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT storage_rehearsalrate_rule_check CHECK ((rule >= 0))
);

ALTER TABLE public.storage_rehearsalrate ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_rehearsalrate_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_rehearsalset (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    name character varying(64) NOT NULL,
    description text NOT NULL,
    rules jsonb NOT NULL
);

ALTER TABLE public.storage_rehearsalset ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_rehearsalset_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_rehearsedrequest (
    id bigint NOT NULL,
    rehearsal_id bigint NOT NULL,
    client_id bigint NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    request_id uuid NOT NULL,
    exchange jsonb NOT NULL
);

ALTER TABLE public.storage_rehearsedrequest ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_rehearsedrequest_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_requestcount (
    id bigint NOT NULL,
    process character varying(16) NOT NULL,
    minutes smallint NOT NULL,
    period timestamp with time zone NOT NULL,
    secondary boolean NOT NULL,
    operation character varying(32) NOT NULL,
    authentication character varying(16) NOT NULL,
    status smallint NOT NULL,
    error character varying(64) NOT NULL,
    requests bigint NOT NULL,
    ingress bigint NOT NULL,
    egress bigint NOT NULL,
    server_time double precision NOT NULL,
    total_time double precision NOT NULL,
    latencies jsonb NOT NULL,
    account_id bigint NOT NULL,
    CONSTRAINT storage_requestcount_minutes_check CHECK ((minutes >= 0)),
    CONSTRAINT storage_requestcount_status_check CHECK ((status >= 0))
);

ALTER TABLE public.storage_requestcount ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_requestcount_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_requestseries (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    minutes smallint NOT NULL,
    period timestamp with time zone NOT NULL,
    process character varying(16) NOT NULL,
    counts jsonb NOT NULL,
    account_id bigint NOT NULL,
    requests bigint GENERATED ALWAYS AS (public.series_requests(counts)) STORED,
    CONSTRAINT storage_requestseries_minutes_check CHECK ((minutes >= 0))
);

ALTER TABLE public.storage_requestseries ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_requestseries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_retiredkey (
    id bigint NOT NULL,
    number smallint NOT NULL,
    sealed bytea NOT NULL,
    retired_at timestamp with time zone NOT NULL,
    accepted_until timestamp with time zone NOT NULL,
    account_id bigint NOT NULL,
    CONSTRAINT storage_retiredkey_number_check CHECK ((number >= 0))
);

ALTER TABLE public.storage_retiredkey ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_retiredkey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_seencredential (
    id bigint NOT NULL,
    authentication character varying(16) NOT NULL,
    name character varying(256) NOT NULL,
    parameters jsonb NOT NULL,
    first_used_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone NOT NULL,
    address character varying(64) NOT NULL,
    agent character varying(256) NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_seencredential ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_seencredential_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_shortlink (
    key character varying(16) NOT NULL,
    account_id bigint NOT NULL,
    address text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL
);

CREATE TABLE public.storage_sizesample (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    entities bigint NOT NULL,
    size bigint NOT NULL,
    history bigint NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_sizesample ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_sizesample_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_snapshot (
    id bigint NOT NULL,
    name character varying(64) NOT NULL,
    reason character varying(8) NOT NULL,
    is_whole boolean NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    visible text NOT NULL,
    ticks bigint NOT NULL,
    service_properties jsonb,
    actor_kind character varying(8) NOT NULL,
    actor character varying(256) NOT NULL,
    account_id bigint NOT NULL
);

ALTER TABLE public.storage_snapshot ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_snapshot_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_snapshotschedule (
    account_id bigint NOT NULL,
    hour smallint NOT NULL,
    weekday smallint,
    keep smallint NOT NULL,
    next_at timestamp with time zone NOT NULL,
    CONSTRAINT storage_snapshotschedule_hour_check CHECK ((hour >= 0)),
    CONSTRAINT storage_snapshotschedule_keep_check CHECK ((keep >= 0)),
    CONSTRAINT storage_snapshotschedule_weekday_check CHECK ((weekday >= 0))
);

CREATE TABLE public.storage_snapshottable (
    id bigint NOT NULL,
    name character varying(255) NOT NULL,
    folded_name character varying(255) NOT NULL,
    description text NOT NULL,
    tags jsonb NOT NULL,
    throughput integer NOT NULL,
    policies jsonb NOT NULL,
    entities bigint NOT NULL,
    size bigint NOT NULL,
    is_copied boolean NOT NULL,
    snapshot_id bigint NOT NULL,
    table_id bigint NOT NULL,
    CONSTRAINT storage_snapshottable_throughput_check CHECK ((throughput >= 0))
);

ALTER TABLE public.storage_snapshottable ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_snapshottable_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_storedaccesspolicy (
    id bigint NOT NULL,
    place smallint NOT NULL,
    identifier character varying(64) NOT NULL,
    has_policy boolean NOT NULL,
    start character varying(28),
    expiry character varying(28),
    permission character varying(8),
    table_id bigint NOT NULL,
    CONSTRAINT storage_storedaccesspolicy_place_check CHECK ((place >= 0))
);

ALTER TABLE public.storage_storedaccesspolicy ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_storedaccesspolicy_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_table (
    id bigint NOT NULL,
    name character varying(255) NOT NULL,
    folded_name character varying(255) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    account_id bigint NOT NULL,
    description text NOT NULL,
    kept_until timestamp with time zone,
    tags jsonb NOT NULL,
    written_at timestamp with time zone,
    throughput integer DEFAULT 0 NOT NULL,
    distributed boolean DEFAULT false NOT NULL,
    distributed_rows bigint DEFAULT 0 NOT NULL,
    distributed_bytes bigint DEFAULT 0 NOT NULL,
    changes_since timestamp with time zone,
    declined_indexes jsonb,
    has_comments boolean DEFAULT false NOT NULL,
    distributed_since timestamp with time zone,
    relation_pending boolean DEFAULT false NOT NULL,
    CONSTRAINT no_metrics_table CHECK (((deleted_at IS NOT NULL) OR (NOT ((folded_name)::text ~~ '$%'::text)))),
    CONSTRAINT storage_table_throughput_check CHECK ((throughput >= 0))
);

ALTER TABLE public.storage_table ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_table_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.storage_tablerequests (
    id bigint NOT NULL,
    hour timestamp with time zone NOT NULL,
    requests bigint NOT NULL,
    table_id bigint NOT NULL
);

ALTER TABLE public.storage_tablerequests ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_tablerequests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED TABLE public.storage_throughput (
    table_id bigint NOT NULL,
    is_granted boolean NOT NULL,
    units double precision NOT NULL,
    taken_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.storage_webhook (
    id bigint NOT NULL,
    account_id bigint,
    name character varying(64) NOT NULL,
    url text NOT NULL,
    kinds jsonb NOT NULL,
    enabled boolean NOT NULL,
    secret_sealed bytea NOT NULL,
    author character varying(150) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    delivered_at timestamp with time zone,
    failed_at timestamp with time zone,
    failures integer NOT NULL,
    format character varying(16) DEFAULT 'json'::character varying NOT NULL,
    CONSTRAINT storage_webhook_failures_check CHECK ((failures >= 0))
);

ALTER TABLE public.storage_webhook ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_webhook_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.usersessions_usersession (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ip inet NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    session_key character varying(40) NOT NULL,
    user_agent character varying(200) NOT NULL,
    data jsonb NOT NULL,
    user_id bigint NOT NULL
);

ALTER TABLE public.usersessions_usersession ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.usersessions_usersession_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.account_emailaddress
    ADD CONSTRAINT account_emailaddress_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.account_emailaddress
    ADD CONSTRAINT account_emailaddress_user_id_email_987c8728_uniq UNIQUE (user_id, email);

ALTER TABLE ONLY public.account_emailconfirmation
    ADD CONSTRAINT account_emailconfirmation_key_key UNIQUE (key);

ALTER TABLE ONLY public.account_emailconfirmation
    ADD CONSTRAINT account_emailconfirmation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_bookmark
    ADD CONSTRAINT console_bookmark_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_cache
    ADD CONSTRAINT console_cache_pkey PRIMARY KEY (cache_key);

ALTER TABLE ONLY public.console_columnlayout
    ADD CONSTRAINT console_columnlayout_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_invitation
    ADD CONSTRAINT console_invitation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_invitation
    ADD CONSTRAINT console_invitation_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.console_membership
    ADD CONSTRAINT console_membership_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_propertyorder
    ADD CONSTRAINT console_propertyorder_pkey PRIMARY KEY (table_id);

ALTER TABLE ONLY public.console_recentquery
    ADD CONSTRAINT console_recentquery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_savedquery
    ADD CONSTRAINT console_savedquery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_savedqueryversion
    ADD CONSTRAINT console_savedqueryversion_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_setup
    ADD CONSTRAINT console_setup_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_savedurl
    ADD CONSTRAINT console_storedstate_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.console_user
    ADD CONSTRAINT console_user_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.console_user
    ADD CONSTRAINT console_user_username_key UNIQUE (username);

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);

ALTER TABLE ONLY public.entity_template
    ADD CONSTRAINT entity_template_pkey PRIMARY KEY (pk, rk);

ALTER TABLE ONLY public.mfa_authenticator
    ADD CONSTRAINT mfa_authenticator_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_historyactor
    ADD CONSTRAINT one_actor UNIQUE (kind, name, address, agent, token);

ALTER TABLE ONLY public.storage_blockedtoken
    ADD CONSTRAINT one_blocked_token UNIQUE (account_id, fingerprint);

ALTER TABLE ONLY public.console_bookmark
    ADD CONSTRAINT one_bookmark_of_a_table UNIQUE (user_id, table_id);

ALTER TABLE ONLY public.storage_entitychange
    ADD CONSTRAINT one_change_at_a_place UNIQUE (activity_id, place);

ALTER TABLE ONLY public.storage_rehearsalclient
    ADD CONSTRAINT one_client_of_a_rehearsal UNIQUE (rehearsal_id, agent, credential);

ALTER TABLE ONLY public.storage_copiedtable
    ADD CONSTRAINT one_copy_of_a_table UNIQUE (account_id, is_outgoing, service, source, target);

ALTER TABLE ONLY public.storage_requestcount
    ADD CONSTRAINT one_count_of_a_kind UNIQUE (account_id, minutes, period, process, secondary, operation, authentication, status, error);

ALTER TABLE ONLY public.storage_queryshape
    ADD CONSTRAINT one_count_of_a_shape UNIQUE (account_id, table_id, day, digest);

ALTER TABLE ONLY public.storage_tablerequests
    ADD CONSTRAINT one_count_of_a_table UNIQUE (table_id, hour);

ALTER TABLE ONLY public.storage_propertyindex
    ADD CONSTRAINT one_index_of_a_property UNIQUE (table_id, name);

ALTER TABLE ONLY public.storage_issuedtoken
    ADD CONSTRAINT one_issued_token UNIQUE (account_id, fingerprint);

ALTER TABLE ONLY public.console_columnlayout
    ADD CONSTRAINT one_layout_of_a_name UNIQUE NULLS NOT DISTINCT (account_id, user_id, name, tables);

ALTER TABLE ONLY public.storage_commentmention
    ADD CONSTRAINT one_mention_of_a_user UNIQUE (comment_id, user_id);

ALTER TABLE ONLY public.storage_noticemute
    ADD CONSTRAINT one_mute UNIQUE NULLS NOT DISTINCT (user_id, account_id, kind, subject);

ALTER TABLE ONLY public.storage_seencredential
    ADD CONSTRAINT one_of_a_credential UNIQUE (account_id, authentication, name);

ALTER TABLE ONLY public.storage_jobfilepiece
    ADD CONSTRAINT one_piece_at_a_start UNIQUE (file_id, start);

ALTER TABLE ONLY public.storage_storedaccesspolicy
    ADD CONSTRAINT one_policy_at_a_place UNIQUE (table_id, place);

ALTER TABLE ONLY public.storage_storedaccesspolicy
    ADD CONSTRAINT one_policy_of_an_identifier UNIQUE (table_id, identifier);

ALTER TABLE ONLY public.storage_presence
    ADD CONSTRAINT one_presence_of_a_tab UNIQUE (tab, user_id);

ALTER TABLE ONLY public.storage_rehearsalrate
    ADD CONSTRAINT one_rate UNIQUE (rehearsal_id, rule, scope);

ALTER TABLE ONLY public.console_recentquery
    ADD CONSTRAINT one_recent_query UNIQUE (user_id, table_id, digest);

ALTER TABLE ONLY public.storage_keyedrequest
    ADD CONSTRAINT one_request_of_a_key UNIQUE (token_id, key);

ALTER TABLE ONLY public.console_membership
    ADD CONSTRAINT one_role_in_an_account UNIQUE (user_id, account_id);

ALTER TABLE ONLY public.storage_keyrotation
    ADD CONSTRAINT one_rotation_of_a_key UNIQUE (account_id, number);

ALTER TABLE ONLY public.storage_noticerule
    ADD CONSTRAINT one_rule_of_a_notice UNIQUE NULLS NOT DISTINCT (account_id, kind);

ALTER TABLE ONLY public.storage_sizesample
    ADD CONSTRAINT one_sample_at_a_time UNIQUE (account_id, table_id, at);

ALTER TABLE ONLY public.storage_historysegment
    ADD CONSTRAINT one_segment_of_a_number UNIQUE (account_id, number);

ALTER TABLE ONLY public.storage_requestseries
    ADD CONSTRAINT one_series_row UNIQUE (account_id, table_id, minutes, period, process);

ALTER TABLE ONLY public.storage_rehearsalset
    ADD CONSTRAINT one_set_of_a_name UNIQUE (account_id, name);

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT one_snapshot_of_a_name UNIQUE (account_id, name);

ALTER TABLE ONLY public.storage_snapshottable
    ADD CONSTRAINT one_table_of_a_snapshot UNIQUE (snapshot_id, table_id);

ALTER TABLE ONLY public.storage_credentialuse
    ADD CONSTRAINT one_use_in_an_hour UNIQUE (account_id, authentication, name, hour, address, agent, process);

ALTER TABLE ONLY public.console_savedqueryversion
    ADD CONSTRAINT one_version_of_a_number UNIQUE (query_id, number);

ALTER TABLE ONLY public.storage_webhook
    ADD CONSTRAINT one_webhook_of_a_name UNIQUE NULLS NOT DISTINCT (account_id, name);

ALTER TABLE ONLY public.storage_propertyscans
    ADD CONSTRAINT scans_of_a_day UNIQUE (table_id, name, day);

ALTER TABLE ONLY public.socialaccount_socialaccount
    ADD CONSTRAINT socialaccount_socialaccount_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.socialaccount_socialaccount
    ADD CONSTRAINT socialaccount_socialaccount_provider_uid_fc810c6e_uniq UNIQUE (provider, uid);

ALTER TABLE ONLY public.socialaccount_socialapp
    ADD CONSTRAINT socialaccount_socialapp_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.socialaccount_socialtoken
    ADD CONSTRAINT socialaccount_socialtoken_app_id_account_id_fca4e0ac_uniq UNIQUE (app_id, account_id);

ALTER TABLE ONLY public.socialaccount_socialtoken
    ADD CONSTRAINT socialaccount_socialtoken_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_account
    ADD CONSTRAINT storage_account_name_key UNIQUE (name);

ALTER TABLE ONLY public.storage_account
    ADD CONSTRAINT storage_account_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_activity
    ADD CONSTRAINT storage_activity_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_analyticsprogress
    ADD CONSTRAINT storage_analyticsprogress_pkey PRIMARY KEY (account_id);

ALTER TABLE ONLY public.storage_apitoken
    ADD CONSTRAINT storage_apitoken_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.storage_apitoken
    ADD CONSTRAINT storage_apitoken_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_blockedtoken
    ADD CONSTRAINT storage_blockedtoken_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_branch
    ADD CONSTRAINT storage_branch_pkey PRIMARY KEY (account_id);

ALTER TABLE ONLY public.storage_comment
    ADD CONSTRAINT storage_comment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_commentmention
    ADD CONSTRAINT storage_commentmention_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_commentthread
    ADD CONSTRAINT storage_commentthread_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_copiedtable
    ADD CONSTRAINT storage_copiedtable_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_credentialuse
    ADD CONSTRAINT storage_credentialuse_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_databaseversion
    ADD CONSTRAINT storage_databaseversion_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_entitychange
    ADD CONSTRAINT storage_entitychange_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_entitymove
    ADD CONSTRAINT storage_entitymove_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_feedmark
    ADD CONSTRAINT storage_feedmark_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_historyactor
    ADD CONSTRAINT storage_historyactor_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_historysegment
    ADD CONSTRAINT storage_historysegment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_file_id_key UNIQUE (file_id);

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_issuedtoken
    ADD CONSTRAINT storage_issuedtoken_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_job
    ADD CONSTRAINT storage_job_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.storage_jobfile
    ADD CONSTRAINT storage_jobfile_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_jobfilepiece
    ADD CONSTRAINT storage_jobfilepiece_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_jobs
    ADD CONSTRAINT storage_jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_keyedrequest
    ADD CONSTRAINT storage_keyedrequest_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_keyrotation
    ADD CONSTRAINT storage_keyrotation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_notice
    ADD CONSTRAINT storage_notice_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_noticedelivery
    ADD CONSTRAINT storage_noticedelivery_message_id_key UNIQUE (message_id);

ALTER TABLE ONLY public.storage_noticedelivery
    ADD CONSTRAINT storage_noticedelivery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_noticemute
    ADD CONSTRAINT storage_noticemute_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_noticereader
    ADD CONSTRAINT storage_noticereader_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.storage_noticerule
    ADD CONSTRAINT storage_noticerule_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_oldrows
    ADD CONSTRAINT storage_oldrows_pkey PRIMARY KEY (table_id);

ALTER TABLE ONLY public.storage_presence
    ADD CONSTRAINT storage_presence_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_propertyindex
    ADD CONSTRAINT storage_propertyindex_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_propertyscans
    ADD CONSTRAINT storage_propertyscans_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_queryshape
    ADD CONSTRAINT storage_queryshape_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_recordedrequest
    ADD CONSTRAINT storage_recordedrequest_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_rehearsal
    ADD CONSTRAINT storage_rehearsal_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_rehearsalclient
    ADD CONSTRAINT storage_rehearsalclient_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_rehearsalrate
    ADD CONSTRAINT storage_rehearsalrate_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_rehearsalset
    ADD CONSTRAINT storage_rehearsalset_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_rehearsedrequest
    ADD CONSTRAINT storage_rehearsedrequest_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_requestcount
    ADD CONSTRAINT storage_requestcount_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_requestseries
    ADD CONSTRAINT storage_requestseries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_retiredkey
    ADD CONSTRAINT storage_retiredkey_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_seencredential
    ADD CONSTRAINT storage_seencredential_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_shortlink
    ADD CONSTRAINT storage_shortlink_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.storage_sizesample
    ADD CONSTRAINT storage_sizesample_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT storage_snapshot_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_snapshotschedule
    ADD CONSTRAINT storage_snapshotschedule_pkey PRIMARY KEY (account_id);

ALTER TABLE ONLY public.storage_snapshottable
    ADD CONSTRAINT storage_snapshottable_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_storedaccesspolicy
    ADD CONSTRAINT storage_storedaccesspolicy_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_table
    ADD CONSTRAINT storage_table_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_tablerequests
    ADD CONSTRAINT storage_tablerequests_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_throughput
    ADD CONSTRAINT storage_throughput_pkey PRIMARY KEY (table_id);

ALTER TABLE ONLY public.storage_webhook
    ADD CONSTRAINT storage_webhook_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_session_key_key UNIQUE (session_key);

CREATE INDEX account_emailaddress_email_03be32b2 ON public.account_emailaddress USING btree (email);

CREATE INDEX account_emailaddress_email_03be32b2_like ON public.account_emailaddress USING btree (email varchar_pattern_ops);

CREATE INDEX account_emailaddress_user_id_2c513194 ON public.account_emailaddress USING btree (user_id);

CREATE INDEX account_emailconfirmation_email_address_id_5b7f8c58 ON public.account_emailconfirmation USING btree (email_address_id);

CREATE INDEX account_emailconfirmation_key_f43612bd_like ON public.account_emailconfirmation USING btree (key varchar_pattern_ops);

CREATE INDEX activity_by_time ON public.storage_activity USING btree (at);

CREATE INDEX activity_of_an_account ON public.storage_activity USING btree (account_id, at DESC, id DESC);

CREATE INDEX auth_group_name_a6ea08ec_like ON public.auth_group USING btree (name varchar_pattern_ops);

CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON public.auth_group_permissions USING btree (group_id);

CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON public.auth_group_permissions USING btree (permission_id);

CREATE INDEX auth_permission_content_type_id_2f476e4b ON public.auth_permission USING btree (content_type_id);

CREATE INDEX changes_of_an_entity ON public.storage_entitychange USING btree (table_id, key_digest);

CREATE INDEX comments_of_a_user ON public.storage_comment USING btree (author_id, created_at);

CREATE INDEX console_bookmark_table_id_27816d46 ON public.console_bookmark USING btree (table_id);

CREATE INDEX console_bookmark_user_id_adb53233 ON public.console_bookmark USING btree (user_id);

CREATE INDEX console_cache_expires ON public.console_cache USING btree (expires);

CREATE INDEX console_columnlayout_account_id_dff98ba5 ON public.console_columnlayout USING btree (account_id);

CREATE INDEX console_columnlayout_user_id_b4c38e41 ON public.console_columnlayout USING btree (user_id);

CREATE INDEX console_invitation_account_id_46d4876d ON public.console_invitation USING btree (account_id);

CREATE INDEX console_invitation_invited_by_id_02a71900 ON public.console_invitation USING btree (invited_by_id);

CREATE INDEX console_invitation_token_hash_d11fa1f9_like ON public.console_invitation USING btree (token_hash varchar_pattern_ops);

CREATE INDEX console_invitation_user_id_aa5c19c2 ON public.console_invitation USING btree (user_id);

CREATE INDEX console_membership_account_id_899d2964 ON public.console_membership USING btree (account_id);

CREATE INDEX console_membership_user_id_39225e6f ON public.console_membership USING btree (user_id);

CREATE INDEX console_recentquery_table_id_afcd7369 ON public.console_recentquery USING btree (table_id);

CREATE INDEX console_recentquery_user_id_c1c64c19 ON public.console_recentquery USING btree (user_id);

CREATE INDEX console_savedquery_account_id_2ddbdd95 ON public.console_savedquery USING btree (account_id);

CREATE INDEX console_savedquery_owner_id_01708454 ON public.console_savedquery USING btree (owner_id);

CREATE INDEX console_savedqueryversion_query_id_592ab99b ON public.console_savedqueryversion USING btree (query_id);

CREATE INDEX console_storedstate_key_8ffdd35d_like ON public.console_savedurl USING btree (key varchar_pattern_ops);

CREATE INDEX console_user_username_bd50f70c_like ON public.console_user USING btree (username varchar_pattern_ops);

CREATE INDEX counts_by_period ON public.storage_requestcount USING btree (minutes, period);

CREATE INDEX credentials_by_last_use ON public.storage_seencredential USING btree (last_used_at);

CREATE INDEX deleted_comments ON public.storage_comment USING btree (deleted_at) WHERE (NOT (deleted_at IS NULL));

CREATE INDEX deliveries_by_age ON public.storage_noticedelivery USING btree (created_at);

CREATE INDEX deliveries_to_do ON public.storage_noticedelivery USING btree (due_at) WHERE (NOT (due_at IS NULL));

CREATE INDEX distributed_tables ON public.storage_table USING btree (account_id) WHERE distributed;

CREATE INDEX django_session_expire_date_a5c62663 ON public.django_session USING btree (expire_date);

CREATE INDEX django_session_session_key_c0390e0f_like ON public.django_session USING btree (session_key varchar_pattern_ops);

CREATE INDEX faulted_requests ON public.storage_rehearsedrequest USING btree (rehearsal_id, client_id) WHERE (exchange ? 'faulted'::text);

CREATE INDEX import_drafts_by_table ON public.storage_importdraft USING btree (account_id, table_name);

CREATE INDEX issued_tokens_by_expiry ON public.storage_issuedtoken USING btree (expires_at);

CREATE INDEX job_files_by_expiry ON public.storage_jobfile USING btree (expires_at);

CREATE INDEX jobs_by_end ON public.storage_jobs USING btree (ended_at);

CREATE INDEX jobs_to_do ON public.storage_jobs USING btree (stepped_at) WHERE (ended_at IS NULL);

CREATE INDEX keyed_requests_by_time ON public.storage_keyedrequest USING btree (created_at);

CREATE INDEX links_by_use ON public.storage_shortlink USING btree (used_at);

CREATE INDEX links_of_an_account ON public.storage_shortlink USING btree (account_id, used_at DESC);

CREATE INDEX mentions_not_seen ON public.storage_commentmention USING btree (user_id) WHERE (seen_at IS NULL);

CREATE INDEX mfa_authenticator_user_id_0c3a50c0 ON public.mfa_authenticator USING btree (user_id);

CREATE INDEX new_series_rows ON public.storage_requestseries USING btree (account_id, table_id, period) WHERE ((minutes = 1) AND (NOT ((process)::text = ''::text)));

CREATE INDEX notices_by_end ON public.storage_notice USING btree (resolved_at);

CREATE INDEX notices_of_an_account ON public.storage_notice USING btree (account_id, news_at DESC);

CREATE UNIQUE INDEX one_open_notice ON public.storage_notice USING btree (kind, account_id, user_id, subject) NULLS NOT DISTINCT WHERE (resolved_at IS NULL);

CREATE UNIQUE INDEX one_query_of_an_address ON public.console_savedquery USING btree (account_id, table_name, slug) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX one_table_of_a_name ON public.storage_table USING btree (account_id, folded_name) WHERE (deleted_at IS NULL);

CREATE INDEX pending_relations ON public.storage_table USING btree (id) WHERE relation_pending;

CREATE INDEX query_shapes_by_day ON public.storage_queryshape USING btree (day);

CREATE INDEX recent_queries_of_a_user ON public.console_recentquery USING btree (user_id, used_at DESC);

CREATE INDEX recorded_requests_by_client_id ON public.storage_recordedrequest USING btree (account_id, client_request_id) WHERE (NOT ((client_request_id)::text = ''::text));

CREATE INDEX recorded_requests_by_id ON public.storage_recordedrequest USING btree (request_id);

CREATE INDEX recorded_requests_of_account ON public.storage_recordedrequest USING btree (account_id, id);

CREATE INDEX rehearsals_of_account ON public.storage_rehearsal USING btree (account_id, started_at);

CREATE INDEX rehearsed_requests_in_order ON public.storage_rehearsedrequest USING btree (rehearsal_id, id);

CREATE INDEX rehearsed_requests_of_client ON public.storage_rehearsedrequest USING btree (client_id);

CREATE INDEX samples_by_time ON public.storage_sizesample USING btree (at);

CREATE INDEX saved_urls_by_use ON public.console_savedurl USING btree (used_at);

CREATE INDEX saved_urls_of_an_account ON public.console_savedurl USING btree (account_id, used_at DESC);

CREATE INDEX scans_by_day ON public.storage_propertyscans USING btree (day);

CREATE INDEX series_by_period ON public.storage_requestseries USING btree (minutes, period);

CREATE INDEX snapshots_by_expiry ON public.storage_snapshot USING btree (expires_at);

CREATE INDEX socialaccount_socialaccount_user_id_8146e70c ON public.socialaccount_socialaccount USING btree (user_id);

CREATE INDEX socialaccount_socialtoken_account_id_951f210e ON public.socialaccount_socialtoken USING btree (account_id);

CREATE INDEX socialaccount_socialtoken_app_id_636a42d7 ON public.socialaccount_socialtoken USING btree (app_id);

CREATE INDEX storage_account_name_a4c97e2c_like ON public.storage_account USING btree (name varchar_pattern_ops);

CREATE INDEX storage_activity_undoes_id_601e59ef ON public.storage_activity USING btree (undoes_id);

CREATE INDEX storage_apitoken_account_id_ca2b0139 ON public.storage_apitoken USING btree (account_id);

CREATE INDEX storage_apitoken_digest_92fb3972_like ON public.storage_apitoken USING btree (digest varchar_pattern_ops);

CREATE INDEX storage_apitoken_user_id_52e021c2 ON public.storage_apitoken USING btree (user_id);

CREATE INDEX storage_blockedtoken_account_id_7ba73395 ON public.storage_blockedtoken USING btree (account_id);

CREATE INDEX storage_branch_origin_id_b78e6a36 ON public.storage_branch USING btree (origin_id);

CREATE INDEX storage_branch_source_id_b9a58279 ON public.storage_branch USING btree (source_id);

CREATE INDEX storage_comment_thread_id_22e5a343 ON public.storage_comment USING btree (thread_id);

CREATE INDEX storage_commentmention_comment_id_f200b411 ON public.storage_commentmention USING btree (comment_id);

CREATE INDEX storage_entitychange_activity_id_8aa919df ON public.storage_entitychange USING btree (activity_id);

CREATE INDEX storage_entitymove_moved_at_ab2a45ff ON public.storage_entitymove USING btree (moved_at);

CREATE INDEX storage_entitymove_table_id_ae5d6f69 ON public.storage_entitymove USING btree (table_id);

CREATE INDEX storage_feedmark_next_xid_7538198c ON public.storage_feedmark USING btree (next_xid);

CREATE INDEX storage_historysegment_account_id_95e19bb1 ON public.storage_historysegment USING btree (account_id);

CREATE INDEX storage_importdraft_account_id_48b953ff ON public.storage_importdraft USING btree (account_id);

CREATE INDEX storage_importdraft_check_job_id_4aea3239 ON public.storage_importdraft USING btree (check_job_id);

CREATE INDEX storage_importdraft_job_id_b907a273 ON public.storage_importdraft USING btree (job_id);

CREATE INDEX storage_issuedtoken_account_id_9233fbf3 ON public.storage_issuedtoken USING btree (account_id);

CREATE INDEX storage_job_name_eb8cc252_like ON public.storage_job USING btree (name varchar_pattern_ops);

CREATE INDEX storage_jobfile_account_id_1f671ebf ON public.storage_jobfile USING btree (account_id);

CREATE INDEX storage_jobfile_job_id_4caf2877 ON public.storage_jobfile USING btree (job_id);

CREATE INDEX storage_jobs_account_id_1009e3b6 ON public.storage_jobs USING btree (account_id);

CREATE INDEX storage_keyedrequest_account_id_d5d119b4 ON public.storage_keyedrequest USING btree (account_id);

CREATE INDEX storage_keyedrequest_token_id_756e5a11 ON public.storage_keyedrequest USING btree (token_id);

CREATE INDEX storage_notice_user_id_8851d187 ON public.storage_notice USING btree (user_id);

CREATE INDEX storage_noticedelivery_notice_id_cd20af34 ON public.storage_noticedelivery USING btree (notice_id);

CREATE INDEX storage_noticedelivery_user_id_48ceca5a ON public.storage_noticedelivery USING btree (user_id);

CREATE INDEX storage_noticedelivery_webhook_id_d70a9162 ON public.storage_noticedelivery USING btree (webhook_id);

CREATE INDEX storage_noticemute_account_id_80b88efa ON public.storage_noticemute USING btree (account_id);

CREATE INDEX storage_noticemute_user_id_c26a1125 ON public.storage_noticemute USING btree (user_id);

CREATE INDEX storage_noticerule_account_id_21291a85 ON public.storage_noticerule USING btree (account_id);

CREATE INDEX storage_presence_table_id_8c6e8258 ON public.storage_presence USING btree (table_id);

CREATE INDEX storage_presence_user_id_bbaa758e ON public.storage_presence USING btree (user_id);

CREATE INDEX storage_propertyindex_table_id_1ebe0466 ON public.storage_propertyindex USING btree (table_id);

CREATE INDEX storage_rehearsal_account_id_951766bc ON public.storage_rehearsal USING btree (account_id);

CREATE INDEX storage_rehearsalset_account_id_d5461f68 ON public.storage_rehearsalset USING btree (account_id);

CREATE INDEX storage_retiredkey_account_id_a517213a ON public.storage_retiredkey USING btree (account_id);

CREATE INDEX storage_shortlink_key_4fe01d2d_like ON public.storage_shortlink USING btree (key varchar_pattern_ops);

CREATE INDEX storage_snapshot_account_id_de625321 ON public.storage_snapshot USING btree (account_id);

CREATE INDEX storage_snapshottable_snapshot_id_e475ea16 ON public.storage_snapshottable USING btree (snapshot_id);

CREATE INDEX storage_snapshottable_table_id_a0106039 ON public.storage_snapshottable USING btree (table_id);

CREATE INDEX storage_storedaccesspolicy_table_id_05aece1a ON public.storage_storedaccesspolicy USING btree (table_id);

CREATE INDEX storage_table_account_id_73ab76e7 ON public.storage_table USING btree (account_id);

CREATE INDEX storage_webhook_account_id_5671fa83 ON public.storage_webhook USING btree (account_id);

CREATE INDEX table_requests_by_hour ON public.storage_tablerequests USING btree (hour);

CREATE INDEX threads_of_a_subject ON public.storage_commentthread USING btree (table_id, digest);

CREATE INDEX threads_of_an_account ON public.storage_commentthread USING btree (account_id, id DESC);

CREATE UNIQUE INDEX unique_authenticator_type ON public.mfa_authenticator USING btree (user_id, type) WHERE ((type)::text = ANY ((ARRAY['totp'::character varying, 'recovery_codes'::character varying])::text[]));

CREATE UNIQUE INDEX unique_primary_email ON public.account_emailaddress USING btree (user_id, "primary") WHERE "primary";

CREATE UNIQUE INDEX unique_verified_email ON public.account_emailaddress USING btree (email) WHERE verified;

CREATE INDEX usersessions_usersession_session_key_fd35de43_like ON public.usersessions_usersession USING btree (session_key varchar_pattern_ops);

CREATE INDEX usersessions_usersession_user_id_af5e0a6d ON public.usersessions_usersession USING btree (user_id);

CREATE INDEX uses_by_hour ON public.storage_credentialuse USING btree (hour);

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.storage_activity FOR EACH ROW EXECUTE FUNCTION public.activity_append_only();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.storage_entitychange FOR EACH ROW EXECUTE FUNCTION public.activity_append_only();

ALTER TABLE ONLY public.account_emailaddress
    ADD CONSTRAINT account_emailaddress_user_id_2c513194_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.account_emailconfirmation
    ADD CONSTRAINT account_emailconfirm_email_address_id_5b7f8c58_fk_account_e FOREIGN KEY (email_address_id) REFERENCES public.account_emailaddress(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_bookmark
    ADD CONSTRAINT console_bookmark_user_id_adb53233_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_columnlayout
    ADD CONSTRAINT console_columnlayout_account_id_dff98ba5_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_columnlayout
    ADD CONSTRAINT console_columnlayout_user_id_b4c38e41_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_invitation
    ADD CONSTRAINT console_invitation_account_id_46d4876d_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_invitation
    ADD CONSTRAINT console_invitation_invited_by_id_02a71900_fk_console_user_id FOREIGN KEY (invited_by_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_invitation
    ADD CONSTRAINT console_invitation_user_id_aa5c19c2_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_membership
    ADD CONSTRAINT console_membership_account_id_899d2964_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_membership
    ADD CONSTRAINT console_membership_user_id_39225e6f_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_propertyorder
    ADD CONSTRAINT console_propertyorder_table_id_8945c1f1_fk_storage_table_id FOREIGN KEY (table_id) REFERENCES public.storage_table(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_recentquery
    ADD CONSTRAINT console_recentquery_user_id_c1c64c19_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_savedquery
    ADD CONSTRAINT console_savedquery_account_id_2ddbdd95_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_savedquery
    ADD CONSTRAINT console_savedquery_owner_id_01708454_fk_console_user_id FOREIGN KEY (owner_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_savedqueryversion
    ADD CONSTRAINT console_savedqueryve_query_id_592ab99b_fk_console_s FOREIGN KEY (query_id) REFERENCES public.console_savedquery(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.console_savedurl
    ADD CONSTRAINT console_savedurl_account_id_3e146341_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.mfa_authenticator
    ADD CONSTRAINT mfa_authenticator_user_id_0c3a50c0_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.socialaccount_socialtoken
    ADD CONSTRAINT socialaccount_social_account_id_951f210e_fk_socialacc FOREIGN KEY (account_id) REFERENCES public.socialaccount_socialaccount(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.socialaccount_socialtoken
    ADD CONSTRAINT socialaccount_social_app_id_636a42d7_fk_socialacc FOREIGN KEY (app_id) REFERENCES public.socialaccount_socialapp(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.socialaccount_socialaccount
    ADD CONSTRAINT socialaccount_socialaccount_user_id_8146e70c_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_apitoken
    ADD CONSTRAINT storage_apitoken_account_id_ca2b0139_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_apitoken
    ADD CONSTRAINT storage_apitoken_user_id_52e021c2_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_blockedtoken
    ADD CONSTRAINT storage_blockedtoken_account_id_7ba73395_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_branch
    ADD CONSTRAINT storage_branch_account_id_ba4ff777_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_branch
    ADD CONSTRAINT storage_branch_origin_id_b78e6a36_fk_storage_snapshot_id FOREIGN KEY (origin_id) REFERENCES public.storage_snapshot(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_branch
    ADD CONSTRAINT storage_branch_source_id_b9a58279_fk_storage_account_id FOREIGN KEY (source_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_comment
    ADD CONSTRAINT storage_comment_author_id_d78bd2af_fk_console_user_id FOREIGN KEY (author_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_comment
    ADD CONSTRAINT storage_comment_thread_id_22e5a343_fk_storage_commentthread_id FOREIGN KEY (thread_id) REFERENCES public.storage_commentthread(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_commentmention
    ADD CONSTRAINT storage_commentmenti_comment_id_f200b411_fk_storage_c FOREIGN KEY (comment_id) REFERENCES public.storage_comment(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_commentmention
    ADD CONSTRAINT storage_commentmention_user_id_ad50c570_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_commentthread
    ADD CONSTRAINT storage_commentthread_account_id_a2e0551f_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_copiedtable
    ADD CONSTRAINT storage_copiedtable_account_id_c42074fe_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_entitychange
    ADD CONSTRAINT storage_entitychange_activity_id_8aa919df_fk_storage_a FOREIGN KEY (activity_id) REFERENCES public.storage_activity(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_historysegment
    ADD CONSTRAINT storage_historysegme_account_id_95e19bb1_fk_storage_a FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_account_id_48b953ff_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_check_job_id_4aea3239_fk_storage_jobs_id FOREIGN KEY (check_job_id) REFERENCES public.storage_jobs(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_file_id_12c8e828_fk_storage_jobfile_id FOREIGN KEY (file_id) REFERENCES public.storage_jobfile(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_importdraft
    ADD CONSTRAINT storage_importdraft_job_id_b907a273_fk_storage_jobs_id FOREIGN KEY (job_id) REFERENCES public.storage_jobs(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_issuedtoken
    ADD CONSTRAINT storage_issuedtoken_account_id_9233fbf3_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_jobfile
    ADD CONSTRAINT storage_jobfile_account_id_1f671ebf_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_jobfile
    ADD CONSTRAINT storage_jobfile_job_id_4caf2877_fk_storage_jobs_id FOREIGN KEY (job_id) REFERENCES public.storage_jobs(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_jobfilepiece
    ADD CONSTRAINT storage_jobfilepiece_file_id_5ea7eeed_fk_storage_jobfile_id FOREIGN KEY (file_id) REFERENCES public.storage_jobfile(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_jobs
    ADD CONSTRAINT storage_jobs_account_id_1009e3b6_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_keyedrequest
    ADD CONSTRAINT storage_keyedrequest_account_id_d5d119b4_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_keyedrequest
    ADD CONSTRAINT storage_keyedrequest_token_id_756e5a11_fk_storage_apitoken_id FOREIGN KEY (token_id) REFERENCES public.storage_apitoken(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_keyrotation
    ADD CONSTRAINT storage_keyrotation_account_id_338b34e4_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_notice
    ADD CONSTRAINT storage_notice_account_id_2aeb6c27_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_notice
    ADD CONSTRAINT storage_notice_user_id_8851d187_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticedelivery
    ADD CONSTRAINT storage_noticedelive_webhook_id_d70a9162_fk_storage_w FOREIGN KEY (webhook_id) REFERENCES public.storage_webhook(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticedelivery
    ADD CONSTRAINT storage_noticedelivery_notice_id_cd20af34_fk_storage_notice_id FOREIGN KEY (notice_id) REFERENCES public.storage_notice(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticedelivery
    ADD CONSTRAINT storage_noticedelivery_user_id_48ceca5a_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticemute
    ADD CONSTRAINT storage_noticemute_account_id_80b88efa_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticemute
    ADD CONSTRAINT storage_noticemute_user_id_c26a1125_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticereader
    ADD CONSTRAINT storage_noticereader_user_id_a6517c72_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_noticerule
    ADD CONSTRAINT storage_noticerule_account_id_21291a85_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_oldrows
    ADD CONSTRAINT storage_oldrows_table_id_b2ce0f61_fk_storage_table_id FOREIGN KEY (table_id) REFERENCES public.storage_table(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_propertyindex
    ADD CONSTRAINT storage_propertyindex_table_id_1ebe0466_fk_storage_table_id FOREIGN KEY (table_id) REFERENCES public.storage_table(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_rehearsal
    ADD CONSTRAINT storage_rehearsal_account_id_951766bc_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_rehearsalclient
    ADD CONSTRAINT storage_rehearsalcli_rehearsal_id_01f671d6_fk_storage_r FOREIGN KEY (rehearsal_id) REFERENCES public.storage_rehearsal(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_rehearsalrate
    ADD CONSTRAINT storage_rehearsalrat_rehearsal_id_8553db19_fk_storage_r FOREIGN KEY (rehearsal_id) REFERENCES public.storage_rehearsal(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_rehearsalset
    ADD CONSTRAINT storage_rehearsalset_account_id_d5461f68_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_rehearsedrequest
    ADD CONSTRAINT storage_rehearsedreq_rehearsal_id_6b6e1c99_fk_storage_r FOREIGN KEY (rehearsal_id) REFERENCES public.storage_rehearsal(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_retiredkey
    ADD CONSTRAINT storage_retiredkey_account_id_a517213a_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_shortlink
    ADD CONSTRAINT storage_shortlink_account_id_f467b915_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT storage_snapshot_account_id_de625321_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_snapshotschedule
    ADD CONSTRAINT storage_snapshotsche_account_id_3487b8be_fk_storage_a FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_snapshottable
    ADD CONSTRAINT storage_snapshottabl_snapshot_id_e475ea16_fk_storage_s FOREIGN KEY (snapshot_id) REFERENCES public.storage_snapshot(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_storedaccesspolicy
    ADD CONSTRAINT storage_storedaccess_table_id_05aece1a_fk_storage_t FOREIGN KEY (table_id) REFERENCES public.storage_table(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_table
    ADD CONSTRAINT storage_table_account_id_73ab76e7_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.storage_webhook
    ADD CONSTRAINT storage_webhook_account_id_5671fa83_fk_storage_account_id FOREIGN KEY (account_id) REFERENCES public.storage_account(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.usersessions_usersession
    ADD CONSTRAINT usersessions_usersession_user_id_af5e0a6d_fk_console_user_id FOREIGN KEY (user_id) REFERENCES public.console_user(id) DEFERRABLE INITIALLY DEFERRED;









INSERT INTO public.django_content_type VALUES
	(1, 'contenttypes', 'contenttype'),
	(2, 'auth', 'permission'),
	(3, 'auth', 'group'),
	(4, 'sessions', 'session'),
	(5, 'account', 'emailaddress'),
	(6, 'account', 'emailconfirmation'),
	(7, 'mfa', 'authenticator'),
	(8, 'usersessions', 'usersession'),
	(9, 'socialaccount', 'socialaccount'),
	(10, 'socialaccount', 'socialapp'),
	(11, 'socialaccount', 'socialtoken'),
	(12, 'storage', 'account'),
	(13, 'storage', 'table'),
	(14, 'storage', 'storedaccesspolicy'),
	(15, 'storage', 'credentialuse'),
	(16, 'storage', 'seencredential'),
	(17, 'storage', 'activity'),
	(18, 'storage', 'entitychange'),
	(19, 'storage', 'membership'),
	(20, 'storage', 'apitoken'),
	(21, 'storage', 'retiredkey'),
	(22, 'storage', 'registeredsas'),
	(23, 'storage', 'blockedsas'),
	(24, 'storage', 'idempotencyrecord'),
	(25, 'storage', 'propertyindex'),
	(26, 'storage', 'propertyscans'),
	(27, 'storage', 'historyactor'),
	(28, 'storage', 'historysegment'),
	(29, 'storage', 'snapshot'),
	(30, 'storage', 'snapshottable'),
	(31, 'storage', 'snapshotschedule'),
	(32, 'storage', 'branch'),
	(33, 'storage', 'feedmark'),
	(34, 'storage', 'databaseversion'),
	(35, 'storage', 'periodicrun'),
	(36, 'storage', 'job'),
	(37, 'storage', 'jobfile'),
	(38, 'storage', 'jobfilepiece'),
	(39, 'storage', 'importdraft'),
	(40, 'storage', 'recordedrequest'),
	(41, 'storage', 'keyrotation'),
	(42, 'storage', 'notice'),
	(43, 'storage', 'noticerule'),
	(44, 'storage', 'noticereader'),
	(45, 'storage', 'noticemute'),
	(46, 'storage', 'webhook'),
	(47, 'storage', 'noticedelivery'),
	(48, 'storage', 'requestseries'),
	(49, 'storage', 'sizesample'),
	(50, 'storage', 'commentthread'),
	(51, 'storage', 'comment'),
	(52, 'storage', 'commentmention'),
	(53, 'storage', 'shortlink'),
	(54, 'storage', 'presence'),
	(55, 'storage', 'entitymove'),
	(56, 'storage', 'copiedtable'),
	(57, 'storage', 'oldrows'),
	(58, 'storage', 'rehearsalset'),
	(59, 'storage', 'rehearsal'),
	(60, 'storage', 'rehearsalclient'),
	(61, 'storage', 'rehearsalrate'),
	(62, 'storage', 'rehearsedrequest'),
	(63, 'storage', 'queryshape'),
	(64, 'console', 'user'),
	(65, 'console', 'setup'),
	(66, 'console', 'invitation'),
	(67, 'console', 'bookmark'),
	(68, 'console', 'columnlayout'),
	(69, 'console', 'savedquery'),
	(70, 'console', 'savedqueryversion'),
	(71, 'console', 'recentquery'),
	(72, 'console', 'savedurl'),
	(73, 'console', 'propertyorder');



INSERT INTO public.auth_permission VALUES
	(1, 'Can add content type', 1, 'add_contenttype'),
	(2, 'Can change content type', 1, 'change_contenttype'),
	(3, 'Can delete content type', 1, 'delete_contenttype'),
	(4, 'Can view content type', 1, 'view_contenttype'),
	(5, 'Can add permission', 2, 'add_permission'),
	(6, 'Can change permission', 2, 'change_permission'),
	(7, 'Can delete permission', 2, 'delete_permission'),
	(8, 'Can view permission', 2, 'view_permission'),
	(9, 'Can add group', 3, 'add_group'),
	(10, 'Can change group', 3, 'change_group'),
	(11, 'Can delete group', 3, 'delete_group'),
	(12, 'Can view group', 3, 'view_group'),
	(13, 'Can add session', 4, 'add_session'),
	(14, 'Can change session', 4, 'change_session'),
	(15, 'Can delete session', 4, 'delete_session'),
	(16, 'Can view session', 4, 'view_session'),
	(17, 'Can add email address', 5, 'add_emailaddress'),
	(18, 'Can change email address', 5, 'change_emailaddress'),
	(19, 'Can delete email address', 5, 'delete_emailaddress'),
	(20, 'Can view email address', 5, 'view_emailaddress'),
	(21, 'Can add email confirmation', 6, 'add_emailconfirmation'),
	(22, 'Can change email confirmation', 6, 'change_emailconfirmation'),
	(23, 'Can delete email confirmation', 6, 'delete_emailconfirmation'),
	(24, 'Can view email confirmation', 6, 'view_emailconfirmation'),
	(25, 'Can add authenticator', 7, 'add_authenticator'),
	(26, 'Can change authenticator', 7, 'change_authenticator'),
	(27, 'Can delete authenticator', 7, 'delete_authenticator'),
	(28, 'Can view authenticator', 7, 'view_authenticator'),
	(29, 'Can add user session', 8, 'add_usersession'),
	(30, 'Can change user session', 8, 'change_usersession'),
	(31, 'Can delete user session', 8, 'delete_usersession'),
	(32, 'Can view user session', 8, 'view_usersession'),
	(33, 'Can add social account', 9, 'add_socialaccount'),
	(34, 'Can change social account', 9, 'change_socialaccount'),
	(35, 'Can delete social account', 9, 'delete_socialaccount'),
	(36, 'Can view social account', 9, 'view_socialaccount'),
	(37, 'Can add social application', 10, 'add_socialapp'),
	(38, 'Can change social application', 10, 'change_socialapp'),
	(39, 'Can delete social application', 10, 'delete_socialapp'),
	(40, 'Can view social application', 10, 'view_socialapp'),
	(41, 'Can add social application token', 11, 'add_socialtoken'),
	(42, 'Can change social application token', 11, 'change_socialtoken'),
	(43, 'Can delete social application token', 11, 'delete_socialtoken'),
	(44, 'Can view social application token', 11, 'view_socialtoken'),
	(45, 'Can add account', 12, 'add_account'),
	(46, 'Can change account', 12, 'change_account'),
	(47, 'Can delete account', 12, 'delete_account'),
	(48, 'Can view account', 12, 'view_account'),
	(49, 'Can add table', 13, 'add_table'),
	(50, 'Can change table', 13, 'change_table'),
	(51, 'Can delete table', 13, 'delete_table'),
	(52, 'Can view table', 13, 'view_table'),
	(53, 'Can add stored access policy', 14, 'add_storedaccesspolicy'),
	(54, 'Can change stored access policy', 14, 'change_storedaccesspolicy'),
	(55, 'Can delete stored access policy', 14, 'delete_storedaccesspolicy'),
	(56, 'Can view stored access policy', 14, 'view_storedaccesspolicy'),
	(57, 'Can add credential use', 15, 'add_credentialuse'),
	(58, 'Can change credential use', 15, 'change_credentialuse'),
	(59, 'Can delete credential use', 15, 'delete_credentialuse'),
	(60, 'Can view credential use', 15, 'view_credentialuse'),
	(61, 'Can add seen credential', 16, 'add_seencredential'),
	(62, 'Can change seen credential', 16, 'change_seencredential'),
	(63, 'Can delete seen credential', 16, 'delete_seencredential'),
	(64, 'Can view seen credential', 16, 'view_seencredential'),
	(65, 'Can add activity', 17, 'add_activity'),
	(66, 'Can change activity', 17, 'change_activity'),
	(67, 'Can delete activity', 17, 'delete_activity'),
	(68, 'Can view activity', 17, 'view_activity'),
	(69, 'Can add entity change', 18, 'add_entitychange'),
	(70, 'Can change entity change', 18, 'change_entitychange'),
	(71, 'Can delete entity change', 18, 'delete_entitychange'),
	(72, 'Can view entity change', 18, 'view_entitychange'),
	(73, 'Can add membership', 19, 'add_membership'),
	(74, 'Can change membership', 19, 'change_membership'),
	(75, 'Can delete membership', 19, 'delete_membership'),
	(76, 'Can view membership', 19, 'view_membership'),
	(77, 'Can add api token', 20, 'add_apitoken'),
	(78, 'Can change api token', 20, 'change_apitoken'),
	(79, 'Can delete api token', 20, 'delete_apitoken'),
	(80, 'Can view api token', 20, 'view_apitoken'),
	(81, 'Can add retired key', 21, 'add_retiredkey'),
	(82, 'Can change retired key', 21, 'change_retiredkey'),
	(83, 'Can delete retired key', 21, 'delete_retiredkey'),
	(84, 'Can view retired key', 21, 'view_retiredkey'),
	(85, 'Can add registered sas', 22, 'add_registeredsas'),
	(86, 'Can change registered sas', 22, 'change_registeredsas'),
	(87, 'Can delete registered sas', 22, 'delete_registeredsas'),
	(88, 'Can view registered sas', 22, 'view_registeredsas'),
	(89, 'Can add blocked sas', 23, 'add_blockedsas'),
	(90, 'Can change blocked sas', 23, 'change_blockedsas'),
	(91, 'Can delete blocked sas', 23, 'delete_blockedsas'),
	(92, 'Can view blocked sas', 23, 'view_blockedsas'),
	(93, 'Can add idempotency record', 24, 'add_idempotencyrecord'),
	(94, 'Can change idempotency record', 24, 'change_idempotencyrecord'),
	(95, 'Can delete idempotency record', 24, 'delete_idempotencyrecord'),
	(96, 'Can view idempotency record', 24, 'view_idempotencyrecord'),
	(97, 'Can add property index', 25, 'add_propertyindex'),
	(98, 'Can change property index', 25, 'change_propertyindex'),
	(99, 'Can delete property index', 25, 'delete_propertyindex'),
	(100, 'Can view property index', 25, 'view_propertyindex'),
	(101, 'Can add property scans', 26, 'add_propertyscans'),
	(102, 'Can change property scans', 26, 'change_propertyscans'),
	(103, 'Can delete property scans', 26, 'delete_propertyscans'),
	(104, 'Can view property scans', 26, 'view_propertyscans'),
	(105, 'Can add history actor', 27, 'add_historyactor'),
	(106, 'Can change history actor', 27, 'change_historyactor'),
	(107, 'Can delete history actor', 27, 'delete_historyactor'),
	(108, 'Can view history actor', 27, 'view_historyactor'),
	(109, 'Can add history segment', 28, 'add_historysegment'),
	(110, 'Can change history segment', 28, 'change_historysegment'),
	(111, 'Can delete history segment', 28, 'delete_historysegment'),
	(112, 'Can view history segment', 28, 'view_historysegment'),
	(113, 'Can add snapshot', 29, 'add_snapshot'),
	(114, 'Can change snapshot', 29, 'change_snapshot'),
	(115, 'Can delete snapshot', 29, 'delete_snapshot'),
	(116, 'Can view snapshot', 29, 'view_snapshot'),
	(117, 'Can add snapshot table', 30, 'add_snapshottable'),
	(118, 'Can change snapshot table', 30, 'change_snapshottable'),
	(119, 'Can delete snapshot table', 30, 'delete_snapshottable'),
	(120, 'Can view snapshot table', 30, 'view_snapshottable'),
	(121, 'Can add snapshot schedule', 31, 'add_snapshotschedule'),
	(122, 'Can change snapshot schedule', 31, 'change_snapshotschedule'),
	(123, 'Can delete snapshot schedule', 31, 'delete_snapshotschedule'),
	(124, 'Can view snapshot schedule', 31, 'view_snapshotschedule'),
	(125, 'Can add branch', 32, 'add_branch'),
	(126, 'Can change branch', 32, 'change_branch'),
	(127, 'Can delete branch', 32, 'delete_branch'),
	(128, 'Can view branch', 32, 'view_branch'),
	(129, 'Can add feed mark', 33, 'add_feedmark'),
	(130, 'Can change feed mark', 33, 'change_feedmark'),
	(131, 'Can delete feed mark', 33, 'delete_feedmark'),
	(132, 'Can view feed mark', 33, 'view_feedmark'),
	(133, 'Can add database version', 34, 'add_databaseversion'),
	(134, 'Can change database version', 34, 'change_databaseversion'),
	(135, 'Can delete database version', 34, 'delete_databaseversion'),
	(136, 'Can view database version', 34, 'view_databaseversion'),
	(137, 'Can add periodic run', 35, 'add_periodicrun'),
	(138, 'Can change periodic run', 35, 'change_periodicrun'),
	(139, 'Can delete periodic run', 35, 'delete_periodicrun'),
	(140, 'Can view periodic run', 35, 'view_periodicrun'),
	(141, 'Can add job', 36, 'add_job'),
	(142, 'Can change job', 36, 'change_job'),
	(143, 'Can delete job', 36, 'delete_job'),
	(144, 'Can view job', 36, 'view_job'),
	(145, 'Can add job file', 37, 'add_jobfile'),
	(146, 'Can change job file', 37, 'change_jobfile'),
	(147, 'Can delete job file', 37, 'delete_jobfile'),
	(148, 'Can view job file', 37, 'view_jobfile'),
	(149, 'Can add job file piece', 38, 'add_jobfilepiece'),
	(150, 'Can change job file piece', 38, 'change_jobfilepiece'),
	(151, 'Can delete job file piece', 38, 'delete_jobfilepiece'),
	(152, 'Can view job file piece', 38, 'view_jobfilepiece'),
	(153, 'Can add import draft', 39, 'add_importdraft'),
	(154, 'Can change import draft', 39, 'change_importdraft'),
	(155, 'Can delete import draft', 39, 'delete_importdraft'),
	(156, 'Can view import draft', 39, 'view_importdraft'),
	(157, 'Can add recorded request', 40, 'add_recordedrequest'),
	(158, 'Can change recorded request', 40, 'change_recordedrequest'),
	(159, 'Can delete recorded request', 40, 'delete_recordedrequest'),
	(160, 'Can view recorded request', 40, 'view_recordedrequest'),
	(161, 'Can add key rotation', 41, 'add_keyrotation'),
	(162, 'Can change key rotation', 41, 'change_keyrotation'),
	(163, 'Can delete key rotation', 41, 'delete_keyrotation'),
	(164, 'Can view key rotation', 41, 'view_keyrotation'),
	(165, 'Can add notice', 42, 'add_notice'),
	(166, 'Can change notice', 42, 'change_notice'),
	(167, 'Can delete notice', 42, 'delete_notice'),
	(168, 'Can view notice', 42, 'view_notice'),
	(169, 'Can add notice rule', 43, 'add_noticerule'),
	(170, 'Can change notice rule', 43, 'change_noticerule'),
	(171, 'Can delete notice rule', 43, 'delete_noticerule'),
	(172, 'Can view notice rule', 43, 'view_noticerule'),
	(173, 'Can add notice reader', 44, 'add_noticereader'),
	(174, 'Can change notice reader', 44, 'change_noticereader'),
	(175, 'Can delete notice reader', 44, 'delete_noticereader'),
	(176, 'Can view notice reader', 44, 'view_noticereader'),
	(177, 'Can add notice mute', 45, 'add_noticemute'),
	(178, 'Can change notice mute', 45, 'change_noticemute'),
	(179, 'Can delete notice mute', 45, 'delete_noticemute'),
	(180, 'Can view notice mute', 45, 'view_noticemute'),
	(181, 'Can add webhook', 46, 'add_webhook'),
	(182, 'Can change webhook', 46, 'change_webhook'),
	(183, 'Can delete webhook', 46, 'delete_webhook'),
	(184, 'Can view webhook', 46, 'view_webhook'),
	(185, 'Can add notice delivery', 47, 'add_noticedelivery'),
	(186, 'Can change notice delivery', 47, 'change_noticedelivery'),
	(187, 'Can delete notice delivery', 47, 'delete_noticedelivery'),
	(188, 'Can view notice delivery', 47, 'view_noticedelivery'),
	(189, 'Can add request series', 48, 'add_requestseries'),
	(190, 'Can change request series', 48, 'change_requestseries'),
	(191, 'Can delete request series', 48, 'delete_requestseries'),
	(192, 'Can view request series', 48, 'view_requestseries'),
	(193, 'Can add size sample', 49, 'add_sizesample'),
	(194, 'Can change size sample', 49, 'change_sizesample'),
	(195, 'Can delete size sample', 49, 'delete_sizesample'),
	(196, 'Can view size sample', 49, 'view_sizesample'),
	(197, 'Can add comment thread', 50, 'add_commentthread'),
	(198, 'Can change comment thread', 50, 'change_commentthread'),
	(199, 'Can delete comment thread', 50, 'delete_commentthread'),
	(200, 'Can view comment thread', 50, 'view_commentthread'),
	(201, 'Can add comment', 51, 'add_comment'),
	(202, 'Can change comment', 51, 'change_comment'),
	(203, 'Can delete comment', 51, 'delete_comment'),
	(204, 'Can view comment', 51, 'view_comment'),
	(205, 'Can add comment mention', 52, 'add_commentmention'),
	(206, 'Can change comment mention', 52, 'change_commentmention'),
	(207, 'Can delete comment mention', 52, 'delete_commentmention'),
	(208, 'Can view comment mention', 52, 'view_commentmention'),
	(209, 'Can add short link', 53, 'add_shortlink'),
	(210, 'Can change short link', 53, 'change_shortlink'),
	(211, 'Can delete short link', 53, 'delete_shortlink'),
	(212, 'Can view short link', 53, 'view_shortlink'),
	(213, 'Can add presence', 54, 'add_presence'),
	(214, 'Can change presence', 54, 'change_presence'),
	(215, 'Can delete presence', 54, 'delete_presence'),
	(216, 'Can view presence', 54, 'view_presence'),
	(217, 'Can add entity move', 55, 'add_entitymove'),
	(218, 'Can change entity move', 55, 'change_entitymove'),
	(219, 'Can delete entity move', 55, 'delete_entitymove'),
	(220, 'Can view entity move', 55, 'view_entitymove'),
	(221, 'Can add copied table', 56, 'add_copiedtable'),
	(222, 'Can change copied table', 56, 'change_copiedtable'),
	(223, 'Can delete copied table', 56, 'delete_copiedtable'),
	(224, 'Can view copied table', 56, 'view_copiedtable'),
	(225, 'Can add old rows', 57, 'add_oldrows'),
	(226, 'Can change old rows', 57, 'change_oldrows'),
	(227, 'Can delete old rows', 57, 'delete_oldrows'),
	(228, 'Can view old rows', 57, 'view_oldrows'),
	(229, 'Can add rehearsal set', 58, 'add_rehearsalset'),
	(230, 'Can change rehearsal set', 58, 'change_rehearsalset'),
	(231, 'Can delete rehearsal set', 58, 'delete_rehearsalset'),
	(232, 'Can view rehearsal set', 58, 'view_rehearsalset'),
	(233, 'Can add rehearsal', 59, 'add_rehearsal'),
	(234, 'Can change rehearsal', 59, 'change_rehearsal'),
	(235, 'Can delete rehearsal', 59, 'delete_rehearsal'),
	(236, 'Can view rehearsal', 59, 'view_rehearsal'),
	(237, 'Can add rehearsal client', 60, 'add_rehearsalclient'),
	(238, 'Can change rehearsal client', 60, 'change_rehearsalclient'),
	(239, 'Can delete rehearsal client', 60, 'delete_rehearsalclient'),
	(240, 'Can view rehearsal client', 60, 'view_rehearsalclient'),
	(241, 'Can add rehearsal rate', 61, 'add_rehearsalrate'),
	(242, 'Can change rehearsal rate', 61, 'change_rehearsalrate'),
	(243, 'Can delete rehearsal rate', 61, 'delete_rehearsalrate'),
	(244, 'Can view rehearsal rate', 61, 'view_rehearsalrate'),
	(245, 'Can add rehearsed request', 62, 'add_rehearsedrequest'),
	(246, 'Can change rehearsed request', 62, 'change_rehearsedrequest'),
	(247, 'Can delete rehearsed request', 62, 'delete_rehearsedrequest'),
	(248, 'Can view rehearsed request', 62, 'view_rehearsedrequest'),
	(249, 'Can add query shape', 63, 'add_queryshape'),
	(250, 'Can change query shape', 63, 'change_queryshape'),
	(251, 'Can delete query shape', 63, 'delete_queryshape'),
	(252, 'Can view query shape', 63, 'view_queryshape'),
	(253, 'Can add user', 64, 'add_user'),
	(254, 'Can change user', 64, 'change_user'),
	(255, 'Can delete user', 64, 'delete_user'),
	(256, 'Can view user', 64, 'view_user'),
	(257, 'Can add setup', 65, 'add_setup'),
	(258, 'Can change setup', 65, 'change_setup'),
	(259, 'Can delete setup', 65, 'delete_setup'),
	(260, 'Can view setup', 65, 'view_setup'),
	(261, 'Can add invitation', 66, 'add_invitation'),
	(262, 'Can change invitation', 66, 'change_invitation'),
	(263, 'Can delete invitation', 66, 'delete_invitation'),
	(264, 'Can view invitation', 66, 'view_invitation'),
	(265, 'Can add bookmark', 67, 'add_bookmark'),
	(266, 'Can change bookmark', 67, 'change_bookmark'),
	(267, 'Can delete bookmark', 67, 'delete_bookmark'),
	(268, 'Can view bookmark', 67, 'view_bookmark'),
	(269, 'Can add column layout', 68, 'add_columnlayout'),
	(270, 'Can change column layout', 68, 'change_columnlayout'),
	(271, 'Can delete column layout', 68, 'delete_columnlayout'),
	(272, 'Can view column layout', 68, 'view_columnlayout'),
	(273, 'Can add saved query', 69, 'add_savedquery'),
	(274, 'Can change saved query', 69, 'change_savedquery'),
	(275, 'Can delete saved query', 69, 'delete_savedquery'),
	(276, 'Can view saved query', 69, 'view_savedquery'),
	(277, 'Can add saved query version', 70, 'add_savedqueryversion'),
	(278, 'Can change saved query version', 70, 'change_savedqueryversion'),
	(279, 'Can delete saved query version', 70, 'delete_savedqueryversion'),
	(280, 'Can view saved query version', 70, 'view_savedqueryversion'),
	(281, 'Can add recent query', 71, 'add_recentquery'),
	(282, 'Can change recent query', 71, 'change_recentquery'),
	(283, 'Can delete recent query', 71, 'delete_recentquery'),
	(284, 'Can view recent query', 71, 'view_recentquery'),
	(285, 'Can add saved url', 72, 'add_savedurl'),
	(286, 'Can change saved url', 72, 'change_savedurl'),
	(287, 'Can delete saved url', 72, 'delete_savedurl'),
	(288, 'Can view saved url', 72, 'view_savedurl'),
	(289, 'Can add property order', 73, 'add_propertyorder'),
	(290, 'Can change property order', 73, 'change_propertyorder'),
	(291, 'Can delete property order', 73, 'delete_propertyorder'),
	(292, 'Can view property order', 73, 'view_propertyorder');



INSERT INTO public.django_migrations VALUES
	(1, 'storage', '0001_initial', now()),
	(2, 'storage', '0002_entity_template', now()),
	(3, 'storage', '0003_access', now()),
	(4, 'storage', '0004_observations', now()),
	(5, 'storage', '0005_networks', now()),
	(6, 'storage', '0006_activity', now()),
	(7, 'storage', '0007_append_only', now()),
	(8, 'console', '0001_initial', now()),
	(9, 'console', '0002_cache', now()),
	(10, 'console', '0003_people', now()),
	(11, 'console', '0004_membership_moves', now()),
	(12, 'console', '0005_queries', now()),
	(13, 'account', '0001_initial', now()),
	(14, 'account', '0002_email_max_length', now()),
	(15, 'account', '0003_alter_emailaddress_create_unique_verified_email', now()),
	(16, 'account', '0004_alter_emailaddress_drop_unique_email', now()),
	(17, 'account', '0005_emailaddress_idx_upper_email', now()),
	(18, 'account', '0006_emailaddress_lower', now()),
	(19, 'account', '0007_emailaddress_idx_email', now()),
	(20, 'account', '0008_emailaddress_unique_primary_email_fixup', now()),
	(21, 'account', '0009_emailaddress_unique_primary_email', now()),
	(22, 'contenttypes', '0001_initial', now()),
	(23, 'contenttypes', '0002_remove_content_type_name', now()),
	(24, 'auth', '0001_initial', now()),
	(25, 'auth', '0002_alter_permission_name_max_length', now()),
	(26, 'auth', '0003_alter_user_email_max_length', now()),
	(27, 'auth', '0004_alter_user_username_opts', now()),
	(28, 'auth', '0005_alter_user_last_login_null', now()),
	(29, 'auth', '0006_require_contenttypes_0002', now()),
	(30, 'auth', '0007_alter_validators_add_error_messages', now()),
	(31, 'auth', '0008_alter_user_username_max_length', now()),
	(32, 'auth', '0009_alter_user_last_name_max_length', now()),
	(33, 'auth', '0010_alter_group_name_max_length', now()),
	(34, 'auth', '0011_update_proxy_permissions', now()),
	(35, 'auth', '0012_alter_user_first_name_max_length', now()),
	(36, 'storage', '0008_membership', now()),
	(37, 'storage', '0009_tokens', now()),
	(38, 'storage', '0010_management_api', now()),
	(39, 'storage', '0012_retired_key', now()),
	(40, 'storage', '0013_rename_models', now()),
	(41, 'storage', '0014_change_functions', now()),
	(42, 'storage', '0015_table_use', now()),
	(43, 'storage', '0016_property_index', now()),
	(44, 'storage', '0017_account_kind', now()),
	(45, 'storage', '0018_adaptive_indexes', now()),
	(46, 'storage', '0019_throughput', now()),
	(47, 'storage', '0020_long_keys', now()),
	(48, 'storage', '0021_history', now()),
	(49, 'storage', '0022_projection', now()),
	(50, 'storage', '0023_feed_marks', now()),
	(51, 'storage', '0024_snapshots', now()),
	(52, 'storage', '0027_history_cluster', now()),
	(53, 'storage', '0028_consistency', now()),
	(54, 'storage', '0029_distribution', now()),
	(55, 'storage', '0030_throughput', now()),
	(56, 'storage', '0031_distribution_request', now()),
	(57, 'storage', '0032_long_operation', now()),
	(58, 'storage', '0033_database_version', now()),
	(59, 'storage', '0034_moments', now()),
	(60, 'storage', '0035_branch_is_whole', now()),
	(61, 'storage', '0036_one_record', now()),
	(62, 'storage', '0037_given_roles', now()),
	(63, 'storage', '0038_quotas', now()),
	(64, 'console', '0006_saved_queries', now()),
	(65, 'console', '0007_saved_urls', now()),
	(66, 'console', '0008_property_order', now()),
	(67, 'console', '0009_automatic_time_zone', now()),
	(68, 'console', '0010_column_widths', now()),
	(69, 'console', '0008_admins_by_group', now()),
	(70, 'console', '0009_saved_urls_of_an_account', now()),
	(71, 'console', '0010_presence', now()),
	(72, 'console', '0011_temporary_passwords', now()),
	(73, 'console', '0012_temporary_passwords_expire', now()),
	(74, 'mfa', '0001_initial', now()),
	(75, 'mfa', '0002_authenticator_timestamps', now()),
	(76, 'mfa', '0003_authenticator_type_uniq', now()),
	(77, 'sessions', '0001_initial', now()),
	(78, 'socialaccount', '0001_initial', now()),
	(79, 'socialaccount', '0002_token_max_lengths', now()),
	(80, 'socialaccount', '0003_extra_data_default_dict', now()),
	(81, 'socialaccount', '0004_app_provider_id_settings', now()),
	(82, 'socialaccount', '0005_socialtoken_nullable_app', now()),
	(83, 'socialaccount', '0006_alter_socialaccount_extra_data', now()),
	(84, 'storage', '0039_clock', now()),
	(85, 'storage', '0040_stored_changes', now()),
	(86, 'storage', '0041_adaptive_by_default', now()),
	(87, 'storage', '0042_change_sets', now()),
	(88, 'storage', '0043_jobs', now()),
	(89, 'storage', '0044_operations_as_jobs', now()),
	(90, 'storage', '0045_import_drafts', now()),
	(91, 'storage', '0046_recorded_requests', now()),
	(92, 'storage', '0047_notices', now()),
	(93, 'storage', '0048_metrics', now()),
	(94, 'storage', '0049_comments', now()),
	(95, 'storage', '0050_links_and_presence', now()),
	(96, 'storage', '0051_entity_moves', now()),
	(97, 'storage', '0052_copied_tables', now()),
	(98, 'storage', '0053_noted_clock', now()),
	(99, 'storage', '0054_job_starters', now()),
	(100, 'storage', '0055_one_text', now()),
	(101, 'storage', '0056_no_metrics_tables', now()),
	(102, 'storage', '0057_requests_counted_once', now()),
	(103, 'storage', '0058_webhook_format', now()),
	(104, 'storage', '0059_rehearsals', now()),
	(105, 'storage', '0060_query_shapes', now()),
	(106, 'storage', '0061_node_moments', now()),
	(107, 'storage', '0062_pending_relations', now()),
	(108, 'storage', '0063_quicker_tables', now()),
	(109, 'usersessions', '0001_initial', now()),
	(110, 'storage', '0008_squashed_0012_retired_key', now()),
	(111, 'storage', '0014_squashed_0035_branch_is_whole', now()),
	(112, 'storage', '0001_squashed_0007_append_only', now()),
	(113, 'console', '0001_squashed_0005_queries', now()),
	(114, 'console', '0007_squashed_0010_column_widths', now());



SELECT pg_catalog.setval('public.auth_permission_id_seq', 292, true);



SELECT pg_catalog.setval('public.django_content_type_id_seq', 73, true);



SELECT pg_catalog.setval('public.django_migrations_id_seq', 114, true);




SET LOCAL check_function_bodies = on;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
