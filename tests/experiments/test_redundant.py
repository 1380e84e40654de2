"""Which redundant facts each rule keeps."""

import torch

from experiments.audit import wilson
from experiments.recaller import Recaller
from experiments.redundant import TOKENS, answered, keep_rows


def test_with_all_tokens_kept_all_rules_answer_the_same():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Recaller(8, 16, 0.2, 2.0).double().requires_grad_(False)
    found = list(keep_rows(model, 3, (TOKENS, 1), generator, lambda share: None))
    everything = [row for row in found if row["budget"] == TOKENS]
    assert [row["rare_kept"] for row in everything] == [row["rare"] for row in everything]
    assert len({(row["rare_hits"] / row["rare"], row["dense_hits"] / row["dense"]) for row in everything}) == 1
    last = next(row for row in found if row["budget"] == 1 and row["method"] == "last k")
    assert last["rare_kept"] == 0
    assert last["rare_hits"] + last["dense_hits"] == 3  # one value answers every question, and it is that of one fact


def test_draws_of_a_rule_are_no_further_facts():
    row = {"method": "random", "draws": 4, "rare_hits": 20, "rare": 40}
    assert answered([row], "random") == (0.5, *wilson(5, 10))
