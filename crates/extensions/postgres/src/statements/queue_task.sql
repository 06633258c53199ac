SELECT row_to_json(v)::text FROM (SELECT t.id, t.state, t.status, t.priority, t.labels, t.request::json AS request, t.conversation,
    t.unique_key, t.usd_limit, t.token_limit, t.attempts, t.max_attempts, t.failures, t.epoch, t.worker_name AS worker, t.cancel_asked, t.base,
    t.spent_usd, t.spent_tokens, t.earlier_usd, t.earlier_tokens, t.retries, t.retried, t.branch, t.result::json AS result,
    t.bundle IS NOT NULL AS has_bundle, coalesce(octet_length(t.patch), 0) AS patch_bytes,
    coalesce((SELECT max(l.number) FROM queue_log l WHERE l.task = t.id), 0::bigint) AS last_logged,
    (extract(epoch FROM t.not_before) * 1000::numeric)::bigint AS not_before,
    (extract(epoch FROM t.created_at) * 1000::numeric)::bigint AS created_at,
    (extract(epoch FROM t.started_at) * 1000::numeric)::bigint AS started_at,
    (extract(epoch FROM t.ended_at) * 1000::numeric)::bigint AS ended_at
FROM queue_tasks t
