WITH released AS (
    UPDATE queue_tasks t SET worker = NULL, reserved_usd = 0, reserved_tokens = 0,
        spent_usd = t.spent_usd + t.flying_usd, spent_tokens = t.spent_tokens + t.flying_tokens, flying_usd = 0, flying_tokens = 0,
        attempts = t.attempts - CASE WHEN $3::boolean AND t.counted = t.epoch THEN 1 ELSE 0 END,
        failures = t.failures - CASE WHEN $3::boolean AND t.counted <> t.epoch THEN 1 ELSE 0 END,
        state = CASE WHEN t.cancel_asked THEN 'cancelled'::text
            WHEN NOT $3::boolean AND (t.attempts >= t.max_attempts OR t.failures >= $5::bigint) THEN 'failed'::text ELSE 'queued'::text END,
        ended_at = CASE WHEN t.cancel_asked OR NOT $3::boolean AND (t.attempts >= t.max_attempts OR t.failures >= $5::bigint) THEN now() END,
        result = CASE WHEN t.cancel_asked THEN $6::text
            WHEN NOT $3::boolean AND (t.attempts >= t.max_attempts OR t.failures >= $5::bigint)
            THEN replace($7::text, 'ATTEMPTS'::text, greatest(t.attempts, t.failures)::text) ELSE t.result END,
        due = $4::double precision = 0::double precision,
        not_before = now() + interval '1 second' * $4::double precision * CASE WHEN $3::boolean THEN 1::double precision
            ELSE least(300::bigint, greatest(t.attempts, t.failures, 1::bigint) * greatest(t.attempts, t.failures, 1::bigint))::double precision END
    WHERE t.id = $1::bigint AND t.epoch = $2::bigint AND t.state = 'running' RETURNING t.id, t.state),
emptied AS (DELETE FROM queue_files f USING released r WHERE f.task = r.id AND r.state <> 'queued' RETURNING f.task)
SELECT (SELECT count(*) FROM released),
    (SELECT count(pg_notify('haft_queue_'::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)), 'task'::text)) FROM released)
