"""Language models on bytes: what `python -m experiments.lm` is made of."""
