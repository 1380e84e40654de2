"""The problem, its solvers and its certificates. Below them, what a memory is made of: records, digests, files."""
