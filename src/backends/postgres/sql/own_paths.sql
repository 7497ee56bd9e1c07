-- Every function looks up names in pg_catalog alone, whoever calls it. (Those without a text of their own, which begin
-- with RETURN, looked them up when they were made.)
DO $$
DECLARE
  function regprocedure;
BEGIN
  FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace AND prosqlbody IS NULL LOOP
    EXECUTE format('ALTER FUNCTION %s {own_path}', function);
  END LOOP;
END $$;
