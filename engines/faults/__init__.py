"""`make faults`: a cluster of real processes on real engines, and what can happen to it, from one seed."""
