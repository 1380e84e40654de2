"""The gate in batched torch operations, for devices on which compiled code of the host does not run."""
