SELECT t.id FROM queue_tasks t
WHERE (t.state = 'queued' AND t.not_before <= now()
       OR t.state = 'running' AND NOT EXISTS (
           SELECT 1 FROM queue_workers w WHERE w.id = t.worker AND w.seen >= now() - $1::double precision * interval '1 second'))
  AND ($2::text[] = '{}'::text[] OR t.labels && $2::text[]) AND NOT t.labels && $3::text[]
  AND NOT EXISTS (
      SELECT 1 FROM unnest($4::text[], $5::double precision[], $6::bigint[]) AS l (label, usd, tokens)
      WHERE (l.label = ''::text OR l.label = ANY (t.labels)) AND (
          l.usd < (SELECT coalesce(sum(greatest(u.reserved_usd, u.spent_usd)), 0::double precision) FROM queue_tasks u
                   WHERE u.day = (now() AT TIME ZONE 'UTC')::date AND u.id <> t.id AND (l.label = ''::text OR l.label = ANY (u.labels)))
                  + coalesce(t.usd_limit, $7::double precision, 'infinity'::double precision)
          OR l.tokens::numeric < (SELECT coalesce(sum(greatest(u.reserved_tokens, u.spent_tokens)), 0::numeric) FROM queue_tasks u
                   WHERE u.day = (now() AT TIME ZONE 'UTC')::date AND u.id <> t.id AND (l.label = ''::text OR l.label = ANY (u.labels)))
                  + coalesce(t.token_limit, $8::bigint, 9223372036854775807::bigint)::numeric))
ORDER BY (t.state = 'running') DESC, t.priority DESC, t.id
LIMIT 1 FOR UPDATE OF t SKIP LOCKED
