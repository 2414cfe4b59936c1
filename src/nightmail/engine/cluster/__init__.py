"""The cluster's engine: the same ports as the embedded one, over services that many nodes share."""
