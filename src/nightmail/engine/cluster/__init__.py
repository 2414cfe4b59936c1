"""The cluster's engine: owners, desks and rows over services that many nodes share, behind `ports.py`."""
