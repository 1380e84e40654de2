"""Train a small language model on facts, freeze it, hold its learned keys in a Memory, and take one fact out for good.

    python examples/forget_a_fact.py

What the weights have learned stays in the weights: the certificate speaks of the memory.
"""

import numpy as np
import torch

import svmem
from svmem.nn import HybridSVAttention
from svmem.nn.lm import LanguageModel, LMConfig, next_token_loss

FACTS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Peru": "Lima", "Kenya": "Nairobi", "Japan": "Tokyo",
    "Egypt": "Cairo", "Cuba": "Havana", "Norway": "Oslo", "Ghana": "Accra", "Nepal": "Kathmandu", "Chile": "Santiago",
}  # fmt: skip
CITIES = list(FACTS.values())


def encoded(text: str) -> torch.Tensor:
    """Return bytes as tokens (1, t)."""
    return torch.tensor(list(text.encode()))[None]


def learned_key(model: LanguageModel, country: str) -> np.ndarray:
    """Return the key of the last token of a question, over all heads of the last layer."""
    noted: list[torch.Tensor] = []
    layer = mixers[-1]
    handle = layer.register_forward_pre_hook(lambda _, inputs: noted.append(layer.project(inputs[0]).tokens))
    with torch.no_grad():
        model(encoded(f"The capital of {country} is"))
    handle.remove()
    return noted[0][0, -1, :, : layer.head_dim].flatten().double().numpy()


def mixer(config: LMConfig, _: int) -> HybridSVAttention:
    """Return the attention of one layer, and keep it at hand."""
    mixers.append(HybridSVAttention(config.width, config.heads, config.bias, chunk=16))
    return mixers[-1]


mixers: list[HybridSVAttention] = []
torch.manual_seed(0)
sentences = [f"The capital of {country} is {city}. " for country, city in FACTS.items()]
text = torch.cat([encoded(sentences[k]) for k in torch.randint(len(sentences), (400,))], dim=1)[0]
config = LMConfig(width=64, layers=2, heads=2, block=64)
model, loss = LanguageModel(config, mixer), torch.zeros(())
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(80):
    starts = torch.randint(len(text) - 65, (8,))
    batch = torch.stack([text[start : start + 65] for start in starts])
    loss = next_token_loss(model(batch[:, :-1]), batch[:, 1:])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 20 == 19:
        print(f"step {step + 1} of 80: {loss.item():.2f} nats a byte")
model.requires_grad_(False)

keys = np.stack([learned_key(model, country) for country in FACTS])
problem = svmem.Problem(svmem.RBF(0.25 * svmem.median_sigma(keys)), C=0.1)
memory = svmem.Memory(problem, key_dim=keys.shape[1], value_dim=len(CITIES))
memory.add(keys, np.eye(len(CITIES)), owners=list(FACTS))
before = memory.read(keys).argmax(1)
receipt = memory.forget(owner="France")
after = memory.read(keys).argmax(1)

others = [k for k, country in enumerate(FACTS) if country != "France"]
never = svmem.Memory(problem, key_dim=keys.shape[1], value_dim=len(CITIES))
never.add(keys[others], np.eye(len(CITIES))[others])
print(f"capital of France: {CITIES[before[0]]} before, {CITIES[after[0]]} after")
print(f"other answers unchanged: {sum(before[others] == after[others])} of {len(others)}")
print(f"the memory is bit for bit the one that never held it: {memory.digest() == never.digest()}")
print(f"{receipt.count} record erased; every score lies within {memory.certify().score_bound:.0e} of the optimum's")
