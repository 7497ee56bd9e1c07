-- Interlock's schema, version {version}. Run it in one transaction; it is safe to run again. It changes an older schema
-- over: no program with an older Interlock may run meanwhile. It expects the search path pg_catalog, pg_temp.

DO $$
DECLARE
  other oid;
  found text;
BEGIN
  PERFORM pg_advisory_xact_lock({schema_lock});
  -- CREATE SCHEMA IF NOT EXISTS needs the right to create even if the schema exists.
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'interlock') THEN
    found := substring(obj_description(to_regnamespace('interlock'), 'pg_namespace') from '^Interlock ([0-9]+)$');
    IF found::bigint > {version} THEN
      RAISE EXCEPTION USING ERRCODE = 'IL006', MESSAGE = format('the schema interlock is of version %s, and this is the '
        'SQL of version {version}. Nothing was changed. Use a newer program: update Interlock', found);
    END IF;
    RETURN;
  END IF;
  CREATE SCHEMA interlock;
  -- Default privileges may give others the right to create in it.
  FOR other IN SELECT grantee FROM pg_namespace, aclexplode(nspacl)
               WHERE nspname = 'interlock' AND privilege_type = 'CREATE' AND grantee <> nspowner LOOP
    EXECUTE format('REVOKE CREATE ON SCHEMA interlock FROM %s',
                   CASE WHEN other = 0 THEN 'PUBLIC' ELSE other::regrole::text END);
  END LOOP;
END $$;

{trust}-- Whoever runs this: all of it belongs to the schema's owner.
DO $$
BEGIN
  EXECUTE format('SET LOCAL ROLE %s', (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'interlock'));
END $$;

-- Fences and places in the queue. One session must not keep numbers in reserve: CACHE 1.
CREATE SEQUENCE IF NOT EXISTS interlock.numbers AS bigint CACHE 1;

-- They begin with the time in microseconds: fences rise also over a schema that is dropped and made anew.
DO $$
BEGIN
  IF NOT (SELECT is_called FROM interlock.numbers) THEN
    PERFORM setval('interlock.numbers'::regclass,
                   (extract(epoch FROM clock_timestamp()) * 1000000::numeric)::bigint);
  END IF;
END $$;

-- Who holds and who waits: `leases` for mode=lease, `locks` for advisory mode. A session's locks end
-- with the server, so their rows need not outlive it.
CREATE TABLE IF NOT EXISTS interlock.leases (
  id        bigint NOT NULL,             -- of the resource: the start of the name's SHA-256
  line      smallint NOT NULL,           -- 0: holds; 1: holds and waits for more; 2: waits
  rank      bigint NOT NULL,             -- the priority, negated
  number    bigint NOT NULL,             -- in the queue: the order of arrival; else the fence
  owner     uuid NOT NULL,
  resource  text COLLATE "C" NOT NULL,
  mode      text COLLATE "C" NOT NULL,   -- e: exclusive, s: shared, n: slots
  slots     bigint NOT NULL,
  capacity  bigint NOT NULL,
  ancestor  boolean NOT NULL,
  since     timestamptz NOT NULL,
  expires   timestamptz NOT NULL,
  spared    timestamptz,                 -- evicted: its session is left alone until then;
                                         -- waits: it does so by itself, and need not be told
  home      bigint NOT NULL,             -- which client to wake, and whose session; 0: it can't be told
  identity  text COLLATE "C" NOT NULL,
  label     text NOT NULL,
  host      text NOT NULL,
  pid       bigint NOT NULL,
  tied      boolean NOT NULL,
  taken     text COLLATE "C" NOT NULL,   -- holds in advisory mode: its lock on the id, e or s
  PRIMARY KEY (owner, id, line)
) WITH (fillfactor = 50);  -- heartbeats and renewals change rows where they are
CREATE INDEX IF NOT EXISTS leases_in_line ON interlock.leases (id, line, rank, number);
CREATE UNLOGGED TABLE IF NOT EXISTS interlock.locks (LIKE interlock.leases INCLUDING ALL)
  WITH (fillfactor = 50);

-- Default privileges may let others set triggers, whose code would run with the rights of all who lock.
DO $$
DECLARE
  other oid;
BEGIN
  FOR other IN SELECT DISTINCT grantee FROM pg_class, aclexplode(relacl)
               WHERE relnamespace = 'interlock'::regnamespace AND privilege_type IN ('TRIGGER', 'REFERENCES')
                 AND grantee <> relowner LOOP
    EXECUTE format('REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA interlock FROM %s',
                   CASE WHEN other = 0 THEN 'PUBLIC' ELSE other::regrole::text END);
  END LOOP;
END $$;

-- 64 bits as a key of the other kind of advisory locks, which are no user's: they guard rows while
-- they are changed, and show that a session lives.
CREATE OR REPLACE FUNCTION interlock.high(number bigint) RETURNS int LANGUAGE sql IMMUTABLE
RETURN (number >> 32)::int;
CREATE OR REPLACE FUNCTION interlock.low(number bigint) RETURNS int LANGUAGE sql IMMUTABLE
RETURN ((number << 32) >> 32)::int;

-- The rows of these resources are ours until the transaction ends. In order, so that no two wait for
-- each other.
CREATE OR REPLACE FUNCTION interlock.guard(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION interlock.tell(home bigint, about uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF home <> 0 THEN PERFORM pg_notify('interlock_' || to_hex(home), about::text); END IF;
END $$;
