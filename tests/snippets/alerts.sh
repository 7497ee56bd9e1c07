#!/usr/bin/env bash
# The alerts of docs/operations.md: alerts.sh PROJECT. Prometheus takes them, each fires when it should, and each
# metric that they name is one of ours.
set -euo pipefail
project=$1
rules=$project/docs/prometheus-rules.yml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

promtool check rules "$rules"
for metric in $(grep -o 'interlock_[a-z_]*' "$rules" | sort -u); do
  grep -q "$metric\b" "$project"/src/observe/*metrics.cpp "$project/cli/serve.cpp" ||
    { echo "FAILED: nothing exports $metric"; exit 1; }
done

cat >"$work/test.yml" <<YAML
rule_files: [$rules]
tests:
  - interval: 1m
    input_series:
      - {series: 'interlock_lost_total{store="redis",group="billing"}', values: '0 0 0 1 1 1'}
      - {series: 'interlock_renewal_failures_total{store="redis"}', values: '0+1x10'}
      - {series: 'interlock_acquisitions_total{store="redis",outcome="refused"}', values: '0+1x10'}
      - {series: 'interlock_acquisitions_total{store="etcd",outcome="busy"}', values: '0+1x10'}
      - {series: 'interlock_store_up{store="redis"}', values: '1 1 0 0 0 0'}
      - {series: 'interlock_store_longest_wait_seconds{store="redis"}', values: '0+200x10'}
      - {series: 'interlock_store_oldest_hold_seconds{store="redis"}', values: '0+5000x10'}
    promql_expr_test:
      - expr: count(ALERTS{alertstate="firing"}) by (alertname)
        eval_time: 5m
        exp_samples:
          - {labels: '{alertname="InterlockLeaseLost"}', value: 1}
          - {labels: '{alertname="InterlockRenewalsFail"}', value: 1}
          - {labels: '{alertname="InterlockRefused"}', value: 1}
          - {labels: '{alertname="InterlockStoreDown"}', value: 1}
          - {labels: '{alertname="InterlockWaitsTooLong"}', value: 1}
          - {labels: '{alertname="InterlockHeldTooLong"}', value: 1}
      - expr: count(ALERTS)
        eval_time: 0m
        exp_samples: []
YAML
promtool test rules "$work/test.yml"
