UPDATE queue_tasks t SET state = 'running', due = false, worker = $1::bigint, epoch = t.epoch + 1, failures = t.failures + 1,
    worker_name = (SELECT w.name FROM queue_workers w WHERE w.id = $1::bigint),
    day = (now() AT TIME ZONE 'UTC')::date, started_at = coalesce(t.started_at, now()),
    usd_limit = coalesce(t.usd_limit, $8::double precision), token_limit = coalesce(t.token_limit, $9::bigint),
    reserved_usd = coalesce(t.usd_limit, $8::double precision, 0::double precision),
    reserved_tokens = coalesce(t.token_limit, $9::bigint, 0::bigint),
    spent_usd = t.spent_usd + t.flying_usd, spent_tokens = t.spent_tokens + t.flying_tokens, flying_usd = 0, flying_tokens = 0
FROM next WHERE t.id = next.id AND t.state = 'queued' RETURNING t.id, t.epoch
