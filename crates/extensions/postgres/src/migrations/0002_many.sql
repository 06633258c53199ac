-- What the user of one project asks for must not depend on how many others there are.

CREATE INDEX conversations_by_use ON conversations (namespace, updated_at DESC, key DESC);
CREATE INDEX conversations_by_name ON conversations (name);

-- Names and descriptions by their terms, and those still to be indexed.
CREATE TABLE names (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (key),
    terms        TSVECTOR NOT NULL
);
CREATE INDEX names_by_term ON names USING gin (terms);
CREATE TABLE unnamed (
    conversation BIGINT PRIMARY KEY
);
INSERT INTO unnamed SELECT key FROM conversations;

-- Entries have a term for their namespace from now on, and are made anew.
INSERT INTO unindexed SELECT message FROM entries ON CONFLICT DO NOTHING;
DELETE FROM entries;
