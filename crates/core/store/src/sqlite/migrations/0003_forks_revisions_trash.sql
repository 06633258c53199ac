-- Which messages a conversation has: those of each source up to a position, oldest source first, itself last. A fork shares the
-- rows of what it was forked from, with revisions and facts as they were at that moment.

CREATE TABLE lineage (
    conversation  INTEGER NOT NULL REFERENCES conversations (key),
    step          INTEGER NOT NULL,
    source        INTEGER NOT NULL REFERENCES conversations (key),
    last_position INTEGER NOT NULL,
    last_revision INTEGER NOT NULL, -- a key of revisions
    last_fact     INTEGER NOT NULL, -- a key of facts
    PRIMARY KEY (conversation, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX lineage_by_source ON lineage (source);
INSERT INTO lineage
SELECT key, 1, key, 9223372036854775807, 9223372036854775807, 9223372036854775807 FROM conversations;

-- What is different about a message; the message row itself stays. Of several the newest counts.
CREATE TABLE revisions (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    position     INTEGER NOT NULL,
    made_at      TEXT NOT NULL,
    hash         BLOB NOT NULL,
    body         TEXT NOT NULL -- the whole message as it is from then on
) STRICT;
CREATE INDEX revisions_in_order ON revisions (conversation, position);

ALTER TABLE conversations ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;
-- Set while it is in the trash.
ALTER TABLE conversations ADD COLUMN deleted_at TEXT;

-- Where the message of a fact stands, so that a fork has the facts of its messages only.
ALTER TABLE facts ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE facts SET position = coalesce(
    (SELECT messages.position FROM messages
     WHERE messages.conversation = facts.conversation AND messages.message_id = json_extract(facts.body, '$.message_id')),
    0);
