"""One module a table or figure of the paper, run from the repository's root: `python -m experiments.lm --help`."""
