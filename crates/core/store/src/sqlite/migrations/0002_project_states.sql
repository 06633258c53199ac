-- What is kept for a project rather than for one of its conversations, such as its folder notes.

CREATE TABLE project_states (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
