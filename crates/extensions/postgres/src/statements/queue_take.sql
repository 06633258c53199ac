UPDATE queue_tasks SET state = 'running', worker = $2, epoch = epoch + 1, attempts = attempts + 1,
    day = (now() AT TIME ZONE 'UTC')::date, started_at = coalesce(started_at, now()),
    usd_limit = coalesce(usd_limit, $3::double precision), token_limit = coalesce(token_limit, $4::bigint),
    reserved_usd = coalesce(usd_limit, $3::double precision, 0::double precision),
    reserved_tokens = coalesce(token_limit, $4::bigint, 0::bigint),
    spent_usd = spent_usd + flying_usd, spent_tokens = spent_tokens + flying_tokens, flying_usd = 0, flying_tokens = 0
WHERE id = $1 AND (state = 'queued' OR state = 'running' AND NOT EXISTS (
    SELECT 1 FROM queue_workers w WHERE w.id = worker AND w.seen >= now() - $5::double precision * interval '1 second'))
