-- Advisory mode: who holds also has an advisory lock on the resource's id, in the one session of its
-- client. Rows of a session that has ended mean nothing.
CREATE OR REPLACE FUNCTION interlock.lock_take(id bigint, how text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF how = 'e' THEN RETURN pg_try_advisory_lock(id); END IF;
  IF pg_try_advisory_lock_shared(id) THEN RETURN true; END IF;
  -- Whoever tries steps back for those who block, even if it has the whole lock. It need not wait for it.
  IF NOT EXISTS (SELECT FROM interlock.lock_session(pg_backend_pid()) s WHERE s.id = lock_take.id AND s.how = 'e') THEN
    RETURN false;
  END IF;
  PERFORM pg_advisory_lock_shared(id);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION interlock.lock_drop(id bigint, how text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF how = 'e' THEN PERFORM pg_advisory_unlock(id); ELSE PERFORM pg_advisory_unlock_shared(id); END IF;
END $$;

-- A session keeps a lock on its home for as long as it lives.
CREATE OR REPLACE FUNCTION interlock.lock_is_gone(home bigint, own bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN home <> own AND pg_try_advisory_xact_lock_shared(interlock.high(home), interlock.low(home));
END $$;

CREATE OR REPLACE FUNCTION interlock.lock_backend(home bigint) RETURNS int LANGUAGE sql AS $$
  SELECT pid FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND mode = 'ExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = (home >> 32) & 4294967295 AND objid::bigint = home & 4294967295
$$;

-- Its time is over. Only its own session can free it: a client that lives does so by itself, one that
-- does not is ended. True: it is gone, and so may be its row.
CREATE OR REPLACE FUNCTION interlock.lock_end(hold interlock.locks, own bigint, at timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  backend int;
BEGIN
  IF hold.home = own THEN
    PERFORM interlock.lock_drop(hold.id, hold.taken);
    RETURN true;
  END IF;
  IF interlock.lock_is_gone(hold.home, own) THEN RETURN true; END IF;
  IF at < greatest(hold.expires, hold.spared) + interval '{grace_ms} ms' THEN
    PERFORM interlock.tell(hold.home, hold.owner);
    RETURN false;
  END IF;
  backend := interlock.lock_backend(hold.home);
  IF backend IS NULL THEN RETURN true; END IF;
  BEGIN
    PERFORM pg_terminate_backend(backend);
  EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION USING ERRCODE = 'IL002', MESSAGE = backend::text;
  END;
  RETURN false;
END $$;

-- Taken away by another client. True: its row goes at once.
CREATE OR REPLACE FUNCTION interlock.lock_evict(hold interlock.locks, own bigint, at timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF hold.home = own THEN
    PERFORM interlock.lock_drop(hold.id, hold.taken);
    RETURN true;
  END IF;
  IF interlock.lock_is_gone(hold.home, own) THEN RETURN true; END IF;
  UPDATE interlock.locks SET expires = at, spared = greatest(hold.expires, hold.spared)
  WHERE owner = hold.owner AND id = hold.id AND line = 0;
  RETURN false;
END $$;

-- This owner's holds on other sessions that live.
CREATE OR REPLACE FUNCTION interlock.lock_elsewhere(by_owner uuid, ids bigint[], own bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM interlock.locks WHERE owner = by_owner AND id = ANY (ids) AND line = 0
                 AND home <> own AND NOT interlock.lock_is_gone(home, own));
END $$;

-- Gives back what this session has locked and no row tells of: a call failed half-way. Such locks are
-- counted, and nobody can see the count: so each is given back altogether, and taken again as often as
-- rows tell of it. Nobody gets in between, as it is the transaction's meanwhile.
CREATE OR REPLACE FUNCTION interlock.lock_settle(backend int, own bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  l record;
  ours bigint[];
  rows bigint;
  given_back int := 0;
BEGIN
  {enter}
  SELECT coalesce(array_agg(DISTINCT id), '{}') INTO ours FROM interlock.lock_session(backend);
  PERFORM interlock.guard(ours);
  FOR l IN SELECT * FROM interlock.lock_session(backend) WHERE id = ANY (ours) LOOP
    IF l.how = 'e' THEN PERFORM pg_advisory_xact_lock(l.id); ELSE PERFORM pg_advisory_xact_lock_shared(l.id); END IF;
    WHILE CASE WHEN l.how = 'e' THEN pg_advisory_unlock(l.id) ELSE pg_advisory_unlock_shared(l.id) END LOOP
      given_back := given_back + 1;
    END LOOP;
    SELECT count(*) INTO rows FROM interlock.locks k
    WHERE k.id = l.id AND k.line = 0 AND k.home = own AND k.taken = l.how;
    FOR i IN 1..rows LOOP
      PERFORM interlock.lock_take(l.id, l.how);
      given_back := given_back - 1;
    END LOOP;
  END LOOP;
  RETURN given_back;
END $$;

-- What pg_stat_activity shows of this session.
CREATE OR REPLACE FUNCTION interlock.lock_title(backend int, own bigint, title text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF backend = pg_backend_pid() THEN PERFORM set_config('application_name', title, false); END IF;
END $$;

-- Ends another session, by its home.
CREATE OR REPLACE FUNCTION interlock.lock_terminate(backend int, own bigint, home bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF backend = pg_backend_pid() THEN PERFORM pg_terminate_backend(interlock.lock_backend(home)); END IF;
END $$;

-- The users' locks that a session has: e or s.
CREATE OR REPLACE FUNCTION interlock.lock_session(backend int) RETURNS TABLE (id bigint, how text) LANGUAGE sql AS $$
  SELECT (classid::bigint << 32) | objid::bigint, CASE WHEN mode = 'ExclusiveLock' THEN 'e' ELSE 's' END
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = backend
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- A hold of this session whose time has come by its client's clock. Answers how many microseconds are
-- left, if it was renewed by another client meanwhile; 0: it is over.
CREATE OR REPLACE FUNCTION interlock.lock_expire(backend int, own bigint, by_owner uuid, ids bigint[])
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  h interlock.locks;
  remaining bigint := 0;
BEGIN
  {enter}
  PERFORM interlock.guard(ids);
  FOR h IN SELECT * FROM interlock.locks WHERE owner = by_owner AND line = 0 AND home = own LOOP
    remaining := greatest(remaining, (extract(epoch FROM h.expires - clock_timestamp()) * 1000000)::bigint);
  END LOOP;
  IF remaining > 5000 THEN RETURN remaining; END IF;
  FOR h IN SELECT * FROM interlock.locks WHERE owner = by_owner AND line = 0 AND home = own LOOP
    DELETE FROM interlock.locks WHERE owner = by_owner AND id = h.id AND line = 0;
    PERFORM interlock.lock_drop(h.id, h.taken);
    PERFORM interlock.lock_wake_next(h.id, clock_timestamp());
  END LOOP;
  RETURN 0;
END $$;

-- Rows that mean nothing any more, of names that nobody has asked for since. Some at a time, and none that
-- anybody is at.
CREATE OR REPLACE FUNCTION interlock.tidy() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM interlock.leases WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM interlock.leases WHERE expires < clock_timestamp() - interval '1 minute'
    LIMIT 1000 FOR UPDATE SKIP LOCKED));
  DELETE FROM interlock.locks WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM interlock.locks WHERE expires < clock_timestamp() - interval '1 minute'
      AND interlock.lock_is_gone(home, 0)
    LIMIT 1000 FOR UPDATE SKIP LOCKED));
EXCEPTION WHEN OTHERS THEN
  NULL;  -- without the right to it, others do it
END $$;

-- acquire_one, on a session that has nothing else to do, has answered `queued`: waits for its turn, and asks
-- again. Answers for how many microseconds it waited, and what came of it; nothing if it waited in vain, and
-- has to be told instead. Whoever waits so keeps a lock on its number meanwhile, for the next one to wait for.
-- The first one waits for the lock itself. All this for a short while only, as a statement that goes on for
-- long keeps the server from tidying up; and with locks of the transaction, which are gone when that fails.
CREATE OR REPLACE FUNCTION interlock.lock_wait(backend int, own bigint, {acquire_parameters})
RETURNS text LANGUAGE plpgsql SET lock_timeout = '{block_ms} ms' AS $$
DECLARE
  of_id bigint := ids[1];
  me interlock.locks;
  ahead interlock.locks;
  its_turn boolean := false;
  waited bigint;
  answer text := '';
BEGIN
  {enter}
  SELECT * INTO me FROM interlock.locks WHERE owner = by_owner AND id = of_id AND line = 2 AND home = own;
  IF NOT FOUND THEN RETURN ''; END IF;
  BEGIN
    WHILE pg_try_advisory_xact_lock(interlock.high(me.number), interlock.low(me.number)) LOOP
      SELECT * INTO ahead FROM interlock.locks
      WHERE id = of_id AND (line, rank, number) < (2, me.rank, me.number)
      ORDER BY line DESC, rank DESC, number DESC LIMIT 1;
      its_turn := NOT FOUND OR interlock.lock_is_gone(ahead.home, own);
      EXIT WHEN its_turn OR ahead.line = 1 OR (ahead.line = 0 AND ahead.taken <> 'e');
      IF ahead.line = 0 THEN
        PERFORM pg_advisory_xact_lock(of_id);
        its_turn := true;
        EXIT;
      END IF;
      IF NOT pg_try_advisory_lock_shared(interlock.high(ahead.number), interlock.low(ahead.number)) THEN
        PERFORM pg_advisory_xact_lock_shared(interlock.high(ahead.number), interlock.low(ahead.number));
        CONTINUE;
      END IF;
      -- That one is told, or has yet to begin.
      PERFORM pg_advisory_unlock_shared(interlock.high(ahead.number), interlock.low(ahead.number));
      EXIT WHEN clock_timestamp() > statement_timestamp() + interval '{block_ms} ms';
      PERFORM pg_sleep(0.005);
    END LOOP;
    IF its_turn THEN
      waited := extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000;
      PERFORM interlock.guard(ids);
    END IF;
  EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    its_turn := false;
  END;
  -- Unless it has left the line meanwhile.
  IF its_turn AND EXISTS (SELECT FROM interlock.locks
                          WHERE owner = by_owner AND id = of_id AND line = 2 AND home = own) THEN
    answer := waited || ' ' || interlock.lock_acquire_one(backend, own, by_owner, ids, names, modes, counts,
      capacities, ancestors, ttl_us, may_queue, instead, of_priority, of_identity, of_label, of_host, of_pid,
      of_tied);
  END IF;
  IF answer !~ 'granted' THEN
    UPDATE interlock.locks
    SET spared = NULL, expires = least(expires, clock_timestamp() + interval '{woken_ms} ms')
    WHERE owner = by_owner AND id = of_id AND line = 2 AND home = own;
  END IF;
  RETURN answer;
END $$;

-- The other mode keeps its holders in another table, and neither waits for the other's. So what is held there is
-- refused here; both modes guard their rows by the same locks. Answers PART PID HOST, or nothing.
CREATE OR REPLACE FUNCTION interlock.lock_held_in_other_mode(ids bigint[], modes text, at timestamptz)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT concat_ws(' ', 'other', i, pid, host)
          FROM unnest(ids) WITH ORDINALITY AS part (of_id, i) JOIN interlock.leases ON id = of_id
          WHERE line = 0 AND expires > at AND (mode <> 's' OR substr(modes, i::int, 1) <> 's') LIMIT 1);
END $$;
