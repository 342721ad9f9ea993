"""The evaluator's core: pure, no client of Kafka, Kubernetes or vSphere."""
