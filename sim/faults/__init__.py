"""What goes wrong: disks, stores, logs, and peers that lie."""
