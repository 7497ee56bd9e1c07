-- The rules of exclusion and order (those of src/core/lock_table.hpp) over interlock.{table}.

-- Wakes those who fit now. A waiter whose identity holds the row waits for other holders alone. All others wait for those
-- ahead of them, too: as if those who are woken held it already.
CREATE OR REPLACE FUNCTION interlock.{kind}_wake_next(of_id bigint, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  w interlock.{table};
  held bigint;
  taken numeric;
  identities boolean;
  same bigint;
  readers boolean := false;
  closed boolean := false;
  fit boolean;
BEGIN
  FOR w IN SELECT * FROM interlock.{table} WHERE id = of_id AND line > 0
           ORDER BY line, rank, number LIMIT 1000 LOOP
    CONTINUE WHEN w.expires <= at;
    IF held IS NULL THEN
      SELECT count(*), coalesce(sum(slots), 0), coalesce(bool_or(identity <> '' AND mode <> 'n'), false)
      INTO held, taken, identities
      FROM interlock.{table} WHERE id = of_id AND line = 0;
    END IF;
    same := 0;
    IF w.identity <> '' AND w.mode <> 'n' AND identities THEN
      SELECT count(*) INTO same FROM interlock.{table}
      WHERE id = of_id AND line = 0 AND identity = w.identity;
    END IF;
    CONTINUE WHEN closed AND same = 0;
    IF w.line = 1 AND w.identity = '' THEN
      fit := held <= 1;
    ELSIF w.mode = 'n' THEN
      fit := taken + w.slots <= w.capacity;
    ELSIF held = same THEN
      fit := w.mode = 's' OR same > 0 OR NOT readers;
    ELSIF w.mode = 's' THEN
      fit := NOT EXISTS (SELECT FROM interlock.{table} WHERE id = of_id AND line = 0 AND mode <> 's'
                         AND (w.identity = '' OR identity <> w.identity));
    ELSE
      fit := false;
    END IF;
    IF fit THEN PERFORM interlock.{kind}_wake(w, at); END IF;
    closed := closed OR NOT fit OR w.mode = 'e';
    IF closed AND NOT identities THEN RETURN; END IF;
    readers := readers OR w.mode = 's';
    taken := taken + w.slots;
  END LOOP;
END $$;

-- Told that it is its turn, it has to come soon. Only one that can be told, and does not wait by itself.
CREATE OR REPLACE FUNCTION interlock.{kind}_wake(w interlock.{table}, at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF w.home = 0 OR (w.line = 2 AND w.spared IS NOT NULL) THEN RETURN; END IF;
  PERFORM interlock.tell(w.home, w.owner);
  IF w.expires > at + interval '{woken_ms} ms' THEN
    UPDATE interlock.{table} SET expires = at + interval '{woken_ms} ms'
    WHERE owner = w.owner AND id = w.id AND line = w.line;
  END IF;
END $$;

-- Drops holders whose time is over and, `deep`, those whose session has ended. True if there were any.
CREATE OR REPLACE FUNCTION interlock.{kind}_sweep(of_id bigint, own bigint, at timestamptz, deep boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  h interlock.{table};
  dropped boolean := false;
BEGIN
  FOR h IN SELECT * FROM interlock.{table} WHERE id = of_id AND line = 0 AND (deep OR expires <= at) LOOP
    IF h.expires <= at THEN
      CONTINUE WHEN NOT interlock.{kind}_end(h, own, at);
    ELSE
      CONTINUE WHEN NOT interlock.{kind}_is_gone(h.home, own);
    END IF;
    DELETE FROM interlock.{table} WHERE owner = h.owner AND id = of_id AND line = 0;
    dropped := true;
  END LOOP;
  IF dropped THEN PERFORM interlock.{kind}_wake_next(of_id, at); END IF;
  RETURN dropped;
END $$;

-- The first in the queue before this place who is in the way of `wanted` (readers wait for writers
-- only). Those who fell silent are dropped when they come to the head of the queue.
CREATE OR REPLACE FUNCTION interlock.{kind}_first_ahead(of_id bigint, wanted text, to_line int, to_rank bigint,
  to_number bigint, by_owner uuid, instead uuid, own bigint, at timestamptz)
RETURNS interlock.{table} LANGUAGE plpgsql AS $$
DECLARE
  w interlock.{table};
BEGIN
  LOOP
    SELECT * INTO w FROM interlock.{table}
    WHERE id = of_id AND line > 0 AND (line, rank, number) < (to_line, to_rank, to_number)
      AND (wanted <> 's' OR mode <> 's') AND owner <> by_owner AND owner <> instead
    ORDER BY line, rank, number LIMIT 1;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF w.expires > at AND (w.home = 0 OR NOT interlock.{kind}_is_gone(w.home, own)) THEN RETURN w; END IF;
    DELETE FROM interlock.{table} WHERE owner = w.owner AND id = of_id AND line = w.line;
  END LOOP;
END $$;

-- What is held goes on, from now: never shorter, as this may be a late copy of a message. NULL if
-- not all of it is held.
CREATE OR REPLACE FUNCTION interlock.{kind}_rearm(by_owner uuid, ids bigint[], ttl interval, at timestamptz,
  own bigint, of_identity text, of_label text, of_host text, of_pid bigint, of_tied boolean)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  fences bigint[];
BEGIN
  WITH changed AS (
    UPDATE interlock.{table}
    SET expires = greatest(expires, at + ttl), {rehome} identity = of_identity, label = of_label,
        host = of_host, pid = of_pid, tied = of_tied
    WHERE owner = by_owner AND id = ANY (ids) AND line = 0
    RETURNING id, number
  )
  SELECT array_agg(number ORDER BY array_position(ids, id)) INTO fences FROM changed;
  RETURN fences;
END $$;

CREATE OR REPLACE FUNCTION interlock.{kind}_held(by_owner uuid, ids bigint[], own bigint, at timestamptz)
RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM interlock.{table}
  WHERE owner = by_owner AND id = ANY (ids) AND line = 0 AND expires > at
    AND NOT interlock.{kind}_is_gone(home, own)
$$;

-- After how many microseconds to ask again, at this place in the line. The next in line looks for what nobody
-- tells of: a session that ended, a waiter that was killed just when it was woken, a message that it can't hear.
-- If what is in the way is over, and has not let go yet, it is looked for ten times a second.
CREATE OR REPLACE FUNCTION interlock.{kind}_look(place bigint, until interval, own bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  look interval := greatest(until, interval '1 ms');
BEGIN
  IF until <= interval '0' THEN look := interval '{foreign_ms} ms' * least(place + 1, 10); END IF;
  IF place = 0 THEN
    look := least(look, interval '{first_look_ms} ms');
  ELSIF place = 1 THEN
    look := least(look, interval '{second_look_ms} ms');
  END IF;
  IF own = 0 THEN look := least(look, interval '{deaf_look_ms} ms' * least(place + 1, 10)); END IF;
  RETURN extract(epoch FROM look) * 1000000;
END $$;

-- acquire. Answers, as words:
--   granted FENCE...      queued PLACE MICROSECONDS      busy      lost
--   wrong PART MODE CAPACITY LABEL      other PART PID HOST
CREATE OR REPLACE FUNCTION interlock.{kind}_acquire({session_parameters} {acquire_parameters})
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  n int := cardinality(ids);
  none CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  at timestamptz;
  ttl interval := make_interval(secs => ttl_us / 1000000.0);
  resources text[] := string_to_array(names, E'\n');
  first interlock.{table};
  ahead interlock.{table};
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
  before interlock.{table};
  stronger boolean;
  fence bigint;
  answer text;
  anybody boolean := false;
  kept text[] := '{}';
BEGIN
  {enter}
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  IF EXISTS (SELECT FROM interlock.{other_table} WHERE id = ANY (ids) AND line = 0) THEN
    answer := interlock.{kind}_held_in_other_mode(ids, modes, at);
    IF answer IS NOT NULL THEN RETURN answer; END IF;
  END IF;

  FOR i IN 1..n LOOP
    IF EXISTS (SELECT FROM interlock.{table} WHERE id = ids[i]) THEN
      anybody := true;
      PERFORM interlock.{kind}_sweep(ids[i], own, at, false);
    END IF;
  END LOOP;

  IF anybody THEN
    {own_session}
    held := interlock.{kind}_held(by_owner, ids, own, at);
    IF held = n THEN
      RETURN 'granted ' || array_to_string(interlock.{kind}_rearm(by_owner, ids, ttl, at, own, of_identity,
        of_label, of_host, of_pid, of_tied), ' ');
    END IF;
    -- It was granted all of it, and some is gone since. A claim never grows.
    IF held > 0 THEN RETURN 'lost'; END IF;
    SELECT line, rank, number INTO my_line, my_rank, my_number FROM interlock.{table}
    WHERE owner = by_owner AND line > 0 AND id = ANY (ids) LIMIT 1;
  END IF;
  was_queued := my_line IS NOT NULL;

  IF instead <> none AND (NOT anybody OR interlock.{kind}_held(instead, ids, own, at) < n) THEN
    IF was_queued THEN
      DELETE FROM interlock.{table} WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
      -- Its place was before all others, and they waited for it.
      FOR i IN 1..n LOOP PERFORM interlock.{kind}_wake_next(ids[i], at); END LOOP;
    END IF;
    RETURN 'lost';
  END IF;
  {instead_in_session}

  IF anybody THEN
    -- All who use a row use it in the same way.
    FOR i IN 1..n LOOP
      FOR tries IN 1..2 LOOP
        first := interlock.{kind}_first(ids[i], own, at);
        EXIT WHEN first.id IS NULL OR ((first.mode = 'n') = (substr(modes, i, 1) = 'n')
          AND (first.mode <> 'n' OR first.capacity = capacities[i]));
        CONTINUE WHEN tries = 1 AND interlock.{kind}_sweep(ids[i], own, at, true);
        RETURN 'wrong ' || i || ' ' || first.mode || ' ' || first.capacity || ' ' || first.label;
      END LOOP;
    END LOOP;
    -- Two holders that want more would wait for each other.
    IF instead <> none THEN
      FOR i IN 1..n LOOP
        CONTINUE WHEN substr(modes, i, 1) <> 'e';
        ahead := interlock.{kind}_first_ahead(ids[i], 'e', 2, -9223372036854775808, 0, by_owner, instead, own, at);
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
        CONTINUE WHEN instead <> none AND EXISTS (SELECT FROM interlock.{table}
          WHERE owner = instead AND id = ids[i] AND line = 0
            AND NOT (mode = 's' AND substr(modes, i, 1) = 'e'));
        SELECT coalesce(sum(slots) FILTER (WHERE owner <> by_owner AND owner <> instead), 0),
               min(expires) FILTER (WHERE owner <> by_owner AND owner <> instead
                 AND (mode = 'n' OR of_identity = '' OR identity <> of_identity)
                 AND (mode <> 's' OR substr(modes, i, 1) <> 's')),
               coalesce(bool_or(of_identity <> '' AND identity = of_identity AND mode <> 'n'), false)
        INTO taken, ends, same
        FROM interlock.{table} WHERE id = ids[i] AND line = 0;
        in_part := ends IS NOT NULL
          AND (substr(modes, i, 1) <> 'n' OR taken + counts[i] > capacities[i]);
        IF in_part THEN in_way := least(in_way, ends); END IF;
        -- Whoever waits may wait for this very identity: it must not wait for them.
        CONTINUE WHEN same AND substr(modes, i, 1) <> 'n';
        ahead := interlock.{kind}_first_ahead(ids[i], substr(modes, i, 1), my_line, my_rank, my_number,
          by_owner, instead, own, at);
        IF ahead.id IS NOT NULL THEN in_way := least(in_way, ahead.expires); END IF;
      END LOOP;
      EXIT WHEN in_way IS NULL OR tries = 2;
      got := 0;
      FOR i IN 1..n LOOP
        IF interlock.{kind}_sweep(ids[i], own, at, true) THEN got := got + 1; END IF;
      END LOOP;
      EXIT WHEN got = 0;
    END LOOP;
  END IF;

  IF in_way IS NULL THEN
    got := 0;
    FOR i IN 1..n LOOP
      -- Those of one identity have to get along: for them, the rows alone tell who excludes whom.
      kept[i] := CASE WHEN substr(modes, i, 1) = 'e' AND of_identity = '' THEN 'e' ELSE 's' END;
      EXIT WHEN NOT interlock.{kind}_take(ids[i], kept[i]);
      got := i;
    END LOOP;
    IF got < n THEN
      -- Another program's lock, or one that is just being taken or given back.
      FOR i IN REVERSE got..1 LOOP
        PERFORM interlock.{kind}_drop(ids[i], kept[i]);
      END LOOP;
      in_way := at + interval '{foreign_ms} ms';
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
        UPDATE interlock.{table} SET expires = at + interval '{ticket_ms} ms', home = own, spared = {blocks}
        WHERE owner = by_owner AND id = ids[i] AND line = my_line;
      END IF;
      IF NOT was_queued OR NOT FOUND THEN
        INSERT INTO interlock.{table} VALUES (ids[i], my_line, my_rank, my_number, by_owner, resources[i],
          substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at,
          at + interval '{ticket_ms} ms', {blocks}, own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO here FROM (
        SELECT FROM interlock.{table} WHERE id = ids[i] AND line > 0
          AND (line, rank, number) < (my_line, my_rank, my_number) LIMIT {most_places}) AS before_me;
      place := greatest(place, here);
    END LOOP;
    {queued}
    RETURN 'queued ' || place || ' ' || interlock.{kind}_look(place, in_way - at, own);
  END IF;

  IF was_queued THEN
    DELETE FROM interlock.{table} WHERE owner = by_owner AND line > 0 AND id = ANY (ids);
  END IF;
  answer := 'granted';
  FOR i IN 1..n LOOP
    before := NULL;
    IF anybody AND instead <> none THEN
      SELECT * INTO before FROM interlock.{table} WHERE owner = instead AND id = ids[i] AND line = 0;
    END IF;
    -- Not a new grant: a hold that goes on, no stronger than it was. And the same identity gets its
    -- own claim back: with a fresh fence, its outer writes would be refused after its inner ones.
    stronger := coalesce(before.mode = 's' AND substr(modes, i, 1) = 'e', false);
    fence := NULL;
    IF before.id IS NOT NULL AND NOT stronger THEN
      fence := before.number;
    ELSIF anybody AND of_identity <> '' AND substr(modes, i, 1) <> 'n' THEN
      SELECT number INTO fence FROM interlock.{table}
      WHERE id = ids[i] AND line = 0 AND identity = of_identity AND mode <> 'n'
        AND (mode = 'e' OR substr(modes, i, 1) = 's')
      ORDER BY number DESC LIMIT 1;
    END IF;
    IF fence IS NULL THEN fence := nextval('interlock.numbers'); END IF;
    IF before.id IS NOT NULL THEN
      DELETE FROM interlock.{table} WHERE owner = instead AND id = ids[i] AND line = 0;
      PERFORM interlock.{kind}_drop(ids[i], before.taken);
    END IF;
    INSERT INTO interlock.{table} VALUES (ids[i], 0, -of_priority, fence, by_owner, resources[i],
      substr(modes, i, 1), counts[i], capacities[i], substr(ancestors, i, 1) = '1', at, at + ttl, NULL, own,
      of_identity, of_label, of_host, of_pid, of_tied, kept[i]);
    -- Who was woken together with this claim, and asked before it, was told to wait, and may fit, too. And so may
    -- others of its identity, now that it holds this row.
    IF (CASE WHEN substr(modes, i, 1) = 'n' THEN was_queued ELSE of_identity <> '' END)
      OR (before.id IS NOT NULL AND before.mode <> substr(modes, i, 1) AND NOT stronger) THEN
      PERFORM interlock.{kind}_wake_next(ids[i], at);
    END IF;
    answer := answer || ' ' || fence;
  END LOOP;
  RETURN answer;
END $$;

-- acquire, for one exclusive lock and nothing special about it: free, its turn, behind one holder, or in the
-- line behind it. What is not that simple goes the long way.
CREATE OR REPLACE FUNCTION interlock.{kind}_acquire_one({session_parameters} {acquire_parameters})
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  first interlock.{table};
  second interlock.{table};
  was_queued boolean;
  my_rank bigint;
  my_number bigint;
  fence bigint;
  place bigint;
  look interval;
BEGIN
  {enter}
  {guard_one}
  at := clock_timestamp();
  SELECT * INTO first FROM interlock.{table} WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF first.id IS NULL THEN
    IF {take_one} THEN
      fence := nextval('interlock.numbers');
      INSERT INTO interlock.{table} SELECT of_id, 0, -of_priority, fence, by_owner, names, 'e', counts[1],
        capacities[1], ancestors = '1', at, at + interval '1 us' * ttl_us, NULL, own, of_identity, of_label,
        of_host, of_pid, of_tied, 'e'
      WHERE NOT EXISTS (SELECT FROM interlock.{other_table} WHERE id = of_id AND line = 0);
      IF FOUND THEN RETURN 'granted ' || fence; END IF;
      {drop_one}
    END IF;
  ELSIF first.owner = by_owner THEN
    IF first.line = 2 AND first.expires > at THEN
      IF {take_one} THEN
        fence := nextval('interlock.numbers');
        UPDATE interlock.{table} SET line = 0, number = fence, since = at,
          expires = at + interval '1 us' * ttl_us, spared = NULL, home = own, taken = 'e'
        WHERE owner = by_owner AND id = of_id AND line = 2
          AND NOT EXISTS (SELECT FROM interlock.{other_table} WHERE id = of_id AND line = 0);
        IF FOUND THEN RETURN 'granted ' || fence; END IF;
        {drop_one}
      END IF;
    END IF;
  ELSIF first.line = 0 AND first.expires > at AND first.mode <> 'n' THEN
    SELECT * INTO second FROM interlock.{table}
    WHERE id = of_id ORDER BY line, rank, number OFFSET 1 LIMIT 1;
    was_queued := coalesce(second.owner = by_owner, false);
    IF (second.id IS NULL OR was_queued) AND NOT interlock.{kind}_is_gone(first.home, own) THEN
      IF NOT may_queue THEN RETURN 'busy'; END IF;
      IF was_queued THEN
        UPDATE interlock.{table} SET expires = at + interval '{ticket_ms} ms', home = own, spared = {blocks}
        WHERE owner = by_owner AND id = of_id AND line = 2;
      ELSE
        INSERT INTO interlock.{table} VALUES (of_id, 2, -of_priority, nextval('interlock.numbers'), by_owner,
          names, 'e', counts[1], capacities[1], ancestors = '1', at, at + interval '{ticket_ms} ms', {blocks},
          own, of_identity, of_label, of_host, of_pid, of_tied, '');
      END IF;
      look := least(first.expires - at, interval '{first_look_ms} ms');
      IF own = 0 THEN look := least(look, interval '{deaf_look_ms} ms'); END IF;
      {queued}
      RETURN 'queued 0 ' || (extract(epoch FROM look) * 1000000)::bigint;
    END IF;
    IF second.line = 2 AND second.expires > at AND may_queue AND NOT interlock.{kind}_is_gone(first.home, own)
      AND (second.home = 0 OR NOT interlock.{kind}_is_gone(second.home, own))
      AND NOT EXISTS (SELECT FROM interlock.{table} WHERE owner = by_owner AND id = of_id AND line <> 2) THEN
      UPDATE interlock.{table} SET expires = at + interval '{ticket_ms} ms', home = own, spared = {blocks}
      WHERE owner = by_owner AND id = of_id AND line = 2
      RETURNING rank, number INTO my_rank, my_number;
      was_queued := FOUND;
      IF NOT was_queued THEN
        my_rank := -of_priority;
        my_number := nextval('interlock.numbers');
        INSERT INTO interlock.{table} VALUES (of_id, 2, my_rank, my_number, by_owner, names, 'e', counts[1],
          capacities[1], ancestors = '1', at, at + interval '{ticket_ms} ms', {blocks}, own, of_identity,
          of_label, of_host, of_pid, of_tied, '');
      END IF;
      SELECT count(*) INTO place FROM (
        SELECT FROM interlock.{table} WHERE id = of_id AND line > 0
          AND (line, rank, number) < (2, my_rank, my_number) LIMIT {most_places}) AS before_me;
      {queued}
      RETURN 'queued ' || place || ' '
        || interlock.{kind}_look(place, least(first.expires, second.expires) - at, own);
    END IF;
  END IF;
  RETURN interlock.{kind}_acquire({session_arguments} by_owner, ids, names, modes, counts, capacities,
    ancestors, ttl_us, may_queue, instead, of_priority, of_identity, of_label, of_host, of_pid, of_tied);
END $$;

-- The first record of a row: any of them tells of what kind it is.
CREATE OR REPLACE FUNCTION interlock.{kind}_first(of_id bigint, own bigint, at timestamptz)
RETURNS interlock.{table} LANGUAGE plpgsql AS $$
DECLARE
  r interlock.{table};
BEGIN
  SELECT * INTO r FROM interlock.{table} WHERE id = of_id AND line = 0 LIMIT 1;
  IF NOT FOUND THEN
    r := interlock.{kind}_first_ahead(of_id, 'e', 3, 0, 0, '00000000-0000-0000-0000-000000000000',
      '00000000-0000-0000-0000-000000000000', own, at);
  END IF;
  RETURN r;
END $$;

-- renew: granted FENCE..., or lost.
CREATE OR REPLACE FUNCTION interlock.{kind}_renew({session_parameters}
  by_owner uuid, ids bigint[], ttl_us bigint, of_identity text, of_label text, of_host text,
  of_pid bigint, of_tied boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz;
BEGIN
  {enter}
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  {renew_in_session}
  IF interlock.{kind}_held(by_owner, ids, own, at) < cardinality(ids) THEN
    FOR i IN 1..cardinality(ids) LOOP PERFORM interlock.{kind}_sweep(ids[i], own, at, false); END LOOP;
    RETURN 'lost';
  END IF;
  RETURN 'granted ' || array_to_string(interlock.{kind}_rearm(by_owner, ids,
    make_interval(secs => ttl_us / 1000000.0), at, own, of_identity, of_label, of_host, of_pid, of_tied), ' ');
END $$;

-- release: forgets this owner. Answers granted if it held all of it, queued if it waited, else lost.
CREATE OR REPLACE FUNCTION interlock.{kind}_release({session_parameters} by_owner uuid, ids bigint[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r interlock.{table};
  at timestamptz;
  held int := 0;
  queued boolean := false;
  freed bigint[] := '{}';
BEGIN
  {enter}
  PERFORM interlock.guard(ids);
  at := clock_timestamp();
  FOR r IN SELECT * FROM interlock.{table} WHERE owner = by_owner AND id = ANY (ids) LOOP
    IF r.line > 0 THEN
      DELETE FROM interlock.{table} WHERE owner = by_owner AND id = r.id AND line = r.line;
      queued := queued OR r.expires > at;
      freed := freed || r.id;
      CONTINUE;
    END IF;
    IF r.expires > at AND NOT interlock.{kind}_is_gone(r.home, own) THEN
      held := held + 1;
      IF r.home <> own THEN PERFORM interlock.tell(r.home, by_owner); END IF;
    END IF;
    IF interlock.{kind}_evict(r, own, at) THEN
      DELETE FROM interlock.{table} WHERE owner = by_owner AND id = r.id AND line = 0;
    END IF;
    freed := freed || r.id;
  END LOOP;
  FOR i IN 1..cardinality(freed) LOOP
    PERFORM interlock.{kind}_wake_next(freed[i], at);
  END LOOP;
  {released}
  RETURN CASE WHEN held = cardinality(ids) THEN 'granted' WHEN held = 0 AND queued THEN 'queued' ELSE 'lost' END;
END $$;

-- release, of one exclusive lock that is held. Usually nobody waits, or one that wants it alone.
CREATE OR REPLACE FUNCTION interlock.{kind}_release_one({session_parameters} by_owner uuid, ids bigint[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  of_id bigint := ids[1];
  at timestamptz;
  next interlock.{table};
BEGIN
  {enter}
  {guard_one}
  at := clock_timestamp();
  DELETE FROM interlock.{table} WHERE owner = by_owner AND id = of_id AND line = 0 AND expires > at {ours};
  IF NOT FOUND THEN RETURN interlock.{kind}_release({session_arguments} by_owner, ids); END IF;
  {drop_one}
  SELECT * INTO next FROM interlock.{table} WHERE id = of_id ORDER BY line, rank, number LIMIT 1;
  IF next.line = 2 AND next.mode = 'e' AND next.home <> 0 AND next.expires > at THEN
    PERFORM interlock.{kind}_wake(next, at);
  ELSIF next.id IS NOT NULL THEN
    PERFORM interlock.{kind}_wake_next(of_id, at);
  END IF;
  {released}
  RETURN 'granted';
END $$;

-- inspect: the resources named, or all whose names begin with `beginning`.
CREATE OR REPLACE FUNCTION interlock.{kind}_inspect({session_parameters} ids bigint[], beginning text)
RETURNS TABLE (resource text, line smallint, owner uuid, mode text, slots bigint, capacity bigint,
  ancestor boolean, priority bigint, fence bigint, age_us bigint, left_us bigint, identity text,
  label text, host text, pid bigint, tied boolean) LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT t.resource, t.line, t.owner, t.mode, t.slots, t.capacity, t.ancestor,
    -t.rank, CASE WHEN t.line = 0 THEN t.number ELSE 0 END,
    (extract(epoch FROM at - t.since) * 1000000)::bigint,
    (extract(epoch FROM t.expires - at) * 1000000)::bigint,
    t.identity, t.label, t.host, t.pid, t.tied
  FROM interlock.{table} t
  WHERE CASE WHEN cardinality(ids) > 0 THEN t.id = ANY (ids) ELSE starts_with(t.resource, beginning) END
    AND t.expires > at AND NOT (t.home <> 0 AND interlock.{kind}_is_gone(t.home, own))
  ORDER BY t.resource, t.line, t.rank, t.number;
END $$;
