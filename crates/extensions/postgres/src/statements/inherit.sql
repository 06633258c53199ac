INSERT INTO lineage
SELECT $1, step, source, least(last_position, $3),
       least(last_revision, (SELECT coalesce(max(key), 0) FROM revisions WHERE conversation = source)),
       least(last_fact, (SELECT coalesce(max(key), 0) FROM facts WHERE conversation = source))
FROM lineage WHERE conversation = $2
