SELECT EXISTS (
    SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory'::text AND l.granted AND l.objsubid = 1::smallint
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND ((l.classid::bigint << 32) | l.objid::bigint)
          = hashtextextended(current_schema()::text || ' conversation '::text || $1::text, 0::bigint)
      AND a.application_name LIKE 'haft task '::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)) || ' '::text || $2::text || '/%'::text
      AND a.application_name NOT LIKE '%/'::text || $3::text)
