WITH inserted AS (
    INSERT INTO conversations
        (id, namespace, name, description, metadata, created_at, updated_at, messages)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING key)
INSERT INTO unnamed SELECT key FROM inserted RETURNING conversation
