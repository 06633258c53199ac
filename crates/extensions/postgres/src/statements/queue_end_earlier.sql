SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND application_name LIKE
          'haft task '::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)) || ' '::text || $1::text || '/%'::text
  AND application_name NOT LIKE '%/'::text || $2::text
