-- Workers: each has its own lease, and a problem while it takes no tasks.
ALTER TABLE queue_workers
    ADD COLUMN lease_ms BIGINT NOT NULL DEFAULT 30000,
    ADD COLUMN problem TEXT;

ALTER TABLE queue_tasks
    -- True once `not_before` has passed. An index can't contain the current time, so heartbeats set this flag.
    ADD COLUMN due BOOLEAN NOT NULL DEFAULT false,
    -- The outcome of the run, for tasks that have ended.
    ADD COLUMN outcome TEXT,
    -- The claims in a row that stored no message, and the newest claim that did.
    ADD COLUMN failures BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN counted BIGINT NOT NULL DEFAULT 0,
    -- What was spent before the task was retried, and the part of it that was spent on `earlier_day`.
    ADD COLUMN earlier_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD COLUMN earlier_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN earlier_day DATE,
    ADD COLUMN earlier_day_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD COLUMN earlier_day_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN worker_name TEXT,
    ADD COLUMN repository TEXT,
    -- Failed runs that are repeated without being asked, how often that was done, and the pause before.
    ADD COLUMN retries BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN retried BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN retry_seconds DOUBLE PRECISION NOT NULL DEFAULT 60,
    -- Whether the webhook was called after the task's end, and the time from which another worker may call it.
    ADD COLUMN announced BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN announce_after TIMESTAMPTZ;

UPDATE queue_tasks SET announced = ended_at IS NOT NULL, due = state = 'queued' AND not_before <= now(), repository = request::json->>'repository',
    outcome = CASE WHEN state = 'ended' THEN coalesce(result::json->>'outcome', 'ended') END,
    counted = CASE WHEN state = 'running' THEN epoch ELSE 0 END,
    -- Passwords in addresses of tasks that are over.
    request = CASE WHEN state IN ('queued', 'running') THEN request
        ELSE regexp_replace(request, '(https?://[^/@":]*):[^/@"]*@', '\1:***@', 'g') END;
UPDATE queue_tasks SET repository = regexp_replace(repository, '(https?://[^/@:]*):[^/@]*@', '\1:***@') WHERE repository LIKE 'http%';

-- The name under which a task is listed and counted.
ALTER TABLE queue_tasks ADD COLUMN status TEXT NOT NULL
    GENERATED ALWAYS AS (CASE WHEN state = 'ended' THEN coalesce(outcome, 'ended') ELSE state END) STORED;

DROP INDEX queue_tasks_open;
CREATE INDEX queue_tasks_next ON queue_tasks (priority DESC, id) WHERE state = 'queued' AND due;
CREATE INDEX queue_tasks_later ON queue_tasks (not_before) WHERE state = 'queued' AND NOT due;
CREATE INDEX queue_tasks_running ON queue_tasks (worker) WHERE state = 'running';
CREATE INDEX queue_tasks_of_earlier_day ON queue_tasks (earlier_day) WHERE earlier_day IS NOT NULL;
CREATE INDEX queue_tasks_by_status ON queue_tasks (status, id);
CREATE INDEX queue_tasks_by_end ON queue_tasks (ended_at) WHERE ended_at IS NOT NULL;

-- The labels whose tasks no worker takes; an empty label stands for all tasks.
CREATE TABLE queue_pauses (
    label TEXT COLLATE "C" PRIMARY KEY,
    since TIMESTAMPTZ NOT NULL DEFAULT now()
);
