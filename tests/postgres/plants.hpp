// What somebody who may create in a schema can put in the way of every name in the SQL of others: overloads of functions
// and operators whose arguments match better, and types and relations of the same names.
#pragma once

namespace interlock::postgres_tests {

/// For the role mallory to run, with a search path of pg_catalog alone. Takes all words and operators in trap.seen, and
/// puts whatever pg_catalog has of that name into the schema public, once for each kind of argument that it would accept.
/// Each tells the server's log that it ran (TRAP), and tries to make a superuser of mallory.
inline constexpr auto kPlants = R"sql(
CREATE FUNCTION trap.sprung(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE LOG 'TRAP: %, as %', what, current_user;
  BEGIN
    ALTER ROLE mallory SUPERUSER;
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  RETURN true;
END $$;

CREATE TEMP TABLE words AS
  SELECT DISTINCT lower(m[1]) AS word FROM trap.seen, regexp_matches(text, '([A-Za-z_][A-Za-z_0-9]*)', 'g') m;
CREATE TEMP TABLE signs AS
  SELECT DISTINCT m[1] AS sign FROM trap.seen, regexp_matches(text, '([-+*/<>=~!@#%^&|`?]+)', 'g') m;

-- The types that occur, and arrays of them.
CREATE TEMP TABLE kinds AS
  WITH named AS (
    SELECT oid FROM words JOIN pg_type ON word IN (typname, format_type(oid, NULL))
    UNION SELECT unnest(coalesce(proallargtypes, proargtypes) || prorettype) FROM pg_proc
    WHERE pronamespace = 'interlock'::regnamespace
    UNION SELECT prorettype FROM words JOIN pg_proc ON word = proname
  ), base AS (
    SELECT oid, typarray FROM named JOIN pg_type USING (oid)
    WHERE typtype = 'b' AND typnamespace = 'pg_catalog'::regnamespace
  )
  SELECT oid AS kind FROM base UNION SELECT typarray FROM base WHERE typarray <> 0;

-- What may be given where `wanted` is asked for.
CREATE TEMP TABLE fits AS
  SELECT t.oid AS wanted, kind FROM pg_type t JOIN kinds
    ON kind = t.oid OR typname IN ('any', 'anyelement', 'anynonarray', 'anycompatible')
    OR typname IN ('anyarray', 'anycompatiblearray') AND kind IN (SELECT typarray FROM pg_type)
    OR EXISTS (SELECT FROM pg_cast WHERE castsource = kind AND casttarget = t.oid AND castcontext = 'i')
  UNION SELECT oid, oid FROM pg_type WHERE typtype = 'b' AND typnamespace = 'pg_catalog'::regnamespace;

-- How each function can be called: with all arguments, without the last ones that have defaults, with one of those.
CREATE TEMP TABLE calls AS
  WITH used AS (
    SELECT proname, aggkind IS NOT DISTINCT FROM 'n' AS aggregate, proretset AS many, prorettype AS gives,
      proargtypes::oid[] AS wanted, proargnames AS names, pronargs::int AS most, pronargs - pronargdefaults AS least
    FROM words JOIN pg_proc p ON word = proname LEFT JOIN pg_aggregate ON aggfnoid = p.oid
    WHERE pronamespace = 'pg_catalog'::regnamespace
  )
  SELECT proname, aggregate, many, gives, wanted[0:n - 1] AS wanted, names[1:n] AS names
  FROM used, generate_series(least, most) n
  UNION
  SELECT proname, aggregate, many, gives, wanted[0:least - 1] || wanted[n - 1], names[1:least] || names[n]
  FROM used, generate_series(least + 1, most) n;
CREATE TEMP TABLE overloads AS
  WITH RECURSIVE grown AS (
    SELECT *, '{}'::oid[] AS given FROM calls
    UNION ALL
    SELECT proname, aggregate, many, gives, grown.wanted, names, given || kind
    FROM grown JOIN fits ON fits.wanted = grown.wanted[cardinality(given) + 1]
  )
  SELECT DISTINCT ON (proname, given) * FROM grown WHERE cardinality(given) = cardinality(wanted);

CREATE TEMP TABLE operators AS
  SELECT DISTINCT ON (oprname, l.kind, r.kind) oprname, l.kind AS l, r.kind AS r, oprresult
  FROM signs JOIN pg_operator ON sign = oprname
    LEFT JOIN fits l ON l.wanted = oprleft JOIN fits r ON r.wanted = oprright
  WHERE (l.kind IS NULL) = (oprleft = 0)
    AND (oprleft <> oprright OR oprleft <> 'anyarray'::regtype OR l.kind = r.kind);

CREATE FUNCTION pg_temp.result(kind oid) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN typtype = 'p' AND typname NOT IN ('void', 'record') THEN 'text' ELSE format_type(oid, NULL) END
  FROM pg_type WHERE oid = kind
$$;
CREATE FUNCTION pg_temp.plant(function text, arguments text, result text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION %s(%s) RETURNS %s LANGUAGE plpgsql SET search_path = pg_catalog AS %L',
    function, arguments, result, format('BEGIN PERFORM trap.sprung(%L); RETURN%s; END', what,
    CASE WHEN result = 'void' OR result LIKE 'SETOF %' THEN '' ELSE ' NULL' END));
END $$;

DO $$
DECLARE
  o record;
  result text;
  kinds text;
  arguments text;
BEGIN
  FOR o IN SELECT * FROM overloads LOOP
    result := pg_temp.result(o.gives);
    SELECT coalesce(string_agg(format_type(kind, NULL), ', ' ORDER BY i), ''),
      coalesce(string_agg(concat_ws(' ', quote_ident(nullif(o.names[i], '')), format_type(kind, NULL)), ', ' ORDER BY i), '')
    INTO kinds, arguments FROM unnest(o.given) WITH ORDINALITY AS given (kind, i);
    IF o.aggregate THEN
      PERFORM pg_temp.plant('trap.step', concat_ws(', ', result, nullif(kinds, '')), result, 'aggregate of ' || kinds);
      EXECUTE format('CREATE AGGREGATE public.%I(%s) (SFUNC = trap.step, STYPE = %s)', o.proname,
        coalesce(nullif(kinds, ''), '*'), result);
    ELSE
      PERFORM pg_temp.plant(format('public.%I', o.proname), arguments,
        CASE WHEN o.many THEN 'SETOF ' ELSE '' END || result, format('%s(%s)', o.proname, kinds));
    END IF;
  END LOOP;
  FOR o IN SELECT oprname, format_type(l, NULL) AS l, format_type(r, NULL) AS r, oprresult FROM operators LOOP
    PERFORM pg_temp.plant(format('trap.%I', o.oprname), concat_ws(', ', o.l, o.r), pg_temp.result(o.oprresult),
      concat_ws(' ', o.l, o.oprname, o.r));
    EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = trap.%I, %s RIGHTARG = %s)', o.oprname, o.oprname,
      'LEFTARG = ' || o.l || ',', o.r);
  END LOOP;
  -- A cast to one of these asks its CHECK.
  FOR o IN SELECT typname FROM words JOIN pg_type ON word = typname
           WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' LOOP
    EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%1$I CHECK (trap.sprung(%L))', o.typname, 'type ' || o.typname);
  END LOOP;
  FOR o IN SELECT relname FROM words JOIN pg_class ON word = relname
           WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
    -- No view has columns of pseudo-types.
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO arguments
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = format('pg_catalog.%I', o.relname)::regclass AND (attnum > 0 OR attname = 'oid') AND typtype <> 'p';
    EXECUTE format('CREATE VIEW public.%I AS SELECT %s FROM pg_catalog.%1$I WHERE trap.sprung(%L)', o.relname,
      arguments, 'relation ' || o.relname);
  END LOOP;
END $$;
)sql";

}  // namespace interlock::postgres_tests
