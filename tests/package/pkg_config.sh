#!/usr/bin/env bash
# Builds and runs SOURCE against the copy installed at PREFIX, knowing only its interlock.pc.
set -euo pipefail
source=$1 prefix=$2 work=$3

mkdir -p "$work"
pc=$(find "$prefix" -name interlock.pc)
export PKG_CONFIG_PATH=${pc%/*}
# Unquoted on purpose: both are lists of words.
$CXX -std=c++20 -c "$source" -o "$work/consumer.o" $(pkg-config --cflags interlock)
$CXX "$work/consumer.o" -o "$work/consumer" $(pkg-config --libs interlock)
"$work/consumer"
