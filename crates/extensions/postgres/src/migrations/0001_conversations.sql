-- The same tables as in the embedded store. Times are text that sorts, JSON is kept as the text it came as.

CREATE TABLE conversations (
    key         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT COLLATE "C" NOT NULL UNIQUE,
    namespace   TEXT COLLATE "C" NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    created_at  TEXT COLLATE "C" NOT NULL,
    updated_at  TEXT COLLATE "C" NOT NULL,
    messages    BIGINT NOT NULL DEFAULT 0,
    requests    BIGINT NOT NULL DEFAULT 0,
    revisions   BIGINT NOT NULL DEFAULT 0,
    deleted_at  TEXT COLLATE "C"
);

CREATE TABLE messages (
    key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation BIGINT NOT NULL REFERENCES conversations (key),
    position     BIGINT NOT NULL,
    short_id     BIGINT NOT NULL,
    message_id   TEXT NOT NULL,
    role         TEXT NOT NULL,
    hash         BYTEA NOT NULL,
    body         TEXT NOT NULL,
    UNIQUE (conversation, position),
    UNIQUE (conversation, short_id)
);

CREATE TABLE lineage (
    conversation  BIGINT NOT NULL REFERENCES conversations (key),
    step          BIGINT NOT NULL,
    source        BIGINT NOT NULL REFERENCES conversations (key),
    last_position BIGINT NOT NULL,
    last_revision BIGINT NOT NULL,
    last_fact     BIGINT NOT NULL,
    PRIMARY KEY (conversation, step)
);
CREATE INDEX lineage_by_source ON lineage (source);

CREATE TABLE revisions (
    key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation BIGINT NOT NULL REFERENCES conversations (key),
    position     BIGINT NOT NULL,
    made_at      TEXT NOT NULL,
    hash         BYTEA NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX revisions_in_order ON revisions (conversation, position);

CREATE TABLE facts (
    key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation BIGINT NOT NULL REFERENCES conversations (key),
    position     BIGINT NOT NULL,
    noted_at     TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX facts_in_order ON facts (conversation, key);

CREATE TABLE states (
    conversation BIGINT NOT NULL REFERENCES conversations (key),
    name         TEXT NOT NULL,
    value        TEXT NOT NULL,
    PRIMARY KEY (conversation, name)
);

CREATE TABLE project_states (
    namespace TEXT COLLATE "C" NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE requests (
    key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation BIGINT NOT NULL REFERENCES conversations (key),
    number       BIGINT NOT NULL,
    sent_at      TEXT NOT NULL,
    whole        BOOLEAN NOT NULL,
    body         TEXT NOT NULL,
    UNIQUE (conversation, number)
);

CREATE TABLE texts (
    hash BYTEA PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE current_conversations (
    namespace    TEXT COLLATE "C" PRIMARY KEY,
    conversation BIGINT NOT NULL REFERENCES conversations (key)
);

-- Who has the right to write, for those who wait; the right itself is a lock of the server. The term counts up with each taking,
-- so that one who lost the lock with its connection learns it.
CREATE TABLE writers (
    conversation TEXT COLLATE "C" PRIMARY KEY,
    holder       TEXT NOT NULL,
    term         BIGINT NOT NULL DEFAULT 1
);

-- What can be found, and what is still to be indexed: keys are given before a transaction ends, so "above the last one" would
-- miss some. A revision has its key as a negative number.
CREATE TABLE entries (
    message BIGINT PRIMARY KEY,
    terms   TSVECTOR NOT NULL
);
CREATE INDEX entries_by_term ON entries USING gin (terms);
CREATE TABLE unindexed (
    message BIGINT PRIMARY KEY
);
