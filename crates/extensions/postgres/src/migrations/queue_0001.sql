-- Tasks for workers. Times are the server's: hosts need not agree on theirs.

CREATE TABLE queue_workers (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     TEXT NOT NULL,
    slots    BIGINT NOT NULL,
    labels   TEXT[] NOT NULL,
    started  TIMESTAMPTZ NOT NULL DEFAULT now(),
    seen     TIMESTAMPTZ NOT NULL DEFAULT now(),
    draining BOOLEAN NOT NULL DEFAULT false
);

-- A task is its worker's for as long as that one is seen. Each taking is a new epoch, and nothing is written in the name of an older
-- one. No heartbeat touches this table: writes of the store share a lock on the row.
CREATE TABLE queue_tasks (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state        TEXT NOT NULL DEFAULT 'queued',
    priority     BIGINT NOT NULL DEFAULT 0,
    not_before   TIMESTAMPTZ NOT NULL DEFAULT now(),
    unique_key   TEXT COLLATE "C" UNIQUE,
    labels       TEXT[] NOT NULL DEFAULT '{}',
    request      TEXT NOT NULL,
    bundle       BYTEA,
    conversation TEXT COLLATE "C" NOT NULL,
    usd_limit    DOUBLE PRECISION,
    token_limit  BIGINT,
    max_attempts BIGINT NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    epoch        BIGINT NOT NULL DEFAULT 0,
    worker       BIGINT,
    cancel_asked BOOLEAN NOT NULL DEFAULT false,
    base         TEXT,
    day          DATE,
    reserved_usd    DOUBLE PRECISION NOT NULL DEFAULT 0,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    spent_usd       DOUBLE PRECISION NOT NULL DEFAULT 0,
    spent_tokens    BIGINT NOT NULL DEFAULT 0,
    flying_usd      DOUBLE PRECISION NOT NULL DEFAULT 0,
    flying_tokens   BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at   TIMESTAMPTZ,
    ended_at     TIMESTAMPTZ,
    result       TEXT,
    patch        BYTEA,
    branch       TEXT
);
CREATE INDEX queue_tasks_open ON queue_tasks (priority DESC, id) WHERE state IN ('queued', 'running');
CREATE INDEX queue_tasks_of_day ON queue_tasks (day);

-- What a task changed in its workspace, as it is now: another worker puts it into a fresh clone.
CREATE TABLE queue_files (
    task    BIGINT NOT NULL REFERENCES queue_tasks (id) ON DELETE CASCADE,
    path    BYTEA NOT NULL,
    kind    TEXT NOT NULL,
    mode    BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (task, path)
);
-- Contents come as they are; those of source files would gain little, and be slower.
ALTER TABLE queue_files ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE queue_log (
    task BIGINT NOT NULL REFERENCES queue_tasks (id) ON DELETE CASCADE,
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    line TEXT NOT NULL,
    PRIMARY KEY (task, number)
);
