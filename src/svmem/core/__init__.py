"""The problem, its solvers and its certificates. Works on arrays and knows nothing of ids, owners or files."""
