SELECT number, sent_at, body FROM requests
WHERE conversation = $1 AND number <= $2 AND number >=
    (SELECT number FROM requests WHERE conversation = $1 AND number <= $2 AND whole
     ORDER BY number DESC LIMIT 1)
ORDER BY number
