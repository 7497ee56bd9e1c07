WITH guard AS MATERIALIZED (
  SELECT pg_advisory_xact_lock((($5::bigint[])[1] >> 32)::int, ((($5::bigint[])[1] << 32) >> 32)::int)
), fast AS (
  DELETE FROM interlock.locks
  WHERE owner = $4::uuid AND id = ($5::bigint[])[1] AND line = 0 AND home = $2::bigint AND taken = 'e'
    AND $1::int = pg_backend_pid() AND expires > clock_timestamp() AND EXISTS (SELECT FROM guard)
  RETURNING id
)
SELECT CASE WHEN EXISTS (SELECT FROM fast)
  THEN interlock.lock_pass_on(($5::bigint[])[1], $3)
  ELSE interlock.lock_release($1,$2,$3,$4,$5) END
