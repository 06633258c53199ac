WITH taken AS (
    DELETE FROM unindexed WHERE message IN
        (SELECT message FROM unindexed ORDER BY message LIMIT $1 FOR UPDATE)
    RETURNING message)
SELECT message, body, namespace FROM taken
JOIN LATERAL (SELECT conversation, body FROM messages WHERE key = message
              UNION ALL SELECT conversation, body FROM revisions WHERE key = -message) AS at ON TRUE
JOIN conversations ON conversations.key = at.conversation
