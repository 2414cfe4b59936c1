"""The simulated world: virtual time and one source of chance (`world`), people and their devices (`people`, `device`),
the network between them (`network`), and the servers that they talk to, one node or a cluster (`node`, `cluster`).
`town` puts them together, `plan` runs one day from a seed: faults, healing, then the verdict. The client, the gateway,
the engine and the fold in it are the real ones.
"""
