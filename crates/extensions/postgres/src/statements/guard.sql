WITH allowed AS MATERIALIZED (
    SELECT w.term FROM writers w WHERE w.conversation = $1::text AND w.term = $2::bigint
        AND (SELECT max(f.format) FROM haft_format f) <= $3::integer AND $4::bigint IS NULL AND $5::bigint IS NULL
    FOR SHARE OF w)
