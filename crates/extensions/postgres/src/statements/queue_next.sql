WITH alive AS MATERIALIZED (
    UPDATE queue_workers SET seen = now() WHERE id = $1::bigint AND (SELECT max(format) FROM queue_format) <= $2::integer RETURNING id),
room AS MATERIALIZED (
    SELECT l.label,
        l.usd - (SELECT coalesce(sum(CASE WHEN u.day = (now() AT TIME ZONE 'UTC')::date THEN greatest(u.reserved_usd, u.spent_usd) ELSE 0::double precision END
                                     + CASE WHEN u.earlier_day = (now() AT TIME ZONE 'UTC')::date THEN u.earlier_day_usd ELSE 0::double precision END), 0::double precision)
                 FROM queue_tasks u WHERE (u.day = (now() AT TIME ZONE 'UTC')::date OR u.earlier_day = (now() AT TIME ZONE 'UTC')::date)
                     AND (l.label = ''::text OR l.label = ANY (u.labels))) AS usd,
        l.tokens::numeric - (SELECT coalesce(sum(CASE WHEN u.day = (now() AT TIME ZONE 'UTC')::date THEN greatest(u.reserved_tokens, u.spent_tokens) ELSE 0::bigint END
                                     + CASE WHEN u.earlier_day = (now() AT TIME ZONE 'UTC')::date THEN u.earlier_day_tokens ELSE 0::bigint END), 0::numeric)
                 FROM queue_tasks u WHERE (u.day = (now() AT TIME ZONE 'UTC')::date OR u.earlier_day = (now() AT TIME ZONE 'UTC')::date)
                     AND (l.label = ''::text OR l.label = ANY (u.labels))) AS tokens
    FROM unnest($5::text[], $6::double precision[], $7::bigint[]) AS l (label, usd, tokens)),
full_labels AS MATERIALIZED (
    SELECT c.label FROM unnest($10::text[], $11::bigint[]) AS c (label, most)
    WHERE (SELECT count(*) FROM queue_tasks r WHERE r.state = 'running' AND c.label = ANY (r.labels)) >= c.most),
full_repositories AS MATERIALIZED (
    SELECT r.repository FROM queue_tasks r WHERE r.state = 'running' AND r.repository IS NOT NULL AND $12::bigint IS NOT NULL
    GROUP BY r.repository HAVING count(*) >= $12::bigint),
next AS MATERIALIZED (
    SELECT t.id FROM queue_tasks t
    WHERE t.state = 'queued' AND (t.due OR $13::bigint IS NOT NULL AND t.attempts = 0 AND t.failures = 0) AND t.id <> ALL ($14::bigint[])
      AND EXISTS (SELECT 1 FROM alive) AND ($13::bigint IS NULL OR t.id = $13::bigint)
      AND ($3::text[] = '{}'::text[] OR t.labels && $3::text[]) AND NOT t.labels && $4::text[]
      AND NOT EXISTS (SELECT 1 FROM queue_pauses p WHERE p.label = ''::text OR p.label = ANY (t.labels))
      AND NOT EXISTS (SELECT 1 FROM full_labels f WHERE f.label = ANY (t.labels))
      AND NOT EXISTS (SELECT 1 FROM full_repositories f WHERE f.repository = t.repository)
      AND NOT EXISTS (
          SELECT 1 FROM room r WHERE (r.label = ''::text OR r.label = ANY (t.labels)) AND (
              r.usd + CASE WHEN t.day = (now() AT TIME ZONE 'UTC')::date THEN greatest(t.reserved_usd, t.spent_usd) ELSE 0::double precision END
                  < coalesce(t.usd_limit, $8::double precision, 'infinity'::double precision)
              OR r.tokens + CASE WHEN t.day = (now() AT TIME ZONE 'UTC')::date THEN greatest(t.reserved_tokens, t.spent_tokens) ELSE 0::bigint END
                  < coalesce(t.token_limit, $9::bigint, 9223372036854775807::bigint)::numeric))
    ORDER BY t.priority DESC, t.id
    LIMIT 1 FOR UPDATE OF t SKIP LOCKED)
