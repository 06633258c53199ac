-- Times are RFC 3339 in UTC with nine decimals, so that they sort as text and lose nothing.
-- JSON is kept as text: a person with the sqlite3 shell can read everything.

CREATE TABLE conversations (
    key         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    -- Counters, so that appending never counts rows. The newest message has this position, the newest request this number.
    messages    INTEGER NOT NULL DEFAULT 0,
    requests    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Written once, never updated. A message id is unique because its first eight digits are.
CREATE TABLE messages (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    position     INTEGER NOT NULL,
    short_id     INTEGER NOT NULL,
    message_id   TEXT NOT NULL,
    role         TEXT NOT NULL,
    hash         BLOB NOT NULL, -- what the model sees of it; the request log refers to it, and damage shows
    body         TEXT NOT NULL  -- the whole message
) STRICT;
CREATE UNIQUE INDEX messages_in_order ON messages (conversation, position);
CREATE UNIQUE INDEX messages_by_id ON messages (conversation, short_id);

CREATE TABLE facts (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    noted_at     TEXT NOT NULL,
    body         TEXT NOT NULL
) STRICT;
CREATE INDEX facts_in_order ON facts (conversation, key);

CREATE TABLE states (
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    name         TEXT NOT NULL,
    value        TEXT NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

-- Each request as the difference to the one before.
CREATE TABLE requests (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    number       INTEGER NOT NULL,
    sent_at      TEXT NOT NULL,
    whole        INTEGER NOT NULL, -- 1 when nothing before it is needed to read it
    body         TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX requests_in_order ON requests (conversation, number);

-- What the engine made for requests, and lists of tools: once each, shared by all conversations.
CREATE TABLE texts (
    hash BLOB PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE current_conversations (
    namespace    TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key)
) STRICT, WITHOUT ROWID;
