WITH fast AS (
  INSERT INTO interlock.locks
  SELECT ($5::bigint[])[1], 0, -$14::bigint, nextval('interlock.numbers'), $4::uuid, $6::text, 'e',
    ($8::bigint[])[1], ($9::bigint[])[1], $10::text = '1', clock_timestamp(),
    clock_timestamp() + interval '1 us' * $11::bigint, NULL, $2::bigint, $15::text, $16::text, $17::text,
    $18::bigint, $19::boolean, 'e'
  WHERE CASE WHEN $1::int = pg_backend_pid()
                  AND NOT EXISTS (SELECT FROM interlock.locks WHERE id = ($5::bigint[])[1])
             THEN pg_try_advisory_lock(($5::bigint[])[1]) ELSE false END
  RETURNING number
)
SELECT CASE WHEN EXISTS (SELECT FROM fast)
  THEN 'granted ' || (SELECT number FROM fast) || left(set_config('application_name', $3::text, false), 0)
  ELSE interlock.lock_acquire($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19) END
