# The front door: each target installs what it lacks (tools/deps), then does its job.
#
#   make            the library and the command, at build/bin/interlock
#   make demo       see it work: a counter with and without a lock
#   make test       build everything and run every test
#   make strange    some of them a minute after boot, without privileges and HOME, in Turkish, …
#   make interop    meet other lock libraries on Redis: redis-py, redsync, node-redlock, …
#   make torture    try hard to break the locks of every store; STORE=redlock MINUTES=60 SEED=7
#   make walk       ask the lock table and each store the same things at random, for longer than make test: docs/proof.md
#   make simulation Redlock in virtual time, a seed a run: SEEDS=10000 SEED=1
#   make fuzz       feed every parser of foreign input with nonsense, for a minute each; MINUTES=10 ONLY=urls
#   make mutants    plant bugs and see whether the tests find them; ONLY="redis core/no_drift" CHANGED=main
#   make collector  meet an OpenTelemetry Collector with our traces
#   make bench      measure, as ratios to a baseline of the same run
#   make compare    Interlock and its peers side by side: docs/benchmarks.md; QUICK=1 for a short look
#   make lint       clang-tidy and the format check; SINCE=main~10: of what changed; make format repairs the format
#   make sanitize   the tests under ASan+UBSan and under TSan
#   make clang      build everything with clang, and run the unit tests
#   make without    build and test with stores left out: WITHOUT="postgres etcd"
#   make install    to PREFIX (/usr/local), below DESTDIR if given
#   make clean      forget all builds

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Most tests wait for something most of the time.
TEST_JOBS ?= $(shell expr 4 \* $(JOBS))

.PHONY: all build demo test strange interop torture walk simulation fuzz mutants collector bench compare lint format sanitize asan tsan clang clang-build without install deps clean
.DELETE_ON_ERROR:

all: build

# Everything a configured build looks for, whichever part is built first.
deps:
	@tools/deps build redis postgres etcd tracing cli tests bench

# Ninja notices later changes to the build files by itself.
build/build.ninja: | deps
	cmake --preset release --log-level=WARNING

build: deps build/build.ninja
	cmake --build --preset release -j $(JOBS) --target src/all cli/all

demo: build
	tools/demo

# At the end it says how long each suite took. All of it stays below 12 minutes on two cores.
test: STARTED := $(shell date +%s)
test: deps build/build.ninja
	cmake --build --preset release -j $(JOBS)
	status=0; tools/ctest build --preset release -j $(TEST_JOBS) --output-junit tests.xml || status=$$?; \
	  tools/suites build/tests.xml $(STARTED); exit $$status

strange: deps build/build.ninja
	@tools/deps strange
	cmake --build --preset release -j $(JOBS)
	tools/strange -j $(TEST_JOBS)

# Go and Node.js need not be Debian's.
interop: build
	@tools/deps interop
	@command -v go >/dev/null || tools/deps go
	@command -v npm >/dev/null || tools/deps node
	tests/interop/run build

# Histories of rounds that show something are kept below build/torture. Porcupine, which checks them as well, takes Go.
STORE ?=
SEED ?= 1
REPEATS ?= 10
torture: deps build/build.ninja
	@command -v go >/dev/null || tools/deps go
	cmake --build --preset release -j $(JOBS) --target lab/all cli/all
	build/bin/lab/torture $(foreach store,$(STORE),--store $(store)) --minutes $(or $(MINUTES),12) --seed $(SEED) \
	  --repeats $(REPEATS) --keep build/torture --known lab/torture/known.md

# ROUNDS: how many walks of each store.
ROUNDS ?= 100
walk: deps build/build.ninja
	cmake --build --preset release -j $(JOBS) --target rules_walk
	INTERLOCK_WALK_ROUNDS=$(ROUNDS) build/tests/rules/rules_walk

SEEDS ?= 10000
simulation: deps build/build.ninja
	cmake --build --preset release -j $(JOBS) --target simulation
	build/bin/lab/simulation --seeds $(SEEDS) --seed $(SEED)

# The targets, or the planted bugs, to take; all if empty.
ONLY ?=

# What is found is below build-fuzz/findings. KEEP=1 adds inputs that reach new code to tests/fuzz/corpus.
fuzz: deps
	@tools/deps fuzz
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz -j $(JOBS)
	tests/fuzz/run build-fuzz --minutes $(or $(MINUTES),1) $(foreach target,$(ONLY),--only $(target)) $(if $(KEEP),--keep)

# In a build of its own below build/mutants, which it keeps. CHANGED is a revision: those bugs whose files changed since.
CHANGED ?=
mutants: deps
	@tools/deps mutants
	tests/mutants/run -j $(JOBS) $(if $(CHANGED),--changed $(CHANGED)) $(ONLY)

collector: build
	@command -v go >/dev/null || tools/deps go
	tests/collector/run build

bench: deps build/build.ninja
	cmake --build --preset release -j $(JOBS) --target bench/all
	bench/run

# A peer whose language is missing is left out, and named. QUICK=1 leaves docs/benchmarks.md alone.
compare: deps build/build.ninja
	@tools/deps compare
	@command -v go >/dev/null || tools/deps go
	@command -v npm >/dev/null || tools/deps node
	@command -v mvn >/dev/null || tools/deps java
	@command -v cargo >/dev/null || tools/deps rust
	bench/peers/build build/peers & \
	  cmake --build --preset release -j $(JOBS) --target bench/all && wait $$!
	bench/compare $(if $(QUICK),--quick)
	bench/report $(if $(QUICK),build/compare/quick.json --into build/compare)

# New files count before they are committed.
CXX_FILES = git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp'

# SINCE=main~10: clang-tidy looks only at what changed since then.
SINCE ?=
lint: deps
	@tools/deps lint clang
	$(CXX_FILES) | xargs -0 -r clang-format-14 --dry-run --Werror
	cmake --preset clang --log-level=WARNING >/dev/null
	cmake --build --preset clang --target interlock_etcd_messages
	tools/tidy $(JOBS) $(SINCE)

format:
	@tools/deps lint
	$(CXX_FILES) | xargs -0 -r clang-format-14 -i

sanitize: asan tsan

# A part of what the sanitizers and clang build and test, such as PARTS=unit_tests TESTS="-R ^unit"
PARTS ?= all
TESTS ?=

# This compiler's TSan can't cope with much address space randomisation; containers may not let us
# switch it off, and then it has to do without.
FIXED_ADDRESSES = $(shell setarch --addr-no-randomize true 2>/dev/null && echo setarch --addr-no-randomize)

asan tsan: deps
	cmake --preset $@ --log-level=WARNING
	cmake --build --preset $@ -j $(JOBS) --target $(PARTS)
	$(FIXED_ADDRESSES) tools/ctest build-$@ --preset $@ -j $(TEST_JOBS) $(TESTS)

# Each file for itself: nothing leans on what a unity build happens to put before it.
clang-build: deps
	@tools/deps clang
	cmake --preset clang --log-level=WARNING
	cmake --build --preset clang -j $(JOBS) --target $(PARTS)

clang: clang-build
	ctest --preset clang -j $(JOBS) --label-regex unit

WITHOUT ?= postgres etcd
without: deps
	cmake --preset release -B build-without --log-level=WARNING \
	  $(foreach store,$(WITHOUT),-DINTERLOCK_STORE_$(shell tr a-z A-Z <<< $(store))=OFF)
	cmake --build build-without -j $(JOBS)
	ctest --test-dir build-without --output-on-failure -j $(TEST_JOBS)

install: build
	cmake --install build --prefix $(PREFIX)

clean:
	rm -rf build build-*
