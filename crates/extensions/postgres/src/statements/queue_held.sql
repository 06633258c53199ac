WITH held AS MATERIALIZED (SELECT id FROM queue_tasks WHERE id = $1::bigint AND epoch = $2::bigint AND state = 'running' FOR SHARE)
