WITH taken AS (
    DELETE FROM unnamed WHERE conversation IN
        (SELECT conversation FROM unnamed ORDER BY conversation LIMIT $1 FOR UPDATE)
    RETURNING conversation)
SELECT key, name, description FROM taken JOIN conversations ON key = conversation
