"""Compiled code: arrays and scalars only, nothing is checked here, no fastmath anywhere."""
