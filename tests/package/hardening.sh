# What the compiler and the linker have to put into the command: hardening.sh PROGRAM
set -eu -o pipefail
program=$1
failures=0

# has WHAT PATTERN READELF-OPTIONS…
has() {
  local what=$1 pattern=$2
  shift 2
  grep -E -q -- "$pattern" <<<"$(readelf --wide "$@" "$program")" && return
  echo "FAILED: $what is missing: readelf $* shows no /$pattern/"
  failures=$((failures + 1))
}

has "a position-independent program" 'Type: +DYN' --file-header
has "a read-only relocation table (RELRO)" 'GNU_RELRO' --program-headers
has "binding at the start (full RELRO)" 'BIND_NOW|FLAGS.*NOW' --dynamic
has "the stack protector" '__stack_chk_fail' --dyn-syms
has "FORTIFY" '__(mem(cpy|move|set)|read|recv|v?s?n?printf|poll)_chk' --dyn-syms
has "a stack that is not executable" 'GNU_STACK.* RW ' --program-headers

((failures == 0)) && echo "all is well"
exit $((failures == 0 ? 0 : 1))
