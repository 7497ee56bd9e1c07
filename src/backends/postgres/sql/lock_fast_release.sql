WITH fast AS (
  DELETE FROM interlock.locks
  WHERE owner = $4::uuid AND id = ($5::bigint[])[1] AND line = 0 AND home = $2::bigint AND taken = 'e'
    AND $1::int = pg_backend_pid() AND expires > clock_timestamp()
  RETURNING id
)
SELECT CASE
  WHEN NOT EXISTS (SELECT FROM fast) THEN interlock.lock_release($1,$2,$3,$4,$5)
  WHEN pg_advisory_unlock((SELECT id FROM fast))
       AND EXISTS (SELECT FROM interlock.locks WHERE id = ($5::bigint[])[1] AND line > 0)
  THEN 'granted' || interlock.lock_wake_next(($5::bigint[])[1], clock_timestamp())::text
         || left(set_config('application_name', $3::text, false), 0)
  ELSE 'granted' || left(set_config('application_name', $3::text, false), 0) END
