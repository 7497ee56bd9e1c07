-- Refuses a schema into which others can put code, or have put it: the code would run with the rights of this session.
-- Trusted are the role that connected, superusers, and the owner of the database. Membership in a role is not enough: a
-- superuser is a member of every role. Nor is the current role, as code can RESET it.
DO $$
DECLARE
  anew CONSTANT text := 'while nobody holds a lock, DROP SCHEMA interlock CASCADE and let one of these make it';
  finding record;
BEGIN
  WITH ours AS (
    SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = 'interlock'
  ), parts AS (
    SELECT classid, objid FROM ours JOIN pg_depend ON refobjid = ours.oid WHERE refclassid = 'pg_namespace'::regclass
  ), functions AS (
    SELECT proname, proowner FROM parts JOIN pg_proc ON oid = objid WHERE classid = 'pg_proc'::regclass
  ), tables AS (
    SELECT oid, relname, relowner, relacl FROM parts JOIN pg_class ON oid = objid WHERE classid = 'pg_class'::regclass
  ), ways (role, what, remedy) AS (
    SELECT nspowner, 'owns the schema interlock', anew FROM ours
    UNION ALL
    SELECT proowner, format('owns the function interlock.%I', proname), anew FROM functions
    UNION ALL
    SELECT relowner, format('owns interlock.%I', relname), anew FROM tables
    UNION ALL
    SELECT grantee, 'may create functions in the schema interlock', 'REVOKE CREATE ON SCHEMA interlock FROM ...'
    FROM ours, aclexplode(nspacl) WHERE privilege_type = 'CREATE'
    UNION ALL
    -- A foreign key brings triggers along.
    SELECT grantee, format('may set triggers on interlock.%I', relname),
      'REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA interlock FROM ...'
    FROM tables, aclexplode(relacl) WHERE privilege_type IN ('TRIGGER', 'REFERENCES')
    UNION ALL
    SELECT grantee, format('may refer to the column %I of interlock.%I', attname, relname),
      format('REVOKE REFERENCES (%I) ON interlock.%I FROM ...', attname, relname)
    FROM tables JOIN pg_attribute ON attrelid = tables.oid, aclexplode(attacl) WHERE privilege_type = 'REFERENCES'
    UNION ALL
    SELECT NULL, format('has set the trigger %I on interlock.%I', tgname, relname),
      'drop it, or the foreign key that it is a part of'
    FROM tables JOIN pg_trigger ON tgrelid = tables.oid
    UNION ALL
    SELECT NULL, format('has set the rule %I on interlock.%I', rulename, relname), 'drop it'
    FROM tables JOIN pg_rewrite ON ev_class = tables.oid WHERE rulename <> '_RETURN'
    UNION ALL
    SELECT NULL, format('has set the policy %I on interlock.%I', polname, relname), 'drop it'
    FROM tables JOIN pg_policy ON polrelid = tables.oid
    UNION ALL
    SELECT NULL, format('has made %s inherit from interlock.%I', inhrelid::regclass, relname), 'drop it'
    FROM tables JOIN pg_inherits ON inhparent = tables.oid
  )
  SELECT CASE WHEN role IS NULL THEN 'somebody' ELSE coalesce('the role ' || quote_ident(rolname), 'everybody') END
    AS who, what, remedy INTO finding
  FROM ways LEFT JOIN pg_roles ON oid = role
  WHERE NOT coalesce(rolsuper OR rolname IN (session_user, 'pg_database_owner')
    OR role = (SELECT datdba FROM pg_database WHERE datname = current_database()), false)
  LIMIT 1;
  IF finding.who IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'IL006', MESSAGE = format('%s %s, so that code of others could run with the rights '
      'of %s. Trusted are %3$s itself, superusers and the owner of the database: %s',
      finding.who, finding.what, quote_ident(session_user), finding.remedy);
  END IF;
END $$;

