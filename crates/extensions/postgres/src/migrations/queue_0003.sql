-- The tasks that a worker would take, or end, if it started now: those whose time has come, whether a heartbeat has marked them as due
-- or not, and those whose worker is lost. Schedulers that start workers for waiting tasks count these rows: without a worker, no
-- heartbeat marks or returns a task. A lost task that was interrupted before can still wait for a pause after its return. Limits are
-- in the configuration of workers and are unknown here. The index of each part contains only the tasks that it may select.
CREATE VIEW queue_ready AS
WITH candidates AS (
    SELECT id, priority, labels, repository FROM queue_tasks WHERE state = 'queued' AND due
    UNION ALL
    SELECT id, priority, labels, repository FROM queue_tasks WHERE state = 'queued' AND NOT due AND not_before <= now()
    UNION ALL
    SELECT t.id, t.priority, t.labels, t.repository FROM queue_tasks t WHERE t.state = 'running' AND NOT EXISTS (
        SELECT 1 FROM queue_workers w WHERE w.id = t.worker AND w.seen >= now() - interval '1 millisecond' * w.lease_ms::double precision))
SELECT c.id, c.priority, c.labels, c.repository FROM candidates c
WHERE NOT EXISTS (SELECT 1 FROM queue_pauses p WHERE p.label = '' OR p.label = ANY (c.labels));
