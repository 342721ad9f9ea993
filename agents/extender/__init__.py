"""kube-scheduler's extender: where a pod may go so that replicas stay apart on hosts, answered at once."""
