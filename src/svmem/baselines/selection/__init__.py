"""Published rules for which keys stay when only `budget` of them may, one a file, and the support set among them."""

from svmem.baselines.selection.farthest_point import FarthestPoint
from svmem.baselines.selection.h2o import H2O
from svmem.baselines.selection.heavy_hitter import HeavyHitter, OracleHeavyHitter, SelfMass
from svmem.baselines.selection.k_medoids import KMedoids
from svmem.baselines.selection.keydiff import KeyDiff
from svmem.baselines.selection.leverage import Leverage
from svmem.baselines.selection.lowest_mass import LowestMass
from svmem.baselines.selection.manifoldkv import ManifoldKV
from svmem.baselines.selection.recency import Recency
from svmem.baselines.selection.reservoir import Reservoir
from svmem.baselines.selection.scene import Scene, Selector
from svmem.baselines.selection.snapkv import SnapKV
from svmem.baselines.selection.streaming_llm import StreamingLLM
from svmem.baselines.selection.support import Support
from svmem.baselines.selection.uniform import Uniform

__all__ = [
    "H2O",
    "KEY_ONLY",
    "QUERY_AWARE",
    "FarthestPoint",
    "HeavyHitter",
    "KMedoids",
    "KeyDiff",
    "Leverage",
    "LowestMass",
    "ManifoldKV",
    "OracleHeavyHitter",
    "Recency",
    "Reservoir",
    "Scene",
    "Selector",
    "SelfMass",
    "SnapKV",
    "StreamingLLM",
    "Support",
    "Uniform",
]

QUERY_AWARE: tuple[Selector, ...] = (OracleHeavyHitter(), HeavyHitter(), SnapKV())
KEY_ONLY: tuple[Selector, ...] = (
    Support(),
    LowestMass(),
    FarthestPoint(),
    KMedoids(),
    Leverage(),
    KeyDiff(),
    ManifoldKV(),
    Uniform(),
    Reservoir(),
    StreamingLLM(),
    Recency(),
    H2O(),
    SelfMass(),
)
