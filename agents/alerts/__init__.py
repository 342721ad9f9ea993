"""Alerting: findings from the violations topic to Alertmanagers and webhooks."""
