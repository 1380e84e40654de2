"""The certificate written to a file, rechecked by the checker on its own, and forgeries that it has to refuse."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import svmem.checker
from svmem.core.document import seal
from svmem.errors import CertificateError
from svmem.types import Json, Keys, Values

__all__ = ["Proof", "prove"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the certificate states and what the checker said."""

    records: int
    size_bytes: int
    gap: float
    score_bound: float
    alpha_bound: float
    readout_epsilon: float | None
    verdict: str
    check_s: float
    forgeries: tuple[tuple[str, str], ...]  # what was changed, and the sentence that refused it


def prove(
    certificate: Json, keys: Keys, values: Values, output: Path, advance: Callable[[int], None] = lambda _: None
) -> Proof:
    """Write certificate.json and records.npz, have them checked, and try three forgeries. `advance` is called 4 times.

    The checker runs as a third party would run it: a copy of its folder, in a process of its own, with numpy and
    nothing of svmem. Raises CertificateError if it refuses the certificate or accepts a forgery.
    """
    path, records = output / "certificate.json", output / "records.npz"
    path.write_text(json.dumps(certificate) + "\n", encoding="utf-8")
    np.savez_compressed(records, keys=keys, values=values)
    with tempfile.TemporaryDirectory() as folder:
        bench = Path(folder)
        shutil.copytree(Path(svmem.checker.__file__).parent, bench / "checker")
        start = time.perf_counter()
        accepted, verdict = _checked(records, path, bench)
        check_s = time.perf_counter() - start
        if not accepted:
            raise CertificateError(f"the independent checker refuses the certificate of the demo: {verdict}")
        advance(1)
        forgeries = []
        for what, forged_records, forged_path in _forgeries(certificate, keys, values, bench, records, path):
            accepted, said = _checked(forged_records, forged_path, bench)
            if accepted:
                raise CertificateError(f"the independent checker accepted a forgery: {what}")
            forgeries.append((what, said))
            advance(1)
    optimality = certificate["optimality"]
    return Proof(
        records=certificate["n"],
        size_bytes=path.stat().st_size,
        gap=optimality["gap"],
        score_bound=optimality["score_bound"],
        alpha_bound=optimality["alpha_bound"],
        readout_epsilon=optimality["readout_epsilon"],
        verdict=verdict,
        check_s=check_s,
        forgeries=tuple(forgeries),
    )


def _checked(records: Path, certificate: Path, bench: Path) -> tuple[bool, str]:
    """Return whether the checker accepts, and its first sentence."""
    command = [sys.executable, "-m", "checker", str(records.resolve()), str(certificate.resolve())]
    done = subprocess.run(command, cwd=bench, capture_output=True, text=True, check=False)
    said = (done.stdout or done.stderr).strip()
    return done.returncode == 0, said.splitlines()[0] if said else f"exit code {done.returncode}"


def _forgeries(
    certificate: Json, keys: Keys, values: Values, bench: Path, records: Path, path: Path
) -> list[tuple[str, Path, Path]]:
    """Return what was changed, records and certificate of each forgery. Changed certificates are sealed again."""
    active, optimality = certificate["active"], certificate["optimality"]
    halved = {**active, "alpha": [active["alpha"][0] / 2, *active["alpha"][1:]]}
    tighter = {**optimality, "gap": optimality["gap"] / 1000, "score_bound": optimality["score_bound"] / 1000}
    coefficient, bound, reading = bench / "coefficient.json", bench / "bound.json", bench / "reading.npz"
    coefficient.write_text(json.dumps(seal({**certificate, "active": halved})), encoding="utf-8")
    bound.write_text(json.dumps(seal({**certificate, "optimality": tighter})), encoding="utf-8")
    changed = keys.copy()
    changed[0, 0] += 0.05  # one heart rate, by about 1 a minute
    np.savez_compressed(reading, keys=changed, values=values)
    return [
        ("one coefficient halved", records, coefficient),
        ("the bound stated a thousand times smaller", records, bound),
        ("one heart rate of one hour changed by 1", reading, path),
    ]
