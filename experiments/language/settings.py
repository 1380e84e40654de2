"""What a run is: everything that its rows depend on, with the paper's values where the paper gives them."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from svmem.errors import FileRefused, InvalidInput
from svmem.nn.lm import LMConfig
from svmem.types import Json

__all__ = ["MIXERS", "Settings", "read_settings"]

MIXERS = ("sv", "softmax", "window", "linear", "delta", "fista", "uniform", "ssm", "lstm")


@dataclass(frozen=True, slots=True)
class Settings:
    """The model, its mixer, and its training. The defaults are the small model of [Ramesh2026].

    `window` belongs to the sliding window, what stands from `chunk` to `learn_sigma` to the support vectors, with the
    exact gate (sv) or the paper's (fista). `lr` is the peak of the cosine and `warmup` the share of the steps before
    it. Each `every` steps `windows` stretches of the held-out tenth are scored, evenly spaced and always the same.
    `limit_bytes` is how much of the file is used.
    """

    mixer: str = "sv"
    width: int = 256
    layers: int = 4
    heads: int = 4
    block: int = 256
    chunk: int = 64
    C: float = 0.25
    sigma: float = 2.0
    ridge: float = 1e-3
    normalize_keys: bool = False
    learn_sigma: bool = False
    window: int = 128
    steps: int = 6000
    batch: int = 16
    lr: float = 3e-3
    warmup: float = 0.02
    seed: int = 0
    every: int = 100
    windows: int = 256
    limit_bytes: int = 5_000_000

    def __post_init__(self) -> None:
        if self.mixer not in MIXERS:
            raise InvalidInput(f"mixer must be one of {', '.join(MIXERS)}; got {self.mixer}")
        for name in ("steps", "batch", "every", "windows", "limit_bytes", "chunk", "window"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1, got {getattr(self, name)}")
        if not (self.lr > 0 and 0 <= self.warmup < 1):
            raise InvalidInput(f"lr must be positive and warmup in [0, 1), got {self.lr} and {self.warmup}")
        if self.seed < 0:
            raise InvalidInput(f"seed must be at least 0, got {self.seed}")
        _ = self.model  # says what is wrong with its sizes

    @property
    def model(self) -> LMConfig:
        """The sizes of the model."""
        return LMConfig(width=self.width, layers=self.layers, heads=self.heads, block=self.block)

    def differences(self, other: "Settings") -> list[str]:
        """Return the names of the fields in which the two differ."""
        mine, theirs = asdict(self), asdict(other)
        return [name for name in mine if mine[name] != theirs[name]]


def read_settings(run: Json, path: Path) -> Settings:
    """Return the settings that a run noted in the file at `path`."""
    noted = run.get("settings")
    kinds = {field.name: type(field.default) for field in fields(Settings)}
    if not isinstance(noted, dict) or {name: type(value) for name, value in noted.items()} != kinds:
        raise FileRefused(f"{path} must hold the settings of a run, not {json.dumps(noted)[:80]}")
    return Settings(**noted)
