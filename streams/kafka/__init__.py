"""Apache Kafka: connecting, TLS and users, and Faust's consumer and producer as we need them."""
