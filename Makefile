# The front door: each target installs what it lacks (tools/deps), then does its job.
#
#   make            the library and the command, at build/bin/interlock
#   make demo       see it work: a counter with and without a lock
#   make test       build everything and run every test
#   make strange    some of them a minute after boot, without privileges and HOME, in Turkish, …
#   make interop    meet other lock libraries on Redis: redis-py, redsync, node-redlock, …
#   make torture    try hard to break the locks of every store; STORE=redlock MINUTES=60 SEED=7
#   make collector  meet an OpenTelemetry Collector with our traces
#   make bench      measure, as ratios to a baseline of the same run
#   make compare    Interlock and its peers side by side: docs/benchmarks.md; QUICK=1 for a short look
#   make lint       clang-tidy and the format check; make format repairs the format
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

.PHONY: all build demo test strange interop torture collector bench compare lint format sanitize asan tsan clang without install deps clean
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
	status=0; ctest --preset release -j $(TEST_JOBS) --output-junit tests.xml || status=$$?; \
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
MINUTES ?= 12
SEED ?= 1
REPEATS ?= 10
torture: deps build/build.ninja
	@command -v go >/dev/null || tools/deps go
	cmake --build --preset release -j $(JOBS) --target lab/all cli/all
	build/bin/lab/torture $(foreach store,$(STORE),--store $(store)) --minutes $(MINUTES) --seed $(SEED) \
	  --repeats $(REPEATS) --keep build/torture --known lab/torture/known.md

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

# clang-tidy finds the files in what CMake wrote, where each is compiled for itself. Its counts of
# warnings in the system's headers say nothing.
lint: deps
	@tools/deps lint clang
	$(CXX_FILES) | xargs -0 -r clang-format-14 --dry-run --Werror
	cmake --preset clang --log-level=WARNING >/dev/null
	cmake --build --preset clang --target interlock_etcd_messages
	run-clang-tidy-14 -quiet -p build-clang -j $(JOBS) '^$(CURDIR)/(src|cli|lab)/' 2>&1 \
	  | sed '/ warnings\? generated\.$$/d'

format:
	@tools/deps lint
	$(CXX_FILES) | xargs -0 -r clang-format-14 -i

sanitize: asan tsan

# This compiler's TSan can't cope with much address space randomisation; containers may not let us
# switch it off, and then it has to do without.
FIXED_ADDRESSES = $(shell setarch --addr-no-randomize true 2>/dev/null && echo setarch --addr-no-randomize)

asan tsan: deps
	cmake --preset $@ --log-level=WARNING
	cmake --build --preset $@ -j $(JOBS)
	$(FIXED_ADDRESSES) ctest --preset $@ -j $(TEST_JOBS)

clang: deps
	@tools/deps clang
	cmake --preset $@ --log-level=WARNING
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(JOBS) --label-regex unit

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
