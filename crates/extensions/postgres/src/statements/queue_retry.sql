UPDATE queue_tasks SET state = 'queued', cancel_asked = false, attempts = 0, failures = 0, epoch = epoch + 1, conversation = $2::text,
    not_before = now() + interval '1 second' * $3::double precision, due = $3::double precision = 0::double precision,
    earlier_day_usd = CASE WHEN day IS NULL OR earlier_day = day THEN earlier_day_usd ELSE 0 END + spent_usd + flying_usd,
    earlier_day_tokens = CASE WHEN day IS NULL OR earlier_day = day THEN earlier_day_tokens ELSE 0 END + spent_tokens + flying_tokens,
    earlier_day = coalesce(day, earlier_day), earlier_usd = earlier_usd + spent_usd + flying_usd, earlier_tokens = earlier_tokens + spent_tokens + flying_tokens,
    spent_usd = 0, spent_tokens = 0, flying_usd = 0, flying_tokens = 0, reserved_usd = 0, reserved_tokens = 0, day = NULL,
    ended_at = NULL, outcome = NULL, result = NULL, patch = NULL, branch = NULL, base = NULL, announced = false, announce_after = NULL,
    retried = CASE WHEN $4::boolean THEN retried + 1 ELSE 0 END
WHERE id = $1::bigint AND state NOT IN ('queued', 'running') RETURNING id
