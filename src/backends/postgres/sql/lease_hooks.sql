-- Lease mode: a row is the lock, and ends with its time.
CREATE OR REPLACE FUNCTION interlock.lease_take(id bigint, how text) RETURNS boolean LANGUAGE sql
RETURN true;
CREATE OR REPLACE FUNCTION interlock.lease_drop(id bigint, how text) RETURNS void LANGUAGE sql
AS 'SELECT';
CREATE OR REPLACE FUNCTION interlock.lease_is_gone(home bigint, own bigint) RETURNS boolean LANGUAGE sql
RETURN false;
CREATE OR REPLACE FUNCTION interlock.lease_end(hold interlock.leases, own bigint, at timestamptz)
RETURNS boolean LANGUAGE sql RETURN true;
CREATE OR REPLACE FUNCTION interlock.lease_evict(hold interlock.leases, own bigint, at timestamptz)
RETURNS boolean LANGUAGE sql RETURN true;

-- The other mode keeps its holders in another table, and neither waits for the other's. So what is held there is
-- refused here; both modes guard their rows by the same locks. Answers PART PID HOST, or nothing.
-- (However late it is, a session has its locks for as long as it lives.)
CREATE OR REPLACE FUNCTION interlock.lease_held_in_other_mode(ids bigint[], modes text, at timestamptz)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT concat_ws(' ', 'other', i, pid, host)
          FROM unnest(ids) WITH ORDINALITY AS part (of_id, i) JOIN interlock.locks ON id = of_id
          WHERE line = 0 AND (mode <> 's' OR substr(modes, i::int, 1) <> 's')
            AND NOT interlock.lock_is_gone(home, 0) LIMIT 1);
END $$;
