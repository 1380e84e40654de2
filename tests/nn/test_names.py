"""The public names of the layer."""

import svmem.nn

NAMES = {
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
}


def test_the_public_names_are_exactly_these():
    assert set(svmem.nn.__all__) == NAMES
    assert [name for name in NAMES if not hasattr(svmem.nn, name)] == []
