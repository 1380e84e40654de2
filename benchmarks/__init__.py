"""Measured figures as commands: `python -m benchmarks.audit` and `python -m benchmarks.deletion`."""
