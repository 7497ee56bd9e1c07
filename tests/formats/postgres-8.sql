--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: interlock; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA interlock;


--
-- Name: SCHEMA interlock; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA interlock IS 'Interlock 8';


--
-- Name: guard(bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.guard(ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  one bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION USING ERRCODE = 'IL001', MESSAGE =
      'the default transaction isolation is ' || current_setting('transaction_isolation');
  END IF;
  IF cardinality(ids) = 1 THEN
    PERFORM pg_advisory_xact_lock(interlock.high(ids[1]), interlock.low(ids[1]));
    RETURN;
  END IF;
  FOR one IN SELECT DISTINCT x FROM unnest(ids) AS x ORDER BY x LOOP
    PERFORM pg_advisory_xact_lock(interlock.high(one), interlock.low(one));
  END LOOP;
END $$;


--
-- Name: high(bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.high(number bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN ((number >> 32))::integer;


--
-- Name: lease_acquire(bigint, uuid, bigint[], text, text, bigint[], bigint[], text, bigint, boolean, uuid, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_acquire(own bigint, by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[], ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  n int := cardinality(ids);
  none CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  at timestamptz;
  ttl interval := make_interval(secs => ttl_us / 1000000.0);
  resources text[] := string_to_array(names, E'\n');
  first interlock.leases;
  ahead interlock.leases;
  my_line int;
  my_rank bigint;
  my_number bigint;
  was_queued boolean;
  held bigint;
  taken numeric;
  ends timestamptz;
  same boolean;
  in_way timestamptz;
  in_part boolean;
  tries int;
  got int;
  place bigint;
  here bigint;
  before interlock.leases;
  stronger boolean;
  fence bigint;
  answer text;
  anybody boolean := false;
  kept text[] := '{}';
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  IF EXISTS (SELECT FROM interlock.locks WHERE id = ANY (ids) AND line = 0) THEN
    answer := interlock.lease_held_in_other_mode(ids, modes, at);
    IF answer IS NOT NULL THEN RETURN answer; END IF;
  END IF;

  FOR i IN 1..n LOOP
    IF EXISTS (SELECT FROM interlock.leases WHERE id = ids[i]) THEN
      anybody := true;
      PERFORM interlock.lease_sweep(ids[i], own, at, false);
    END IF;
  END LOOP;

  IF anybody THEN
    
    held := interlock.lease_held(by_owner, ids, own, at);
    IF held = n THEN
      RETURN 'granted ' || array_to_string(interlock.lease_rearm(by_owner, ids, ttl, at, own, of_identity,
        of_label, of_host, of_pid, of_tied), ' ');
    END IF;
    -- It was granted all of it, and some is gone since. A claim never grows.
    IF held > 0 THEN RETURN 'lost'; END IF;
    SELECT line, rank, number INTO my_line, my_rank, my_number FROM interlock.leases
    WHERE owner = by_owner AND line > 0 AND id = ANY (ids) LIMIT 1;
  END IF;
  was_queued := my_line IS NOT NULL;

  IF instead <> none AND (NOT anybody OR interlock.lease_held(instead, ids, own, at) < n) THEN
    IF was_queued THEN
      DELETE FROM interlock.leases WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
    END IF;
    RETURN 'lost';
  END IF;
  

  IF anybody THEN
    -- All who use a row use it in the same way.
    FOR i IN 1..n LOOP
      FOR tries IN 1..2 LOOP
        first := interlock.lease_first(ids[i], own, at);
        EXIT WHEN first.id IS NULL OR ((first.mode = 'n') = (substr(modes, i, 1) = 'n')
          AND (first.mode <> 'n' OR first.capacity = capacities[i]));
        CONTINUE WHEN tries = 1 AND interlock.lease_sweep(ids[i], own, at, true);
        RETURN 'wrong ' || i || ' ' || first.mode || ' ' || first.capacity || ' ' || first.label;
      END LOOP;
    END LOOP;
    -- Two holders that want more would wait for each other.
    IF instead <> none THEN
      FOR i IN 1..n LOOP
        CONTINUE WHEN substr(modes, i, 1) <> 'e';
        ahead := interlock.lease_first_ahead(ids[i], 'e', 2, -9223372036854775808, 0, by_owner, instead, own, at);
        IF ahead.id IS NOT NULL THEN RETURN 'busy'; END IF;
      END LOOP;
    END IF;
  END IF;

  IF NOT was_queued THEN
    IF instead <> none OR may_queue THEN
      my_line := CASE WHEN instead <> none THEN 1 ELSE 2 END;
      my_rank := -of_priority;
      my_number := 9223372036854775807;  -- behind all who came before; it gets its own when it queues
    ELSE
      -- A one-shot stands behind everybody, whatever its priority.
      my_line := 3;
      my_rank := 0;
      my_number := 0;
    END IF;
  END IF;

  IF anybody THEN
    FOR tries IN 1..2 LOOP
      in_way := NULL;
      FOR i IN 1..n LOOP
        -- Of a claim that takes over: no stronger than what it has here already, so nobody is in its way.
        CONTINUE WHEN instead <> none AND EXISTS (SELECT FROM interlock.leases
          WHERE owner = instead AND id = ids[i] AND line = 0
            AND NOT (mode = 's' AND substr(modes, i, 1) = 'e'));
        SELECT coalesce(sum(slots) FILTER (WHERE owner <> by_owner AND owner <> instead), 0),
               min(expires) FILTER (WHERE owner <> by_owner AND owner <> instead
                 AND (mode = 'n' OR of_identity = '' OR identity <> of_identity)
                 AND (mode <> 's' OR substr(modes, i, 1) <> 's')),
               coalesce(bool_or(of_identity <> '' AND identity = of_identity AND mode <> 'n'), false)
        INTO taken, ends, same
        FROM interlock.leases WHERE id = ids[i] AND line = 0;
        in_part := ends IS NOT NULL
          AND (substr(modes, i, 1) <> 'n' OR taken + counts[i] > capacities[i]);
        IF in_part THEN in_way := least(in_way, ends); END IF;
        -- Whoever waits may wait for this very identity: it must not wait for them.
        CONTINUE WHEN same AND substr(modes, i, 1) <> 'n';
        ahead := interlock.lease_first_ahead(ids[i], substr(modes, i, 1), my_line, my_rank, my_number,
          by_owner, instead, own, at);
        IF ahead.id IS NOT NULL THEN in_way := least(in_way, ahead.expires); END IF;
      END LOOP;
      EXIT WHEN in_way IS NULL OR tries = 2;
      got := 0;
      FOR i IN 1..n LOOP
        IF interlock.lease_sweep(ids[i], own, at, true) THEN got := got + 1; END IF;
      END LOOP;
      EXIT WHEN got = 0;
    END LOOP;
  END IF;

  IF in_way IS NULL THEN
    got := 0;
    FOR i IN 1..n LOOP
      -- Those of one identity have to get along: for them, the rows alone tell who excludes whom.
      kept[i] := CASE WHEN substr(modes, i, 1) = 'e' AND of_identity = '' THEN 'e' ELSE 's' END;
      EXIT WHEN NOT interlock.lease_take(ids[i], kept[i]);
      got := i;
    END LOOP;
    IF got < n THEN
      -- Another program's lock, or one that is just being taken or given back.
      FOR i IN REVERSE got..1 LOOP
        PERFORM interlock.lease_drop(ids[i], kept[i]);
      END LOOP;
      in_way := at + interval '100 ms';
    END IF;
  END IF;

  IF in_way IS NOT NULL THEN
    IF NOT may_queue THEN RETURN 'busy'; END IF;
    IF NOT was_queued THEN my_number := nextval('interlock.numbers'); END IF;
    place := 0;
    FOR i IN 1..n LOOP
      -- Of a claim that takes over, only the parts that become stronger wait.
      CONTINUE WHEN my_line = 1 AND substr(modes, i, 1) <> 'e';
      IF was_queued THEN
        UPDATE interlock.leases SET expires = at + interval '15000 ms', home = own, spared = NULL
        WHERE owner = by_owner AND id = ids[i] AND line = my_line;
      END IF;
      IF NOT was_queued OR NOT FOUND THEN
        INSERT INTO interlock.leases VALUES (ids[i], my_line, my_rank, my_number, by_owner, resources[i],
          substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at,
          at + interval '15000 ms', NULL, own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO here FROM (
        SELECT FROM interlock.leases WHERE id = ids[i] AND line > 0
          AND (line, rank, number) < (my_line, my_rank, my_number) LIMIT 1000) AS before_me;
      place := greatest(place, here);
    END LOOP;
    IF was_queued THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
    RETURN 'queued ' || place || ' ' || interlock.lease_look(place, in_way - at, own);
  END IF;

  IF was_queued THEN
    DELETE FROM interlock.leases WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
  END IF;
  answer := 'granted';
  FOR i IN 1..n LOOP
    before := NULL;
    IF anybody AND instead <> none THEN
      SELECT * INTO before FROM interlock.leases WHERE owner = instead AND id = ids[i] AND line = 0;
    END IF;
    -- Not a new grant: a hold that goes on, no stronger than it was. And the same identity gets its
    -- own claim back: with a fresh fence, its outer writes would be refused after its inner ones.
    stronger := coalesce(before.mode = 's' AND substr(modes, i, 1) = 'e', false);
    fence := NULL;
    IF before.id IS NOT NULL AND NOT stronger THEN
      fence := before.number;
    ELSIF anybody AND of_identity <> '' AND substr(modes, i, 1) <> 'n' THEN
      SELECT number INTO fence FROM interlock.leases
      WHERE id = ids[i] AND line = 0 AND identity = of_identity AND mode <> 'n'
        AND (mode = 'e' OR substr(modes, i, 1) = 's')
      ORDER BY since, number LIMIT 1;
    END IF;
    IF fence IS NULL THEN fence := nextval('interlock.numbers'); END IF;
    IF before.id IS NOT NULL THEN
      DELETE FROM interlock.leases WHERE owner = instead AND id = ids[i] AND line = 0;
      PERFORM interlock.lease_drop(ids[i], before.taken);
    END IF;
    INSERT INTO interlock.leases VALUES (ids[i], 0, -of_priority, fence, by_owner, resources[i],
      substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at, at + ttl, NULL, own,
      of_identity, of_label, of_host, of_pid, of_tied, kept[i]);
    IF before.id IS NOT NULL AND before.mode <> substr(modes, i, 1) AND NOT stronger THEN
      PERFORM interlock.lease_wake_next(ids[i], at);
    END IF;
    answer := answer || ' ' || fence;
  END LOOP;
  RETURN answer;
END $$;


--
-- Name: lease_acquire_one(bigint, uuid, bigint[], text, text, bigint[], bigint[], text, bigint, boolean, uuid, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_acquire_one(own bigint, by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[], ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  first interlock.leases;
  second interlock.leases;
  was_queued boolean;
  my_rank bigint;
  my_number bigint;
  fence bigint;
  place bigint;
  look interval;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM interlock.guard(ids); END IF; PERFORM pg_advisory_xact_lock((of_id >> 32)::int, ((of_id << 32) >> 32)::int);
  at := clock_timestamp();
  SELECT * INTO first FROM interlock.leases WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF first.id IS NULL THEN
    IF true THEN
      fence := nextval('interlock.numbers');
      INSERT INTO interlock.leases SELECT of_id, 0, -of_priority, fence, by_owner, names, 'e', counts[1],
        capacities[1], ancestors = '1', at, at + interval '1 us' * ttl_us, NULL, own, of_identity, of_label,
        of_host, of_pid, of_tied, 'e'
      WHERE NOT EXISTS (SELECT FROM interlock.locks WHERE id = of_id AND line = 0);
      IF FOUND THEN RETURN 'granted ' || fence; END IF;
      
    END IF;
  ELSIF first.owner = by_owner THEN
    IF first.line = 2 AND first.expires > at THEN
      IF true THEN
        fence := nextval('interlock.numbers');
        UPDATE interlock.leases SET line = 0, number = fence, since = at,
          expires = at + interval '1 us' * ttl_us, spared = NULL, home = own, taken = 'e'
        WHERE owner = by_owner AND id = of_id AND line = 2
          AND NOT EXISTS (SELECT FROM interlock.locks WHERE id = of_id AND line = 0);
        IF FOUND THEN RETURN 'granted ' || fence; END IF;
        
      END IF;
    END IF;
  ELSIF first.line = 0 AND first.expires > at AND first.mode <> 'n' THEN
    SELECT * INTO second FROM interlock.leases
    WHERE id = of_id ORDER BY line, rank, number OFFSET 1 LIMIT 1;
    was_queued := coalesce(second.owner = by_owner, false);
    IF (second.id IS NULL OR was_queued) AND NOT interlock.lease_is_gone(first.home, own) THEN
      IF NOT may_queue THEN RETURN 'busy'; END IF;
      IF was_queued THEN
        UPDATE interlock.leases SET expires = at + interval '15000 ms', home = own, spared = NULL
        WHERE owner = by_owner AND id = of_id AND line = 2;
      ELSE
        INSERT INTO interlock.leases VALUES (of_id, 2, -of_priority, nextval('interlock.numbers'), by_owner,
          names, 'e', counts[1], capacities[1], ancestors = '1', at, at + interval '15000 ms', NULL,
          own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      look := least(first.expires - at, interval '1000 ms');
      IF own = 0 THEN look := least(look, interval '100 ms'); END IF;
      IF was_queued THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
      RETURN 'queued 0 ' || (extract(epoch FROM look) * 1000000)::bigint;
    END IF;
    IF second.line = 2 AND may_queue AND NOT interlock.lease_is_gone(first.home, own)
      AND (second.home = 0 OR NOT interlock.lease_is_gone(second.home, own))
      AND NOT EXISTS (SELECT FROM interlock.leases WHERE owner = by_owner AND id = of_id AND line <> 2) THEN
      UPDATE interlock.leases SET expires = at + interval '15000 ms', home = own, spared = NULL
      WHERE owner = by_owner AND id = of_id AND line = 2
      RETURNING rank, number INTO my_rank, my_number;
      was_queued := FOUND;
      IF NOT was_queued THEN
        my_rank := -of_priority;
        my_number := nextval('interlock.numbers');
        INSERT INTO interlock.leases VALUES (of_id, 2, my_rank, my_number, by_owner, names, 'e', counts[1],
          capacities[1], ancestors = '1', at, at + interval '15000 ms', NULL, own, of_identity,
          of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO place FROM (
        SELECT FROM interlock.leases WHERE id = of_id AND line > 0
          AND (line, rank, number) < (2, my_rank, my_number) LIMIT 1000) AS before_me;
      IF was_queued THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
      RETURN 'queued ' || place || ' '
        || interlock.lease_look(place, least(first.expires, second.expires) - at, own);
    END IF;
  END IF;
  RETURN interlock.lease_acquire(own, by_owner, ids, names, modes, counts, capacities,
    ancestors, ttl_us, may_queue, instead, of_priority, of_identity, of_label, of_host, of_pid, of_tied);
END $$;


--
-- Name: lease_drop(bigint, text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_drop(id bigint, how text) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$SELECT$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: leases; Type: TABLE; Schema: interlock; Owner: -
--

CREATE TABLE interlock.leases (
    id bigint NOT NULL,
    line smallint NOT NULL,
    rank bigint NOT NULL,
    number bigint NOT NULL,
    owner uuid NOT NULL,
    resource text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL COLLATE pg_catalog."C",
    slots bigint NOT NULL,
    capacity bigint NOT NULL,
    ancestor boolean NOT NULL,
    since timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL,
    spared timestamp with time zone,
    home bigint NOT NULL,
    identity text NOT NULL COLLATE pg_catalog."C",
    label text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    tied boolean NOT NULL,
    taken text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50');


--
-- Name: lease_end(interlock.leases, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_end(hold interlock.leases, own bigint, at timestamp with time zone) RETURNS boolean
    LANGUAGE sql
    RETURN true;


--
-- Name: lease_evict(interlock.leases, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_evict(hold interlock.leases, own bigint, at timestamp with time zone) RETURNS boolean
    LANGUAGE sql
    RETURN true;


--
-- Name: lease_first(bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_first(of_id bigint, own bigint, at timestamp with time zone) RETURNS interlock.leases
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  r interlock.leases;
BEGIN
  SELECT * INTO r FROM interlock.leases WHERE id = of_id AND line = 0 LIMIT 1;
  IF NOT FOUND THEN
    r := interlock.lease_first_ahead(of_id, 'e', 3, 0, 0, '00000000-0000-0000-0000-000000000000',
      '00000000-0000-0000-0000-000000000000', own, at);
  END IF;
  RETURN r;
END $$;


--
-- Name: lease_first_ahead(bigint, text, integer, bigint, bigint, uuid, uuid, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_first_ahead(of_id bigint, wanted text, to_line integer, to_rank bigint, to_number bigint, by_owner uuid, instead uuid, own bigint, at timestamp with time zone) RETURNS interlock.leases
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  w interlock.leases;
BEGIN
  LOOP
    SELECT * INTO w FROM interlock.leases
    WHERE id = of_id AND line > 0 AND (line, rank, number) < (to_line, to_rank, to_number)
      AND (wanted <> 's' OR mode <> 's') AND owner <> by_owner AND owner <> instead
    ORDER BY line, rank, number LIMIT 1;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF w.expires > at AND (w.home = 0 OR NOT interlock.lease_is_gone(w.home, own)) THEN RETURN w; END IF;
    DELETE FROM interlock.leases WHERE owner = w.owner AND id = of_id AND line = w.line;
  END LOOP;
END $$;


--
-- Name: lease_held(uuid, bigint[], bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_held(by_owner uuid, ids bigint[], own bigint, at timestamp with time zone) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT count(*) FROM interlock.leases
  WHERE owner = by_owner AND id = ANY (ids) AND line = 0 AND expires > at
    AND NOT interlock.lease_is_gone(home, own)
$$;


--
-- Name: lease_held_in_other_mode(bigint[], text, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_held_in_other_mode(ids bigint[], modes text, at timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  RETURN (SELECT concat_ws(' ', 'other', i, pid, host)
          FROM unnest(ids) WITH ORDINALITY AS part (of_id, i) JOIN interlock.locks ON id = of_id
          WHERE line = 0 AND (mode <> 's' OR substr(modes, i::int, 1) <> 's')
            AND NOT interlock.lock_is_gone(home, 0) LIMIT 1);
END $$;


--
-- Name: lease_inspect(bigint, bigint[], text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_inspect(own bigint, ids bigint[], beginning text) RETURNS TABLE(resource text, line smallint, owner uuid, mode text, slots bigint, capacity bigint, ancestor boolean, priority bigint, fence bigint, age_us bigint, left_us bigint, identity text, label text, host text, pid bigint, tied boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT t.resource, t.line, t.owner, t.mode, t.slots, t.capacity, t.ancestor,
    -t.rank, CASE WHEN t.line = 0 THEN t.number ELSE 0 END,
    (extract(epoch FROM at - t.since) * 1000000)::bigint,
    (extract(epoch FROM t.expires - at) * 1000000)::bigint,
    t.identity, t.label, t.host, t.pid, t.tied
  FROM interlock.leases t
  WHERE CASE WHEN cardinality(ids) > 0 THEN t.id = ANY (ids) ELSE starts_with(t.resource, beginning) END
    AND t.expires > at AND NOT (t.home <> 0 AND interlock.lease_is_gone(t.home, own))
  ORDER BY t.resource, t.line, t.rank, t.number;
END $$;


--
-- Name: lease_is_gone(bigint, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_is_gone(home bigint, own bigint) RETURNS boolean
    LANGUAGE sql
    RETURN false;


--
-- Name: lease_look(bigint, interval, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_look(place bigint, until interval, own bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  look interval := greatest(until, interval '1 ms');
BEGIN
  IF until <= interval '0' THEN look := interval '100 ms' * least(place + 1, 10); END IF;
  IF place = 0 THEN
    look := least(look, interval '1000 ms');
  ELSIF place = 1 THEN
    look := least(look, interval '500 ms');
  END IF;
  IF own = 0 THEN look := least(look, interval '100 ms' * least(place + 1, 10)); END IF;
  RETURN extract(epoch FROM look) * 1000000;
END $$;


--
-- Name: lease_rearm(uuid, bigint[], interval, timestamp with time zone, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_rearm(by_owner uuid, ids bigint[], ttl interval, at timestamp with time zone, own bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  fences bigint[];
BEGIN
  WITH changed AS (
    UPDATE interlock.leases
    SET expires = greatest(expires, at + ttl), home = own, identity = of_identity, label = of_label,
        host = of_host, pid = of_pid, tied = of_tied
    WHERE owner = by_owner AND id = ANY (ids) AND line = 0
    RETURNING id, number
  )
  SELECT array_agg(number ORDER BY array_position(ids, id)) INTO fences FROM changed;
  RETURN fences;
END $$;


--
-- Name: lease_release(bigint, uuid, bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_release(own bigint, by_owner uuid, ids bigint[]) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  r interlock.leases;
  at timestamptz;
  held int := 0;
  queued boolean := false;
  freed bigint[] := '{}';
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  FOR r IN SELECT * FROM interlock.leases WHERE owner = by_owner AND id = ANY (ids) LOOP
    IF r.line > 0 THEN
      DELETE FROM interlock.leases WHERE owner = by_owner AND id = r.id AND line = r.line;
      queued := queued OR r.expires > at;
      freed := freed || r.id;
      CONTINUE;
    END IF;
    IF r.expires > at AND NOT interlock.lease_is_gone(r.home, own) THEN
      held := held + 1;
      IF r.home <> own THEN PERFORM interlock.tell(r.home, by_owner); END IF;
    END IF;
    IF interlock.lease_evict(r, own, at) THEN
      DELETE FROM interlock.leases WHERE owner = by_owner AND id = r.id AND line = 0;
    END IF;
    freed := freed || r.id;
  END LOOP;
  FOR i IN 1..cardinality(freed) LOOP
    PERFORM interlock.lease_wake_next(freed[i], at);
  END LOOP;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN CASE WHEN held = cardinality(ids) THEN 'granted' WHEN held = 0 AND queued THEN 'queued' ELSE 'lost' END;
END $$;


--
-- Name: lease_release_one(bigint, uuid, bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_release_one(own bigint, by_owner uuid, ids bigint[]) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  next interlock.leases;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM interlock.guard(ids); END IF; PERFORM pg_advisory_xact_lock((of_id >> 32)::int, ((of_id << 32) >> 32)::int);
  at := clock_timestamp();
  DELETE FROM interlock.leases WHERE owner = by_owner AND id = of_id AND line = 0 AND expires > at ;
  IF NOT FOUND THEN RETURN interlock.lease_release(own, by_owner, ids); END IF;
  
  SELECT * INTO next FROM interlock.leases WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF next.line = 2 AND next.mode = 'e' AND next.home <> 0 AND next.expires > at THEN
    PERFORM interlock.lease_wake(next, at);
  ELSIF next.id IS NOT NULL THEN
    PERFORM interlock.lease_wake_next(of_id, at);
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN 'granted';
END $$;


--
-- Name: lease_renew(bigint, uuid, bigint[], bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_renew(own bigint, by_owner uuid, ids bigint[], ttl_us bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  at timestamptz;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  
  IF interlock.lease_held(by_owner, ids, own, at) < cardinality(ids) THEN
    FOR i IN 1..cardinality(ids) LOOP PERFORM interlock.lease_sweep(ids[i], own, at, false); END LOOP;
    RETURN 'lost';
  END IF;
  RETURN 'granted ' || array_to_string(interlock.lease_rearm(by_owner, ids,
    make_interval(secs => ttl_us / 1000000.0), at, own, of_identity, of_label, of_host, of_pid, of_tied), ' ');
END $$;


--
-- Name: lease_sweep(bigint, bigint, timestamp with time zone, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_sweep(of_id bigint, own bigint, at timestamp with time zone, deep boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  h interlock.leases;
  dropped boolean := false;
BEGIN
  FOR h IN SELECT * FROM interlock.leases WHERE id = of_id AND line = 0 AND (deep OR expires <= at) LOOP
    IF h.expires <= at THEN
      CONTINUE WHEN NOT interlock.lease_end(h, own, at);
    ELSE
      CONTINUE WHEN NOT interlock.lease_is_gone(h.home, own);
    END IF;
    DELETE FROM interlock.leases WHERE owner = h.owner AND id = of_id AND line = 0;
    dropped := true;
  END LOOP;
  IF dropped THEN PERFORM interlock.lease_wake_next(of_id, at); END IF;
  RETURN dropped;
END $$;


--
-- Name: lease_take(bigint, text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_take(id bigint, how text) RETURNS boolean
    LANGUAGE sql
    RETURN true;


--
-- Name: lease_wake(interlock.leases, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_wake(w interlock.leases, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF w.home = 0 OR (w.line = 2 AND w.spared IS NOT NULL) THEN RETURN; END IF;
  PERFORM interlock.tell(w.home, w.owner);
  IF w.expires > at + interval '3000 ms' THEN
    UPDATE interlock.leases SET expires = at + interval '3000 ms'
    WHERE owner = w.owner AND id = w.id AND line = w.line;
  END IF;
END $$;


--
-- Name: lease_wake_next(bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lease_wake_next(of_id bigint, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  w interlock.leases;
  held bigint;
  writers bigint;
  taken numeric;
  identities boolean;
  same bigint;
  readers boolean := false;
  blocked boolean := false;
  fit boolean;
BEGIN
  FOR w IN SELECT * FROM interlock.leases WHERE id = of_id AND line > 0
           ORDER BY line, rank, number LIMIT 1000 LOOP
    CONTINUE WHEN w.expires <= at;
    IF held IS NULL THEN
      SELECT count(*), count(*) FILTER (WHERE mode = 'e'), coalesce(sum(slots), 0),
             coalesce(bool_or(identity <> ''), false)
      INTO held, writers, taken, identities
      FROM interlock.leases WHERE id = of_id AND line = 0;
    END IF;
    same := 0;
    IF w.identity <> '' AND held > 0 THEN
      SELECT count(*) INTO same FROM interlock.leases
      WHERE id = of_id AND line = 0 AND identity = w.identity AND mode <> 'n';
    END IF;
    CONTINUE WHEN blocked AND (same = 0 OR w.mode = 'n');
    IF w.line = 1 THEN
      IF held - same <= (w.identity = '')::int THEN
        PERFORM interlock.lease_wake(w, at);
      END IF;
      RETURN;
    END IF;
    IF w.mode = 'n' THEN
      fit := taken + w.slots <= w.capacity;
    ELSIF held = same THEN
      fit := true;
    ELSIF w.mode = 's' THEN
      fit := NOT EXISTS (SELECT FROM interlock.leases WHERE id = of_id AND line = 0 AND mode <> 's'
                         AND (w.identity = '' OR identity <> w.identity));
    ELSE
      fit := false;
    END IF;
    IF NOT fit OR (w.mode = 'e' AND readers) THEN
      IF NOT identities THEN RETURN; END IF;
      blocked := true;
      CONTINUE;
    END IF;
    PERFORM interlock.lease_wake(w, at);
    IF w.mode = 'e' THEN RETURN; END IF;
    readers := readers OR w.mode = 's';
    taken := taken + w.slots;
  END LOOP;
END $$;


--
-- Name: lock_acquire(integer, bigint, uuid, bigint[], text, text, bigint[], bigint[], text, bigint, boolean, uuid, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_acquire(backend integer, own bigint, by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[], ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  n int := cardinality(ids);
  none CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  at timestamptz;
  ttl interval := make_interval(secs => ttl_us / 1000000.0);
  resources text[] := string_to_array(names, E'\n');
  first interlock.locks;
  ahead interlock.locks;
  my_line int;
  my_rank bigint;
  my_number bigint;
  was_queued boolean;
  held bigint;
  taken numeric;
  ends timestamptz;
  same boolean;
  in_way timestamptz;
  in_part boolean;
  tries int;
  got int;
  place bigint;
  here bigint;
  before interlock.locks;
  stronger boolean;
  fence bigint;
  answer text;
  anybody boolean := false;
  kept text[] := '{}';
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  IF EXISTS (SELECT FROM interlock.leases WHERE id = ANY (ids) AND line = 0) THEN
    answer := interlock.lock_held_in_other_mode(ids, modes, at);
    IF answer IS NOT NULL THEN RETURN answer; END IF;
  END IF;

  FOR i IN 1..n LOOP
    IF EXISTS (SELECT FROM interlock.locks WHERE id = ids[i]) THEN
      anybody := true;
      PERFORM interlock.lock_sweep(ids[i], own, at, false);
    END IF;
  END LOOP;

  IF anybody THEN
    IF interlock.lock_elsewhere(by_owner, ids, own) THEN RAISE EXCEPTION USING ERRCODE = 'IL005', MESSAGE = 'its last session has not ended yet'; END IF; DELETE FROM interlock.locks WHERE owner = by_owner AND line = 0 AND id = ANY (ids) AND home <> own;
    held := interlock.lock_held(by_owner, ids, own, at);
    IF held = n THEN
      RETURN 'granted ' || array_to_string(interlock.lock_rearm(by_owner, ids, ttl, at, own, of_identity,
        of_label, of_host, of_pid, of_tied), ' ');
    END IF;
    -- It was granted all of it, and some is gone since. A claim never grows.
    IF held > 0 THEN RETURN 'lost'; END IF;
    SELECT line, rank, number INTO my_line, my_rank, my_number FROM interlock.locks
    WHERE owner = by_owner AND line > 0 AND id = ANY (ids) LIMIT 1;
  END IF;
  was_queued := my_line IS NOT NULL;

  IF instead <> none AND (NOT anybody OR interlock.lock_held(instead, ids, own, at) < n) THEN
    IF was_queued THEN
      DELETE FROM interlock.locks WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
    END IF;
    RETURN 'lost';
  END IF;
  IF instead <> none AND interlock.lock_elsewhere(instead, ids, own) THEN RAISE EXCEPTION USING ERRCODE = 'IL004', MESSAGE = 'another session'; END IF;

  IF anybody THEN
    -- All who use a row use it in the same way.
    FOR i IN 1..n LOOP
      FOR tries IN 1..2 LOOP
        first := interlock.lock_first(ids[i], own, at);
        EXIT WHEN first.id IS NULL OR ((first.mode = 'n') = (substr(modes, i, 1) = 'n')
          AND (first.mode <> 'n' OR first.capacity = capacities[i]));
        CONTINUE WHEN tries = 1 AND interlock.lock_sweep(ids[i], own, at, true);
        RETURN 'wrong ' || i || ' ' || first.mode || ' ' || first.capacity || ' ' || first.label;
      END LOOP;
    END LOOP;
    -- Two holders that want more would wait for each other.
    IF instead <> none THEN
      FOR i IN 1..n LOOP
        CONTINUE WHEN substr(modes, i, 1) <> 'e';
        ahead := interlock.lock_first_ahead(ids[i], 'e', 2, -9223372036854775808, 0, by_owner, instead, own, at);
        IF ahead.id IS NOT NULL THEN RETURN 'busy'; END IF;
      END LOOP;
    END IF;
  END IF;

  IF NOT was_queued THEN
    IF instead <> none OR may_queue THEN
      my_line := CASE WHEN instead <> none THEN 1 ELSE 2 END;
      my_rank := -of_priority;
      my_number := 9223372036854775807;  -- behind all who came before; it gets its own when it queues
    ELSE
      -- A one-shot stands behind everybody, whatever its priority.
      my_line := 3;
      my_rank := 0;
      my_number := 0;
    END IF;
  END IF;

  IF anybody THEN
    FOR tries IN 1..2 LOOP
      in_way := NULL;
      FOR i IN 1..n LOOP
        -- Of a claim that takes over: no stronger than what it has here already, so nobody is in its way.
        CONTINUE WHEN instead <> none AND EXISTS (SELECT FROM interlock.locks
          WHERE owner = instead AND id = ids[i] AND line = 0
            AND NOT (mode = 's' AND substr(modes, i, 1) = 'e'));
        SELECT coalesce(sum(slots) FILTER (WHERE owner <> by_owner AND owner <> instead), 0),
               min(expires) FILTER (WHERE owner <> by_owner AND owner <> instead
                 AND (mode = 'n' OR of_identity = '' OR identity <> of_identity)
                 AND (mode <> 's' OR substr(modes, i, 1) <> 's')),
               coalesce(bool_or(of_identity <> '' AND identity = of_identity AND mode <> 'n'), false)
        INTO taken, ends, same
        FROM interlock.locks WHERE id = ids[i] AND line = 0;
        in_part := ends IS NOT NULL
          AND (substr(modes, i, 1) <> 'n' OR taken + counts[i] > capacities[i]);
        IF in_part THEN in_way := least(in_way, ends); END IF;
        -- Whoever waits may wait for this very identity: it must not wait for them.
        CONTINUE WHEN same AND substr(modes, i, 1) <> 'n';
        ahead := interlock.lock_first_ahead(ids[i], substr(modes, i, 1), my_line, my_rank, my_number,
          by_owner, instead, own, at);
        IF ahead.id IS NOT NULL THEN in_way := least(in_way, ahead.expires); END IF;
      END LOOP;
      EXIT WHEN in_way IS NULL OR tries = 2;
      got := 0;
      FOR i IN 1..n LOOP
        IF interlock.lock_sweep(ids[i], own, at, true) THEN got := got + 1; END IF;
      END LOOP;
      EXIT WHEN got = 0;
    END LOOP;
  END IF;

  IF in_way IS NULL THEN
    got := 0;
    FOR i IN 1..n LOOP
      -- Those of one identity have to get along: for them, the rows alone tell who excludes whom.
      kept[i] := CASE WHEN substr(modes, i, 1) = 'e' AND of_identity = '' THEN 'e' ELSE 's' END;
      EXIT WHEN NOT interlock.lock_take(ids[i], kept[i]);
      got := i;
    END LOOP;
    IF got < n THEN
      -- Another program's lock, or one that is just being taken or given back.
      FOR i IN REVERSE got..1 LOOP
        PERFORM interlock.lock_drop(ids[i], kept[i]);
      END LOOP;
      in_way := at + interval '100 ms';
    END IF;
  END IF;

  IF in_way IS NOT NULL THEN
    IF NOT may_queue THEN RETURN 'busy'; END IF;
    IF NOT was_queued THEN my_number := nextval('interlock.numbers'); END IF;
    place := 0;
    FOR i IN 1..n LOOP
      -- Of a claim that takes over, only the parts that become stronger wait.
      CONTINUE WHEN my_line = 1 AND substr(modes, i, 1) <> 'e';
      IF was_queued THEN
        UPDATE interlock.locks SET expires = at + interval '15000 ms', home = own, spared = CASE WHEN own & 1 = 1 THEN at END
        WHERE owner = by_owner AND id = ids[i] AND line = my_line;
      END IF;
      IF NOT was_queued OR NOT FOUND THEN
        INSERT INTO interlock.locks VALUES (ids[i], my_line, my_rank, my_number, by_owner, resources[i],
          substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at,
          at + interval '15000 ms', CASE WHEN own & 1 = 1 THEN at END, own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO here FROM (
        SELECT FROM interlock.locks WHERE id = ids[i] AND line > 0
          AND (line, rank, number) < (my_line, my_rank, my_number) LIMIT 1000) AS before_me;
      place := greatest(place, here);
    END LOOP;
    
    RETURN 'queued ' || place || ' ' || interlock.lock_look(place, in_way - at, own);
  END IF;

  IF was_queued THEN
    DELETE FROM interlock.locks WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
  END IF;
  answer := 'granted';
  FOR i IN 1..n LOOP
    before := NULL;
    IF anybody AND instead <> none THEN
      SELECT * INTO before FROM interlock.locks WHERE owner = instead AND id = ids[i] AND line = 0;
    END IF;
    -- Not a new grant: a hold that goes on, no stronger than it was. And the same identity gets its
    -- own claim back: with a fresh fence, its outer writes would be refused after its inner ones.
    stronger := coalesce(before.mode = 's' AND substr(modes, i, 1) = 'e', false);
    fence := NULL;
    IF before.id IS NOT NULL AND NOT stronger THEN
      fence := before.number;
    ELSIF anybody AND of_identity <> '' AND substr(modes, i, 1) <> 'n' THEN
      SELECT number INTO fence FROM interlock.locks
      WHERE id = ids[i] AND line = 0 AND identity = of_identity AND mode <> 'n'
        AND (mode = 'e' OR substr(modes, i, 1) = 's')
      ORDER BY since, number LIMIT 1;
    END IF;
    IF fence IS NULL THEN fence := nextval('interlock.numbers'); END IF;
    IF before.id IS NOT NULL THEN
      DELETE FROM interlock.locks WHERE owner = instead AND id = ids[i] AND line = 0;
      PERFORM interlock.lock_drop(ids[i], before.taken);
    END IF;
    INSERT INTO interlock.locks VALUES (ids[i], 0, -of_priority, fence, by_owner, resources[i],
      substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at, at + ttl, NULL, own,
      of_identity, of_label, of_host, of_pid, of_tied, kept[i]);
    IF before.id IS NOT NULL AND before.mode <> substr(modes, i, 1) AND NOT stronger THEN
      PERFORM interlock.lock_wake_next(ids[i], at);
    END IF;
    answer := answer || ' ' || fence;
  END LOOP;
  RETURN answer;
END $$;


--
-- Name: lock_acquire_one(integer, bigint, uuid, bigint[], text, text, bigint[], bigint[], text, bigint, boolean, uuid, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_acquire_one(backend integer, own bigint, by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[], ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  first interlock.locks;
  second interlock.locks;
  was_queued boolean;
  my_rank bigint;
  my_number bigint;
  fence bigint;
  place bigint;
  look interval;
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM interlock.guard(ids); END IF; PERFORM pg_advisory_xact_lock((of_id >> 32)::int, ((of_id << 32) >> 32)::int);
  at := clock_timestamp();
  SELECT * INTO first FROM interlock.locks WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF first.id IS NULL THEN
    IF pg_try_advisory_lock(of_id) THEN
      fence := nextval('interlock.numbers');
      INSERT INTO interlock.locks SELECT of_id, 0, -of_priority, fence, by_owner, names, 'e', counts[1],
        capacities[1], ancestors = '1', at, at + interval '1 us' * ttl_us, NULL, own, of_identity, of_label,
        of_host, of_pid, of_tied, 'e'
      WHERE NOT EXISTS (SELECT FROM interlock.leases WHERE id = of_id AND line = 0);
      IF FOUND THEN RETURN 'granted ' || fence; END IF;
      PERFORM pg_advisory_unlock(of_id);
    END IF;
  ELSIF first.owner = by_owner THEN
    IF first.line = 2 AND first.expires > at THEN
      IF pg_try_advisory_lock(of_id) THEN
        fence := nextval('interlock.numbers');
        UPDATE interlock.locks SET line = 0, number = fence, since = at,
          expires = at + interval '1 us' * ttl_us, spared = NULL, home = own, taken = 'e'
        WHERE owner = by_owner AND id = of_id AND line = 2
          AND NOT EXISTS (SELECT FROM interlock.leases WHERE id = of_id AND line = 0);
        IF FOUND THEN RETURN 'granted ' || fence; END IF;
        PERFORM pg_advisory_unlock(of_id);
      END IF;
    END IF;
  ELSIF first.line = 0 AND first.expires > at AND first.mode <> 'n' THEN
    SELECT * INTO second FROM interlock.locks
    WHERE id = of_id ORDER BY line, rank, number OFFSET 1 LIMIT 1;
    was_queued := coalesce(second.owner = by_owner, false);
    IF (second.id IS NULL OR was_queued) AND NOT interlock.lock_is_gone(first.home, own) THEN
      IF NOT may_queue THEN RETURN 'busy'; END IF;
      IF was_queued THEN
        UPDATE interlock.locks SET expires = at + interval '15000 ms', home = own, spared = CASE WHEN own & 1 = 1 THEN at END
        WHERE owner = by_owner AND id = of_id AND line = 2;
      ELSE
        INSERT INTO interlock.locks VALUES (of_id, 2, -of_priority, nextval('interlock.numbers'), by_owner,
          names, 'e', counts[1], capacities[1], ancestors = '1', at, at + interval '15000 ms', CASE WHEN own & 1 = 1 THEN at END,
          own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      look := least(first.expires - at, interval '200 ms');
      IF own = 0 THEN look := least(look, interval '100 ms'); END IF;
      
      RETURN 'queued 0 ' || (extract(epoch FROM look) * 1000000)::bigint;
    END IF;
    IF second.line = 2 AND may_queue AND NOT interlock.lock_is_gone(first.home, own)
      AND (second.home = 0 OR NOT interlock.lock_is_gone(second.home, own))
      AND NOT EXISTS (SELECT FROM interlock.locks WHERE owner = by_owner AND id = of_id AND line <> 2) THEN
      UPDATE interlock.locks SET expires = at + interval '15000 ms', home = own, spared = CASE WHEN own & 1 = 1 THEN at END
      WHERE owner = by_owner AND id = of_id AND line = 2
      RETURNING rank, number INTO my_rank, my_number;
      was_queued := FOUND;
      IF NOT was_queued THEN
        my_rank := -of_priority;
        my_number := nextval('interlock.numbers');
        INSERT INTO interlock.locks VALUES (of_id, 2, my_rank, my_number, by_owner, names, 'e', counts[1],
          capacities[1], ancestors = '1', at, at + interval '15000 ms', CASE WHEN own & 1 = 1 THEN at END, own, of_identity,
          of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO place FROM (
        SELECT FROM interlock.locks WHERE id = of_id AND line > 0
          AND (line, rank, number) < (2, my_rank, my_number) LIMIT 1000) AS before_me;
      
      RETURN 'queued ' || place || ' '
        || interlock.lock_look(place, least(first.expires, second.expires) - at, own);
    END IF;
  END IF;
  RETURN interlock.lock_acquire(backend, own, by_owner, ids, names, modes, counts, capacities,
    ancestors, ttl_us, may_queue, instead, of_priority, of_identity, of_label, of_host, of_pid, of_tied);
END $$;


--
-- Name: lock_backend(bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_backend(home bigint) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT pid FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND mode = 'ExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = (home >> 32) & 4294967295 AND objid::bigint = home & 4294967295
$$;


--
-- Name: lock_drop(bigint, text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_drop(id bigint, how text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF how = 'e' THEN PERFORM pg_advisory_unlock(id); ELSE PERFORM pg_advisory_unlock_shared(id); END IF;
END $$;


--
-- Name: lock_elsewhere(uuid, bigint[], bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_elsewhere(by_owner uuid, ids bigint[], own bigint) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  RETURN EXISTS (SELECT FROM interlock.locks WHERE owner = by_owner AND id = ANY (ids) AND line = 0
                 AND home <> own AND NOT interlock.lock_is_gone(home, own));
END $$;


--
-- Name: locks; Type: TABLE; Schema: interlock; Owner: -
--

CREATE UNLOGGED TABLE interlock.locks (
    id bigint NOT NULL,
    line smallint NOT NULL,
    rank bigint NOT NULL,
    number bigint NOT NULL,
    owner uuid NOT NULL,
    resource text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL COLLATE pg_catalog."C",
    slots bigint NOT NULL,
    capacity bigint NOT NULL,
    ancestor boolean NOT NULL,
    since timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL,
    spared timestamp with time zone,
    home bigint NOT NULL,
    identity text NOT NULL COLLATE pg_catalog."C",
    label text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    tied boolean NOT NULL,
    taken text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50');


--
-- Name: lock_end(interlock.locks, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_end(hold interlock.locks, own bigint, at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  backend int;
BEGIN
  IF hold.home = own THEN
    PERFORM interlock.lock_drop(hold.id, hold.taken);
    RETURN true;
  END IF;
  IF interlock.lock_is_gone(hold.home, own) THEN RETURN true; END IF;
  IF at < greatest(hold.expires, hold.spared) + interval '500 ms' THEN
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


--
-- Name: lock_evict(interlock.locks, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_evict(hold interlock.locks, own bigint, at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: lock_expire(integer, bigint, uuid, bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_expire(backend integer, own bigint, by_owner uuid, ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  h interlock.locks;
  remaining bigint := 0;
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
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


--
-- Name: lock_first(bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_first(of_id bigint, own bigint, at timestamp with time zone) RETURNS interlock.locks
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  r interlock.locks;
BEGIN
  SELECT * INTO r FROM interlock.locks WHERE id = of_id AND line = 0 LIMIT 1;
  IF NOT FOUND THEN
    r := interlock.lock_first_ahead(of_id, 'e', 3, 0, 0, '00000000-0000-0000-0000-000000000000',
      '00000000-0000-0000-0000-000000000000', own, at);
  END IF;
  RETURN r;
END $$;


--
-- Name: lock_first_ahead(bigint, text, integer, bigint, bigint, uuid, uuid, bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_first_ahead(of_id bigint, wanted text, to_line integer, to_rank bigint, to_number bigint, by_owner uuid, instead uuid, own bigint, at timestamp with time zone) RETURNS interlock.locks
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  w interlock.locks;
BEGIN
  LOOP
    SELECT * INTO w FROM interlock.locks
    WHERE id = of_id AND line > 0 AND (line, rank, number) < (to_line, to_rank, to_number)
      AND (wanted <> 's' OR mode <> 's') AND owner <> by_owner AND owner <> instead
    ORDER BY line, rank, number LIMIT 1;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF w.expires > at AND (w.home = 0 OR NOT interlock.lock_is_gone(w.home, own)) THEN RETURN w; END IF;
    DELETE FROM interlock.locks WHERE owner = w.owner AND id = of_id AND line = w.line;
  END LOOP;
END $$;


--
-- Name: lock_held(uuid, bigint[], bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_held(by_owner uuid, ids bigint[], own bigint, at timestamp with time zone) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT count(*) FROM interlock.locks
  WHERE owner = by_owner AND id = ANY (ids) AND line = 0 AND expires > at
    AND NOT interlock.lock_is_gone(home, own)
$$;


--
-- Name: lock_held_in_other_mode(bigint[], text, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_held_in_other_mode(ids bigint[], modes text, at timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  RETURN (SELECT concat_ws(' ', 'other', i, pid, host)
          FROM unnest(ids) WITH ORDINALITY AS part (of_id, i) JOIN interlock.leases ON id = of_id
          WHERE line = 0 AND expires > at AND (mode <> 's' OR substr(modes, i::int, 1) <> 's') LIMIT 1);
END $$;


--
-- Name: lock_inspect(integer, bigint, bigint[], text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_inspect(backend integer, own bigint, ids bigint[], beginning text) RETURNS TABLE(resource text, line smallint, owner uuid, mode text, slots bigint, capacity bigint, ancestor boolean, priority bigint, fence bigint, age_us bigint, left_us bigint, identity text, label text, host text, pid bigint, tied boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT t.resource, t.line, t.owner, t.mode, t.slots, t.capacity, t.ancestor,
    -t.rank, CASE WHEN t.line = 0 THEN t.number ELSE 0 END,
    (extract(epoch FROM at - t.since) * 1000000)::bigint,
    (extract(epoch FROM t.expires - at) * 1000000)::bigint,
    t.identity, t.label, t.host, t.pid, t.tied
  FROM interlock.locks t
  WHERE CASE WHEN cardinality(ids) > 0 THEN t.id = ANY (ids) ELSE starts_with(t.resource, beginning) END
    AND t.expires > at AND NOT (t.home <> 0 AND interlock.lock_is_gone(t.home, own))
  ORDER BY t.resource, t.line, t.rank, t.number;
END $$;


--
-- Name: lock_is_gone(bigint, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_is_gone(home bigint, own bigint) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  RETURN home <> own AND pg_try_advisory_xact_lock_shared(interlock.high(home), interlock.low(home));
END $$;


--
-- Name: lock_look(bigint, interval, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_look(place bigint, until interval, own bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  look interval := greatest(until, interval '1 ms');
BEGIN
  IF until <= interval '0' THEN look := interval '100 ms' * least(place + 1, 10); END IF;
  IF place = 0 THEN
    look := least(look, interval '200 ms');
  ELSIF place = 1 THEN
    look := least(look, interval '500 ms');
  END IF;
  IF own = 0 THEN look := least(look, interval '100 ms' * least(place + 1, 10)); END IF;
  RETURN extract(epoch FROM look) * 1000000;
END $$;


--
-- Name: lock_rearm(uuid, bigint[], interval, timestamp with time zone, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_rearm(by_owner uuid, ids bigint[], ttl interval, at timestamp with time zone, own bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  fences bigint[];
BEGIN
  WITH changed AS (
    UPDATE interlock.locks
    SET expires = greatest(expires, at + ttl),  identity = of_identity, label = of_label,
        host = of_host, pid = of_pid, tied = of_tied
    WHERE owner = by_owner AND id = ANY (ids) AND line = 0
    RETURNING id, number
  )
  SELECT array_agg(number ORDER BY array_position(ids, id)) INTO fences FROM changed;
  RETURN fences;
END $$;


--
-- Name: lock_release(integer, bigint, uuid, bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_release(backend integer, own bigint, by_owner uuid, ids bigint[]) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  r interlock.locks;
  at timestamptz;
  held int := 0;
  queued boolean := false;
  freed bigint[] := '{}';
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  FOR r IN SELECT * FROM interlock.locks WHERE owner = by_owner AND id = ANY (ids) LOOP
    IF r.line > 0 THEN
      DELETE FROM interlock.locks WHERE owner = by_owner AND id = r.id AND line = r.line;
      queued := queued OR r.expires > at;
      freed := freed || r.id;
      CONTINUE;
    END IF;
    IF r.expires > at AND NOT interlock.lock_is_gone(r.home, own) THEN
      held := held + 1;
      IF r.home <> own THEN PERFORM interlock.tell(r.home, by_owner); END IF;
    END IF;
    IF interlock.lock_evict(r, own, at) THEN
      DELETE FROM interlock.locks WHERE owner = by_owner AND id = r.id AND line = 0;
    END IF;
    freed := freed || r.id;
  END LOOP;
  FOR i IN 1..cardinality(freed) LOOP
    PERFORM interlock.lock_wake_next(freed[i], at);
  END LOOP;
  
  RETURN CASE WHEN held = cardinality(ids) THEN 'granted' WHEN held = 0 AND queued THEN 'queued' ELSE 'lost' END;
END $$;


--
-- Name: lock_release_one(integer, bigint, uuid, bigint[]); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_release_one(backend integer, own bigint, by_owner uuid, ids bigint[]) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  next interlock.locks;
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM interlock.guard(ids); END IF; PERFORM pg_advisory_xact_lock((of_id >> 32)::int, ((of_id << 32) >> 32)::int);
  at := clock_timestamp();
  DELETE FROM interlock.locks WHERE owner = by_owner AND id = of_id AND line = 0 AND expires > at AND home = own AND taken = 'e';
  IF NOT FOUND THEN RETURN interlock.lock_release(backend, own, by_owner, ids); END IF;
  PERFORM pg_advisory_unlock(of_id);
  SELECT * INTO next FROM interlock.locks WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF next.line = 2 AND next.mode = 'e' AND next.home <> 0 AND next.expires > at THEN
    PERFORM interlock.lock_wake(next, at);
  ELSIF next.id IS NOT NULL THEN
    PERFORM interlock.lock_wake_next(of_id, at);
  END IF;
  
  RETURN 'granted';
END $$;


--
-- Name: lock_renew(integer, bigint, uuid, bigint[], bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_renew(backend integer, own bigint, by_owner uuid, ids bigint[], ttl_us bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  at timestamptz;
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  IF interlock.lock_elsewhere(by_owner, ids, own) THEN RAISE EXCEPTION USING ERRCODE = 'IL004', MESSAGE = 'another session'; END IF;
  IF interlock.lock_held(by_owner, ids, own, at) < cardinality(ids) THEN
    FOR i IN 1..cardinality(ids) LOOP PERFORM interlock.lock_sweep(ids[i], own, at, false); END LOOP;
    RETURN 'lost';
  END IF;
  RETURN 'granted ' || array_to_string(interlock.lock_rearm(by_owner, ids,
    make_interval(secs => ttl_us / 1000000.0), at, own, of_identity, of_label, of_host, of_pid, of_tied), ' ');
END $$;


--
-- Name: lock_session(integer); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_session(backend integer) RETURNS TABLE(id bigint, how text)
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT (classid::bigint << 32) | objid::bigint, CASE WHEN mode = 'ExclusiveLock' THEN 'e' ELSE 's' END
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = backend
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;


--
-- Name: lock_settle(integer, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_settle(backend integer, own bigint) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  l record;
  ours bigint[];
  rows bigint;
  given_back int := 0;
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
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


--
-- Name: lock_sweep(bigint, bigint, timestamp with time zone, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_sweep(of_id bigint, own bigint, at timestamp with time zone, deep boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  h interlock.locks;
  dropped boolean := false;
BEGIN
  FOR h IN SELECT * FROM interlock.locks WHERE id = of_id AND line = 0 AND (deep OR expires <= at) LOOP
    IF h.expires <= at THEN
      CONTINUE WHEN NOT interlock.lock_end(h, own, at);
    ELSE
      CONTINUE WHEN NOT interlock.lock_is_gone(h.home, own);
    END IF;
    DELETE FROM interlock.locks WHERE owner = h.owner AND id = of_id AND line = 0;
    dropped := true;
  END LOOP;
  IF dropped THEN PERFORM interlock.lock_wake_next(of_id, at); END IF;
  RETURN dropped;
END $$;


--
-- Name: lock_take(bigint, text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_take(id bigint, how text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: lock_terminate(integer, bigint, bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_terminate(backend integer, own bigint, home bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF backend = pg_backend_pid() THEN PERFORM pg_terminate_backend(interlock.lock_backend(home)); END IF;
END $$;


--
-- Name: lock_title(integer, bigint, text); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_title(backend integer, own bigint, title text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF backend = pg_backend_pid() THEN PERFORM set_config('application_name', title, false); END IF;
END $$;


--
-- Name: lock_wait(integer, bigint, uuid, bigint[], text, text, bigint[], bigint[], text, bigint, boolean, uuid, bigint, text, text, text, bigint, boolean); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_wait(backend integer, own bigint, by_owner uuid, ids bigint[], names text, modes text, counts bigint[], capacities bigint[], ancestors text, ttl_us bigint, may_queue boolean, instead uuid, of_priority bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '900 ms'
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  of_id bigint := ids[1];
  me interlock.locks;
  ahead interlock.locks;
  its_turn boolean := false;
  waited bigint;
  answer text := '';
BEGIN
  IF backend <> pg_backend_pid() THEN RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'another session'; END IF;
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
      EXIT WHEN clock_timestamp() > statement_timestamp() + interval '900 ms';
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
    SET spared = NULL, expires = least(expires, clock_timestamp() + interval '3000 ms')
    WHERE owner = by_owner AND id = of_id AND line = 2 AND home = own;
  END IF;
  RETURN answer;
END $$;


--
-- Name: lock_wake(interlock.locks, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_wake(w interlock.locks, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF w.home = 0 OR (w.line = 2 AND w.spared IS NOT NULL) THEN RETURN; END IF;
  PERFORM interlock.tell(w.home, w.owner);
  IF w.expires > at + interval '3000 ms' THEN
    UPDATE interlock.locks SET expires = at + interval '3000 ms'
    WHERE owner = w.owner AND id = w.id AND line = w.line;
  END IF;
END $$;


--
-- Name: lock_wake_next(bigint, timestamp with time zone); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.lock_wake_next(of_id bigint, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  w interlock.locks;
  held bigint;
  writers bigint;
  taken numeric;
  identities boolean;
  same bigint;
  readers boolean := false;
  blocked boolean := false;
  fit boolean;
BEGIN
  FOR w IN SELECT * FROM interlock.locks WHERE id = of_id AND line > 0
           ORDER BY line, rank, number LIMIT 1000 LOOP
    CONTINUE WHEN w.expires <= at;
    IF held IS NULL THEN
      SELECT count(*), count(*) FILTER (WHERE mode = 'e'), coalesce(sum(slots), 0),
             coalesce(bool_or(identity <> ''), false)
      INTO held, writers, taken, identities
      FROM interlock.locks WHERE id = of_id AND line = 0;
    END IF;
    same := 0;
    IF w.identity <> '' AND held > 0 THEN
      SELECT count(*) INTO same FROM interlock.locks
      WHERE id = of_id AND line = 0 AND identity = w.identity AND mode <> 'n';
    END IF;
    CONTINUE WHEN blocked AND (same = 0 OR w.mode = 'n');
    IF w.line = 1 THEN
      IF held - same <= (w.identity = '')::int THEN
        PERFORM interlock.lock_wake(w, at);
      END IF;
      RETURN;
    END IF;
    IF w.mode = 'n' THEN
      fit := taken + w.slots <= w.capacity;
    ELSIF held = same THEN
      fit := true;
    ELSIF w.mode = 's' THEN
      fit := NOT EXISTS (SELECT FROM interlock.locks WHERE id = of_id AND line = 0 AND mode <> 's'
                         AND (w.identity = '' OR identity <> w.identity));
    ELSE
      fit := false;
    END IF;
    IF NOT fit OR (w.mode = 'e' AND readers) THEN
      IF NOT identities THEN RETURN; END IF;
      blocked := true;
      CONTINUE;
    END IF;
    PERFORM interlock.lock_wake(w, at);
    IF w.mode = 'e' THEN RETURN; END IF;
    readers := readers OR w.mode = 's';
    taken := taken + w.slots;
  END LOOP;
END $$;


--
-- Name: low(bigint); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.low(number bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN (((number << 32) >> 32))::integer;


--
-- Name: tell(bigint, uuid); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.tell(home bigint, about uuid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF home <> 0 THEN PERFORM pg_notify('interlock_' || to_hex(home), about::text); END IF;
END $$;


--
-- Name: tidy(); Type: FUNCTION; Schema: interlock; Owner: -
--

CREATE FUNCTION interlock.tidy() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: numbers; Type: SEQUENCE; Schema: interlock; Owner: -
--

CREATE SEQUENCE interlock.numbers
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Data for Name: leases; Type: TABLE DATA; Schema: interlock; Owner: -
--

INSERT INTO interlock.leases VALUES (-4873572000167097931, 0, 0, 1795104326353366, '36efeac7-b599-2951-8be3-2d9c922829d6', 'interlock:exclusive', 'e', 1, 0, false, '2026-11-19 16:05:26.372437+00', '2200-01-01 00:00:00+00', NULL, 0, '', 'nightly-backup', 'vm', 0, true, 'e');
INSERT INTO interlock.leases VALUES (6039586078351868065, 0, 0, 1795104326353367, '3ebd7b7e-79cd-9c3d-f14e-24a1b7cbb007', 'interlock:shared', 's', 1, 0, false, '2026-11-19 16:05:26.409421+00', '2200-01-01 00:00:00+00', NULL, 0, '', 'reader', 'vm', 0, true, 's');


--
-- Data for Name: locks; Type: TABLE DATA; Schema: interlock; Owner: -
--

INSERT INTO interlock.locks VALUES (762558785440884898, 0, 0, 1795104326353880, 'a120b77d-2f2f-dc5f-67f3-9634c3927119', 'interlock:advisory', 'e', 1, 0, false, '2026-11-19 16:05:26.440074+00', '2200-01-01 00:00:00+00', NULL, 3581651892029054586, '', 'nightly-backup', 'vm', 16579, false, 'e');


--
-- Name: numbers; Type: SEQUENCE SET; Schema: interlock; Owner: -
--

SELECT pg_catalog.setval('interlock.numbers', 1795104326353880, true);


--
-- Name: leases leases_pkey; Type: CONSTRAINT; Schema: interlock; Owner: -
--

ALTER TABLE ONLY interlock.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (owner, id, line);


--
-- Name: locks locks_pkey; Type: CONSTRAINT; Schema: interlock; Owner: -
--

ALTER TABLE ONLY interlock.locks
    ADD CONSTRAINT locks_pkey PRIMARY KEY (owner, id, line);


--
-- Name: leases_in_line; Type: INDEX; Schema: interlock; Owner: -
--

CREATE INDEX leases_in_line ON interlock.leases USING btree (id, line, rank, number);


--
-- Name: locks_id_line_rank_number_idx; Type: INDEX; Schema: interlock; Owner: -
--

CREATE INDEX locks_id_line_rank_number_idx ON interlock.locks USING btree (id, line, rank, number);


--
-- PostgreSQL database dump complete
--


