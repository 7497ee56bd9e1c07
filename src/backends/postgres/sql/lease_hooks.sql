-- Lease mode: a row is the lock, and ends with its time.
CREATE OR REPLACE FUNCTION interlock.lease_take(id bigint, how text) RETURNS boolean LANGUAGE sql
AS 'SELECT true';
CREATE OR REPLACE FUNCTION interlock.lease_drop(id bigint, how text) RETURNS void LANGUAGE sql
AS 'SELECT';
CREATE OR REPLACE FUNCTION interlock.lease_is_gone(home bigint, own bigint) RETURNS boolean LANGUAGE sql
AS 'SELECT false';
CREATE OR REPLACE FUNCTION interlock.lease_end(hold interlock.leases, own bigint, at timestamptz)
RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OR REPLACE FUNCTION interlock.lease_evict(hold interlock.leases, own bigint, at timestamptz)
RETURNS boolean LANGUAGE sql AS 'SELECT true';
