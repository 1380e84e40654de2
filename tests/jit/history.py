"""Short histories through every compiled path, as digests."""

import numpy as np

import svmem

KERNELS = (svmem.RBF(1.5), svmem.Laplacian(2.0), svmem.Linear(), svmem.Cosine())


def digests() -> list[str]:
    """Return the state after adds, forgets and an eviction, for each kernel and some kinds of keys."""
    out = []
    for number, kernel in enumerate(KERNELS):
        for kind in range(3):
            rng = np.random.default_rng([number, kind])
            problem = svmem.Problem(kernel, C=(0.125, 0.3, 1 / 7)[kind], ridge=1e-6)
            memory = svmem.Memory(problem, key_dim=2, value_dim=1)
            for _ in range(4):
                keys = rng.standard_normal((5, 2)) if kind == 0 else rng.integers(1, 4, (5, 2)).astype(float)
                memory.add(keys + (1e-9 * rng.standard_normal((5, 2)) if kind == 2 else 0), rng.random((5, 1)))
                memory.forget(ids=[int(i) for i in rng.choice(memory.ids, 2, replace=False)])
                out.append(memory.digest())
            if kernel.bounded:
                out.append(memory.read(rng.standard_normal((3, 2))).tobytes().hex())
            out.append(memory.score(rng.standard_normal((3, 2))).tobytes().hex())
            memory.evict()
            out.append(memory.digest())
    return out
