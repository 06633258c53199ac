WITH allowed AS MATERIALIZED (
    SELECT w.term FROM writers w, queue_tasks t WHERE w.conversation = $1::text AND w.term = $2::bigint
        AND (SELECT max(f.format) FROM haft_format f) <= $3::integer
        AND t.id = $4::bigint AND t.epoch = $5::bigint AND t.state = 'running' AND t.counted = t.epoch
    FOR SHARE OF w, t)
