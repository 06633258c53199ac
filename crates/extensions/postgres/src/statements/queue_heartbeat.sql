WITH seen AS (
    INSERT INTO queue_workers (id, name, slots, labels, lease_ms, draining, problem) OVERRIDING SYSTEM VALUE
    VALUES ($1::bigint, $2::text, $3::bigint, $4::text[], $5::bigint, $6::boolean, $7::text)
    ON CONFLICT (id) DO UPDATE SET seen = now(), draining = excluded.draining, problem = excluded.problem RETURNING id),
promoted AS (
    UPDATE queue_tasks SET due = true WHERE id IN (
        SELECT id FROM queue_tasks WHERE state = 'queued' AND NOT due AND not_before <= now() FOR UPDATE SKIP LOCKED)
    RETURNING id),
lost AS (
    UPDATE queue_tasks t SET worker = NULL, reserved_usd = 0, reserved_tokens = 0,
        spent_usd = t.spent_usd + t.flying_usd, spent_tokens = t.spent_tokens + t.flying_tokens, flying_usd = 0, flying_tokens = 0,
        state = CASE WHEN t.cancel_asked THEN 'cancelled'::text
            WHEN t.attempts >= t.max_attempts OR t.failures >= $8::bigint THEN 'failed'::text ELSE 'queued'::text END,
        ended_at = CASE WHEN t.cancel_asked OR t.attempts >= t.max_attempts OR t.failures >= $8::bigint THEN now() END,
        result = CASE WHEN t.cancel_asked THEN $9::text
            WHEN t.attempts >= t.max_attempts OR t.failures >= $8::bigint THEN replace($10::text, 'ATTEMPTS'::text, greatest(t.attempts, t.failures)::text) ELSE t.result END,
        due = greatest(t.attempts, t.failures) <= 1::bigint,
        not_before = now() + interval '1 second' * least(300::bigint, (greatest(t.attempts, t.failures, 1::bigint) - 1::bigint) * (greatest(t.attempts, t.failures, 1::bigint) - 1::bigint))::double precision
    WHERE id IN (
        SELECT o.id FROM queue_tasks o WHERE o.state = 'running' AND o.worker IS DISTINCT FROM $1::bigint
            AND NOT EXISTS (SELECT 1 FROM queue_workers w WHERE w.id = o.worker AND w.seen >= now() - interval '1 millisecond' * w.lease_ms::double precision)
        FOR UPDATE SKIP LOCKED)
    RETURNING t.id, t.state),
emptied AS (
    DELETE FROM queue_files f USING lost l WHERE f.task = l.id AND l.state <> 'queued' RETURNING f.task)
SELECT json_build_object(
    'format', (SELECT max(format) FROM queue_format),
    'registered', (SELECT count(*) FROM seen),
    'notified', (SELECT count(pg_notify('haft_queue_'::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)), 'task'::text))
                 FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM promoted) OR EXISTS (SELECT 1 FROM lost)) AS changed),
    'next_ms', (SELECT ceil(extract(epoch FROM min(q.not_before) - now()) * 1000::numeric)::bigint
                FROM queue_tasks q WHERE q.state = 'queued' AND NOT q.due AND q.not_before > now()),
    'held', (SELECT coalesce(json_agg(json_build_array(h.id, h.epoch, h.cancel_asked)), '[]'::json)
             FROM queue_tasks h WHERE h.worker = $1::bigint AND h.state = 'running'))::text
