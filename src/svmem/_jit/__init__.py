"""Compiled code: arrays and scalars only, nothing is checked here, no fastmath anywhere.

numba notices when the file of a cached function changes, but not when a file it calls into does. So the cache is
emptied here, before the first compiled function is loaded, whenever any source differs from the one it was made from.
"""

import hashlib
from pathlib import Path

_HERE = Path(__file__).parent
_STAMP = _HERE / "__pycache__" / "sources.sha256"


def _drop_stale_cache() -> None:
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py")))).hexdigest()
    try:
        if _STAMP.exists() and _STAMP.read_text() == sources:
            return
        for cached in _STAMP.parent.glob("*.nb[ic]"):
            cached.unlink(missing_ok=True)
        _STAMP.parent.mkdir(exist_ok=True)
        _STAMP.write_text(sources)
    except OSError:  # a read-only installation: its files do not change either
        return


_drop_stale_cache()
