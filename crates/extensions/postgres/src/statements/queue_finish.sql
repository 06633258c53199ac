WITH ended AS (
    UPDATE queue_tasks SET state = $3::text, outcome = $4::text, result = $5::text, patch = $6::bytea, branch = $7::text, ended_at = now(),
        reserved_usd = 0, reserved_tokens = 0, flying_usd = 0, flying_tokens = 0
    WHERE id = $1::bigint AND epoch = $2::bigint AND state = 'running' RETURNING id),
emptied AS (DELETE FROM queue_files USING ended WHERE task = ended.id AND NOT $8::boolean RETURNING task)
SELECT (SELECT count(*) FROM ended),
    (SELECT count(pg_notify('haft_queue_'::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)), 'task'::text))
     FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM queue_tasks WHERE state = 'queued' AND due)) AS waiting)
