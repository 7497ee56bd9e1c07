#!/usr/bin/env bash
# A component of the installed package brings its own libraries, and no others: components.sh CONSUMER PREFIX WORK
set -euo pipefail
consumer=$1 prefix=$2 work=$3
rm -rf "$work"
mkdir -p "$work/nothing"

# configure NAME STORE [OPTION…]: the consumer that asks for one store, or for all if STORE is empty
configure() {
  local name=$1 store=$2
  shift 2
  cmake -S "$consumer" -B "$work/$name" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DSTORE="$store" "$@"
}
fail() {
  echo "FAILED: $1"
  exit 1
}

# Where pkg-config finds nothing, the file store works, and the others say what they lack.
export PKG_CONFIG_LIBDIR=$work/nothing
configure bare file >"$work/log" 2>&1 || { cat "$work/log"; fail "the file store wants a library"; }
configure redis_missing redis >"$work/log" 2>&1 && fail "the Redis store is there without hiredis"
tr -s ' \n' ' ' <"$work/log" | grep -q '"redis" needs hiredis (Debian: libhiredis-dev)' ||
  { cat "$work/log"; fail "the library that Redis lacks is not named"; }
configure all_missing "" >"$work/log" 2>&1 && fail "all stores are there without their libraries"
tr -s ' \n' ' ' <"$work/log" | grep -q 'find_package(interlock COMPONENTS file)' ||
  { cat "$work/log"; fail "the way out is not named"; }
unset PKG_CONFIG_LIBDIR

# A program that asks for Redis knows its URLs, and loads neither gRPC nor libpq.
configure redis redis >"$work/log" 2>&1 || { cat "$work/log"; fail "the Redis store is not found"; }
cmake --build "$work/redis" >"$work/log" 2>&1 || { cat "$work/log"; fail "it does not build"; }
ldd "$work/redis/consumer" >"$work/libraries"
grep -q libhiredis "$work/libraries" || fail "hiredis is not loaded"
grep -E 'grpc|libpq|libcurl' "$work/libraries" && fail "libraries of other stores are loaded"
"$work/redis/consumer" "redis://127.0.0.1:1" 2>"$work/error" && fail "nothing listens there"
grep -q unavailable "$work/error" || { cat "$work/error"; fail "redis: is not known"; }
"$work/redis/consumer" "etcd://127.0.0.1:1" 2>"$work/error" && fail "etcd: was not asked for"
grep -qF "this program has no store for etcd:; it has file:, memory:, redis:. With CMake: find_package(interlock COMPONENTS etcd)" "$work/error" || { cat "$work/error"; fail "etcd: is known"; }

# A subdirectory may ask for more than the directory above it.
mkdir -p "$work/project/sub"
cat >"$work/project/CMakeLists.txt" <<'TOP'
cmake_minimum_required(VERSION 3.25)
project(top LANGUAGES CXX)
find_package(interlock REQUIRED COMPONENTS file)
add_subdirectory(sub)
TOP
cat >"$work/project/sub/CMakeLists.txt" <<SUB
find_package(interlock REQUIRED COMPONENTS redis)
find_package(interlock REQUIRED)
add_executable(consumer $consumer/main.cpp)
target_link_libraries(consumer PRIVATE interlock::interlock)
SUB
cmake -S "$work/project" -B "$work/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/project/build" >>"$work/log" 2>&1 ||
  { cat "$work/log"; fail "a subdirectory can't ask for more"; }
"$work/project/build/sub/consumer" || fail "it does not lock in memory"
echo "all is well"
