SELECT used.namespace,
       (SELECT count(*) FROM conversations
        WHERE conversations.namespace = used.namespace AND deleted_at IS NULL),
       (SELECT id FROM current_conversations JOIN conversations ON key = conversation
        WHERE current_conversations.namespace = used.namespace AND deleted_at IS NULL)
FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
      UNION SELECT namespace FROM current_conversations) AS used
ORDER BY used.namespace
