-- Room on disk of every table of this product, partitions and indexes together.
WITH leaves AS (
    SELECT
        coalesce(pg_partition_root(class.oid), class.oid)::regclass::text AS name,
        pg_total_relation_size(class.oid) AS bytes,
        greatest(class.reltuples, 0) AS estimated,
        class.relispartition
    FROM pg_class AS class
    JOIN pg_namespace AS space ON space.oid = class.relnamespace
    WHERE class.relkind = 'r'
        AND space.nspname = current_schema()
        AND class.relname ~ '^(diagnostics|plans|agents)_'
)
SELECT
    name,
    sum(bytes)::bigint,
    sum(estimated)::bigint,
    (count(*) FILTER (WHERE relispartition))::integer
FROM leaves
GROUP BY name
ORDER BY sum(bytes) DESC, name
