SELECT message, conversation, position FROM entries
JOIN LATERAL (SELECT conversation, position FROM messages WHERE key = message
              UNION ALL SELECT conversation, position FROM revisions WHERE key = -message) AS at ON TRUE
WHERE terms @@ ($1 || $4)::tsquery
ORDER BY ts_rank(terms, $1::tsquery) DESC, abs(message) DESC LIMIT $2 OFFSET $3
