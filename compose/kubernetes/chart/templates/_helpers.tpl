{{- define "underhost.selector" -}}
app.kubernetes.io/name: underhost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "underhost.labels" -}}
{{ include "underhost.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* What a worker runs, as JSON: {"all": no agents are named, "runs": those it runs, `web` always with them}. */ -}}
{{- define "underhost.agents" -}}
{{- $every := list "kubernetes" "vsphere" "evaluator" "labeller" "pod-labeller" "binder" "drs" "mover" "evictor" "events" "reporter" "alerts" "web" -}}
{{- $named := default list .agents -}}
{{- dict "all" (empty $named) "runs" (empty $named | ternary $every (append $named "web" | uniq)) | toJson -}}
{{- end }}

{{- /* Every right in the cluster that agents need, and no other; a dry run only looks. In: agents, sinks. */ -}}
{{- define "underhost.rules" -}}
{{- if has "kubernetes" .agents }}
- apiGroups: [""]
  resources: [namespaces, nodes, pods, replicationcontrollers, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments, replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [kubevirt.io]
  resources: [virtualmachineinstancereplicasets]
  verbs: [list, watch]
{{- end }}
{{- if has "labeller" .agents }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get{{ if .sinks.labels }}, patch{{ end }}]
{{- end }}
{{- if or (has "binder" .agents) (has "events" .agents) }}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [get]
{{- end }}
{{- if has "pod-labeller" .agents }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get{{ if .sinks.podLabels }}, patch{{ end }}]
{{- end }}
{{- if has "evictor" .agents }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end }}
{{- if and (has "binder" .agents) .sinks.bindings }}
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
{{- end }}
{{- if and (has "events" .agents) .sinks.events .sinks.bindings }}
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- end }}
{{- if and (has "events" .agents) .sinks.events }}
- apiGroups: [""]
  resources: [events]
  verbs: [get, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- if and (has "reporter" .agents) .sinks.reports }}
- apiGroups: [openreports.io]
  resources: [reports, clusterreports]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if and (has "evictor" .agents) .sinks.evictions }}
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- end }}

{{- /* The leases that agents take, as JSON: of those that publish a source, and those whose sink writes.
In: agents, sinks, vcenter, site. */ -}}
{{- define "underhost.leases" -}}
{{- $writes := dict "labeller" .sinks.labels "binder" .sinks.bindings "drs" (and .vcenter .sinks.drsRules) -}}
{{- $_ := set $writes "pod-labeller" .sinks.podLabels -}}
{{- $_ := set $writes "mover" (and .vcenter (or .sinks.moves .sinks.maintenance)) -}}
{{- $_ := set $writes "evictor" .sinks.evictions -}}
{{- $_ := set $writes "events" .sinks.events -}}
{{- $_ := set $writes "reporter" .sinks.reports -}}
{{- $_ := set $writes "kubernetes" true -}}
{{- $_ := set $writes "vsphere" true -}}
{{- $names := list -}}
{{- range $agent := .agents -}}
{{- if get $writes $agent -}}{{- $names = append $names (printf "underhost-%s-%s" $.site $agent) -}}{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end }}

{{- /* "true" where a worker asks the API server: for its agents, or for their leases. In: agents, sinks, vcenter, site. */ -}}
{{- define "underhost.asks" -}}
{{- $leases := include "underhost.leases" . | fromJsonArray -}}
{{- $asking := or (has "labeller" .agents) (has "pod-labeller" .agents) (has "binder" .agents) (has "evictor" .agents) (has "events" .agents) -}}
{{- if or $asking (gt (len $leases) 0) }}true{{ end -}}
{{- end }}

{{- /* What a worker connects to, as a JSON list of {name, ports}. Ports that no value gives are those of the configuration.
In: root, worker. */ -}}
{{- define "underhost.reaches" -}}
{{- $config := .root.Values.config -}}
{{- $agents := (include "underhost.agents" .worker | fromJson).runs -}}
{{- $vcenter := include "underhost.vcenter" .root -}}
{{- $of := dict "agents" $agents "sinks" (default dict $config.sinks) "vcenter" $vcenter "site" $config.site -}}
{{- $ports := dict "kafka" list "vcenter" list "receivers" list "kubernetes" list -}}
{{- if include "underhost.asks" $of }}{{ $_ := set $ports "kubernetes" (list 443 6443) }}{{ end -}}
{{- range splitList "," (include "underhost.kafka" .root) -}}
{{- $server := trim . -}}
{{- if $server }}{{ $_ := set $ports "kafka" (append $ports.kafka (include "underhost.port" (dict "at" $server "else" 9092))) }}{{ end -}}
{{- end -}}
{{- if and $vcenter (or (has "vsphere" $agents) (has "drs" $agents) (has "mover" $agents)) -}}
{{- $_ := set $ports "vcenter" (list (include "underhost.portOfUrl" $vcenter)) -}}
{{- end -}}
{{- if has "alerts" $agents -}}
{{- $urls := dig "alerting" "alertmanagers" list $config -}}
{{- range dig "alerting" "webhooks" list $config }}{{ $urls = append $urls .url }}{{ end -}}
{{- range $urls }}{{ $_ := set $ports "receivers" (append $ports.receivers (include "underhost.portOfUrl" .)) }}{{ end -}}
{{- end -}}
{{- $reached := list -}}
{{- range $name := list "kubernetes" "kafka" "vcenter" "receivers" -}}
{{- $found := get $ports $name -}}
{{- if $found -}}
{{- $given := (get $.root.Values.networkPolicy.to $name).ports -}}
{{- $used := list }}{{ range default $found $given }}{{ $used = append $used (int .) }}{{ end -}}
{{- $reached = append $reached (dict "name" $name "ports" (uniq $used)) -}}
{{- end -}}
{{- end -}}
{{- if $reached }}{{ $reached = prepend $reached (dict "name" "dns" "ports" .root.Values.networkPolicy.to.dns.ports) }}{{ end -}}
{{- $reached | toJson -}}
{{- end }}

{{- /* The port of `host:port`, else `else`. */ -}}
{{- define "underhost.port" -}}{{ default (toString .else) (trimPrefix ":" (regexFind ":[0-9]+$" .at)) }}{{- end }}
{{- define "underhost.portOfUrl" -}}
{{- $url := urlParse . -}}
{{- include "underhost.port" (dict "at" $url.host "else" (ternary 80 443 (eq $url.scheme "http"))) -}}
{{- end }}

{{- /* The configuration as it is mounted. */ -}}
{{- define "underhost.config" -}}
{{- $config := mustMergeOverwrite (dict "apiVersion" "underhost/v1" "kind" "Config") (deepCopy .Values.config) }}
{{- $web := dict "listen" (printf "0.0.0.0:%v" .Values.service.port) "tokenFile" "/etc/underhost/web/token" }}
{{- if .Values.web.tlsSecretName }}
{{- $_ := set $web "tls" (dict "certFile" "/etc/underhost/web-tls/tls.crt" "keyFile" "/etc/underhost/web-tls/tls.key") }}
{{- end }}
{{- $_ := set $config "web" (mustMergeOverwrite (default dict $config.web) $web) }}
{{- if .Values.extender.tlsSecretName }}
{{- $at := "/etc/underhost/extender-tls" }}
{{- $files := dict "certFile" (printf "%s/tls.crt" $at) "keyFile" (printf "%s/tls.key" $at) "clientCaFile" (printf "%s/ca.crt" $at) }}
{{- $_ := set $config "extender" (dict "listen" (printf "0.0.0.0:%v" .Values.extender.port) "tls" $files) }}
{{- end }}
{{- if not (include "underhost.kafka" .) }}
{{- $_ := set $config "kafka" (mustMergeOverwrite (default dict $config.kafka) (dict "embedded" "/var/lib/underhost/underhost.db")) }}
{{- end }}
{{- if include "underhost.vcenter" . }}
{{- $files := dict "passwordFile" "/etc/underhost/vcenter/password" }}
{{- with .Values.vcenter.caKey }}{{ $_ := set $files "caFile" (printf "/etc/underhost/vcenter/%s" .) }}{{ end }}
{{- $_ := set $config "vsphere" (mustMergeOverwrite $config.vsphere $files) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* The Secret of the token. */ -}}
{{- define "underhost.web" -}}{{ default (printf "%s-web" .Release.Name) .Values.web.secretName }}{{- end }}

{{- define "underhost.kafka" -}}{{ dig "kafka" "bootstrapServers" "" .Values.config }}{{- end }}
{{- define "underhost.vcenter" -}}{{ dig "vsphere" "url" "" .Values.config }}{{- end }}
{{- define "underhost.hostLabel" -}}{{ dig "hostLabel" "key" "node.cluster.x-k8s.io/esxi-host" .Values.config }}{{- end }}

{{- /* Who a worker is at Kafka, as JSON: {secretName, keys: those that it is given of the Secret, none for all, env}.
In: root, worker. */ -}}
{{- define "underhost.kafkaUser" -}}
{{- $own := default dict .worker.kafka -}}
{{- $folder := "/etc/underhost/kafka/" -}}
{{- $env := list -}}
{{- $keys := list -}}
{{- if or $own.username $own.passwordKey -}}
{{- $_ := required (printf "workers: %s is a user of Kafka: config.kafka.sasl.mechanism is needed" .worker.name) (dig "kafka" "sasl" "mechanism" "" .root.Values.config) -}}
{{- end -}}
{{- with $own.username }}{{ $env = append $env (dict "name" "UNDERHOST_KAFKA__SASL__USERNAME" "value" .) }}{{ end -}}
{{- with $own.passwordKey -}}
{{- $env = append $env (dict "name" "UNDERHOST_KAFKA__SASL__PASSWORD_FILE" "value" (printf "%s%s" $folder .)) -}}
{{- $keys = append $keys . -}}
{{- range $name := list "caFile" "certFile" "keyFile" -}}
{{- $file := dig "kafka" "tls" $name "" $.root.Values.config -}}
{{- if hasPrefix $folder $file }}{{ $keys = append $keys (trimPrefix $folder $file) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $secret := default .root.Values.kafka.secretName $own.secretName -}}
{{- if $own.passwordKey }}{{ $_ := required (printf "workers: %s has kafka.passwordKey, a key of a Secret: kafka.secretName is needed" .worker.name) $secret }}{{ end -}}
{{- dict "secretName" $secret "keys" (uniq $keys) "env" $env | toJson -}}
{{- end }}
