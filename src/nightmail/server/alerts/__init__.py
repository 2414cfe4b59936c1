"""What an operator is told without asking: one table of alerts, judged here and by Prometheus alike."""
