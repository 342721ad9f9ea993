#!/usr/bin/env bash
# Writes the plain manifests anew from the chart, and those that the tests look at: every sink on, and all agents apart.
set -euo pipefail
cd "$(dirname "$0")/../.."
render() { # FILE FLAGS...
  local file=$1
  shift
  { echo '# Written by `make manifests` from the chart: do not edit.'
    helm template underhost compose/kubernetes/chart --namespace underhost --kube-version 1.36.0 "$@"; } > "$file"
}
helm lint --strict --quiet compose/kubernetes/chart
helm lint --strict --quiet compose/kubernetes/chart --values compose/kubernetes/chart/values-split.yaml
data=tests/data/kubernetes
# What is committed holds no token: its Secret is made by hand (docs/how-to/deploy.md).
render compose/kubernetes/underhost.yaml --set web.secretName=underhost-web
render $data/sinks.yaml --values $data/sinks-values.yaml
render $data/split.yaml --values compose/kubernetes/chart/values-split.yaml --values $data/sinks-values.yaml \
  --values $data/split-values.yaml
