-- Paths are bytes, because file names are. Times are RFC 3339 in UTC. Hashes are the first 16 bytes of BLAKE3.

-- What files held, once each, whoever held it.
CREATE TABLE contents (
    key   INTEGER PRIMARY KEY,
    hash  BLOB NOT NULL UNIQUE,
    size  INTEGER NOT NULL,  -- unpacked
    zstd  INTEGER NOT NULL,  -- 1 when packed
    bytes BLOB NOT NULL
) STRICT;

-- A call that changed files, or an undo or redo of such calls. The order of keys is the order of events.
CREATE TABLE steps (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    kind         TEXT NOT NULL,     -- call, undo, redo
    message_id   TEXT,
    call_id      TEXT,
    tool         TEXT,
    at           TEXT NOT NULL,
    done         INTEGER NOT NULL   -- 0 while an undo or redo is under way
) STRICT;
CREATE INDEX steps_of_call ON steps (conversation, message_id, call_id);

-- What a step did to a path. `after` is null until it is known.
CREATE TABLE changes (
    step        INTEGER NOT NULL REFERENCES steps (key) ON DELETE CASCADE,
    path        BLOB NOT NULL,
    before_kind TEXT NOT NULL,      -- absent, file, link, folder, unsaved
    before_mode INTEGER NOT NULL,
    before_size INTEGER NOT NULL,
    before_hash BLOB,
    after_kind  TEXT,
    after_mode  INTEGER,
    after_size  INTEGER,
    after_hash  BLOB,
    taken_back  INTEGER,            -- the undo or redo that reversed it
    PRIMARY KEY (step, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_of_path ON changes (path, step);

-- What a tree looked like when it was last scanned, so that the next scan reads only what changed since.
CREATE TABLE trees (
    key     INTEGER PRIMARY KEY,
    root    BLOB NOT NULL UNIQUE,
    used_at TEXT NOT NULL
) STRICT;
CREATE TABLE tree_files (
    tree     INTEGER NOT NULL REFERENCES trees (key) ON DELETE CASCADE,
    path     BLOB NOT NULL,         -- relative to the root
    kind     TEXT NOT NULL,
    mode     INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    hash     BLOB,
    mtime_ns INTEGER,               -- null: look again
    ctime_ns INTEGER,
    inode    INTEGER,
    device   INTEGER,
    PRIMARY KEY (tree, path)
) STRICT, WITHOUT ROWID;
