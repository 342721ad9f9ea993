"""Apache Kafka: clients, TLS and SASL, and Faust's transport with what we need beyond it."""
