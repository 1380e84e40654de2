"""The certificate written to a file, rechecked by the checker on its own, and forgeries that it has to refuse."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import svmem.checker
from svmem.core.document import seal
from svmem.errors import CertificateError
from svmem.types import Json, Keys, Values

__all__ = ["Held", "Proof", "prove"]


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


@dataclass(frozen=True, slots=True)
class Held:
    """Records as a third party would be given them: those retained, and those withdrawn for a forgery."""

    keys: Keys
    values: Values
    gone_keys: Keys
    gone_values: Values


@dataclass(frozen=True, slots=True)
class _Case:
    """Two files for the checker, and what was changed in them."""

    changed: str
    records: Path
    certificate: Path


@dataclass(frozen=True, slots=True)
class _Answer:
    accepted: bool
    said: str
    seconds: float


def prove(certificate: Json, held: Held, output: Path, advance: Callable[[int], None] = lambda _: None) -> Proof:
    """Write certificate.json and records.npz, have them checked, and try three forgeries. `advance` is called 4 times.

    The checker runs as a third party would run it: a copy of its folder, in a process of its own, with numpy and
    nothing of svmem. Raises CertificateError if it refuses the certificate or accepts a forgery.
    """
    honest = _Case("nothing", output / "records.npz", output / "certificate.json")
    honest.certificate.write_text(json.dumps(certificate) + "\n", encoding="utf-8")
    np.savez_compressed(honest.records, keys=held.keys, values=held.values)
    with tempfile.TemporaryDirectory() as folder:
        bench = Path(folder)
        shutil.copytree(Path(svmem.checker.__file__).parent, bench / "checker")
        forged = _forgeries(certificate, held, bench, honest)
        with ThreadPoolExecutor(max_workers=2) as pool:
            asked = [pool.submit(_ask, case, bench) for case in (honest, *forged)]
            for _ in as_completed(asked):
                advance(1)
    answer, *others = (future.result() for future in asked)
    if not answer.accepted:
        raise CertificateError(f"the independent checker refuses the certificate of the demo: {answer.said}")
    for case, other in zip(forged, others, strict=True):
        if other.accepted:
            raise CertificateError(f"the independent checker accepted a forgery: {case.changed}")
    optimality = certificate["optimality"]
    return Proof(
        records=certificate["n"],
        size_bytes=honest.certificate.stat().st_size,
        **{name: optimality[name] for name in ("gap", "score_bound", "alpha_bound", "readout_epsilon")},
        verdict=answer.said,
        check_s=answer.seconds,
        forgeries=tuple((case.changed, other.said) for case, other in zip(forged, others, strict=True)),
    )


def _ask(case: _Case, bench: Path) -> _Answer:
    """Return whether the checker accepts, and its first sentence with digests cut short."""
    command = [sys.executable, "-m", "checker", str(case.records.resolve()), str(case.certificate.resolve())]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=bench, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    said = (done.stdout or done.stderr or f"exit code {done.returncode}").splitlines()[0]
    return _Answer(done.returncode == 0, re.sub(r"([0-9a-f]{12})[0-9a-f]{40,}", r"\1…", said), seconds)


def _forgeries(certificate: Json, held: Held, bench: Path, honest: _Case) -> list[_Case]:
    """Return three forgeries. A changed certificate is sealed again, as a forger would."""
    active = certificate["active"]
    halved = {**active, "alpha": [active["alpha"][0] / 2, *active["alpha"][1:]]}
    coefficient, reading, back = bench / "coefficient.json", bench / "reading.npz", bench / "back.npz"
    coefficient.write_text(json.dumps(seal({**certificate, "active": halved})), encoding="utf-8")
    changed = held.keys.copy()
    changed[0, 0] += 0.05  # standard deviations: about 1 a minute
    np.savez_compressed(reading, keys=changed, values=held.values)
    with_one = (np.vstack(pair) for pair in ((held.keys, held.gone_keys[:1]), (held.values, held.gone_values[:1])))
    np.savez_compressed(back, **dict(zip(("keys", "values"), with_one, strict=True)))
    return [
        _Case("one coefficient halved", honest.records, coefficient),
        _Case("one heart rate of one hour changed by 1 a minute", reading, honest.certificate),
        _Case("one withdrawn hour put back among the records", back, honest.certificate),
    ]
