SELECT (SELECT count(*) FROM conversations WHERE deleted_at IS NULL),
       (SELECT count(*) FROM conversations WHERE deleted_at IS NOT NULL),
       (SELECT count(*) FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
                              UNION SELECT namespace FROM current_conversations) AS used),
       (SELECT count(*) FROM messages),
       (SELECT count(*) FROM revisions),
       (SELECT count(*) FROM requests),
       pg_database_size(current_database())
