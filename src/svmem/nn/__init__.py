"""The memory's gate and readout as PyTorch layers. Needs the extra [torch]."""

from svmem.nn.attention import chunk_boundaries, hybrid_readout, rbf_readout
from svmem.nn.cache import CacheReport, SVCache
from svmem.nn.gate import Gate, GateStatus, gate
from svmem.nn.layer import HybridSVAttention, SVAttention
from svmem.nn.statistics import GateStatistics, gate_statistics

__all__ = [
    "CacheReport",
    "Gate",
    "GateStatistics",
    "GateStatus",
    "HybridSVAttention",
    "SVAttention",
    "SVCache",
    "chunk_boundaries",
    "gate",
    "gate_statistics",
    "hybrid_readout",
    "rbf_readout",
]
