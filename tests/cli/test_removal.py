import io
import json
import sys
import threading
from pathlib import Path

import pytest

import svmem
from svmem.cli import files
from tests.cli.conftest import CANARY, N, Run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_forgetting_an_owner_leaves_the_memory_that_never_held_the_owner(run: Run, memory: Path):
    source = svmem.Memory.load(memory)
    others = [i for i, owner in enumerate(source.owners) if owner != CANARY]
    never = svmem.Memory(source.problem, key_dim=2, value_dim=1)
    never.add(source.keys[others], source.values[others])
    done = run("forget", memory, "--owner", CANARY, "--yes", "--json")
    assert done.code == 0, done.err
    assert (done.data["count"], done.data["n_after"]) == (N - len(others), len(others))
    assert done.data["digest"] == never.digest() == svmem.Memory.load(memory).digest()
    assert CANARY not in done.out + done.err
    assert CANARY.encode() not in memory.read_bytes()


def test_forgetting_by_ids_takes_these_and_no_others(run: Run, memory: Path):
    done = run("forget", memory, "--ids", "3,1,20", "--yes")
    assert done.code == 0
    assert "3 forgotten, 21 retained" in done.out
    assert svmem.Memory.load(memory).ids == [i for i in range(N) if i not in (1, 3, 20)]


def test_a_deletion_certificate_is_borne_out_by_the_file_and_refused_for_the_old_one(
    run: Run, memory: Path, tmp_path: Path
):
    assert run("export", memory, "--out", tmp_path / "before.npz").code == 0
    proof = tmp_path / "proof.json"
    assert run("forget", memory, "--owner", CANARY, "--yes", "--certificate", proof).code == 0
    assert CANARY not in proof.read_text()
    assert json.loads(proof.read_text())["removed"]["count"] == 4
    assert run("verify", memory, proof).code == 0
    refused = run("verify", tmp_path / "before.npz", proof)
    assert refused.code == 1
    assert "refused: n is 20 but should be 24" in refused.out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--owner", "nobody", "--yes"), 1, "no record has this owner, letter for letter; nothing was changed"),
        (("--owner", CANARY[:-1], "--yes"), 1, "no record has this owner"),
        (("--owner", CANARY.lower(), "--yes"), 1, "no record has this owner"),
        (("--owner", "", "--yes"), 1, "an owner must be a string that is not empty"),
        (("--ids", "3,99", "--yes"), 1, "no record has the id 99"),
        (("--ids", "3,3", "--yes"), 1, "ids must be distinct"),
        (("--ids", "3,x", "--yes"), 2, "takes whole numbers"),
        (("--ids", "3", "--owner", "P-1", "--yes"), 2, "give either --owner or --ids"),
        (("--yes",), 2, "give either --owner or --ids"),
        (("--owner", CANARY), 2, "4 of 24 records would be forgotten for good; nothing was changed"),
    ],
)
def test_a_refused_forget_leaves_every_byte(
    run: Run,
    memory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    code: int,
    said: str,
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # an answer, but from no terminal
    before = memory.read_bytes()
    done = run("forget", memory, *options, "--certificate", tmp_path / "proof.json")
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert CANARY not in done.err
    assert memory.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hours.svmem"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_at_a_terminal_the_user_is_asked(
    run: Run, memory: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    before = memory.read_bytes()
    done = run("forget", memory, "--owner", CANARY)
    assert done.code == code
    assert "4 of 24 records would be forgotten for good. Go on? [y/N]" in done.err
    assert (memory.read_bytes() == before) == (code == 1)


def test_a_certificate_that_is_there_is_not_replaced(run: Run, memory: Path, tmp_path: Path):
    (tmp_path / "proof.json").write_text("mine")
    before = memory.read_bytes()
    done = run("forget", memory, "--owner", CANARY, "--yes", "--certificate", tmp_path / "proof.json")
    assert done.code == 1
    assert ((tmp_path / "proof.json").read_text(), memory.read_bytes()) == ("mine", before)


def test_there_is_no_certificate_when_the_memory_cannot_be_saved(
    run: Run, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(self: svmem.Memory, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    before = memory.read_bytes()
    monkeypatch.setattr(svmem.Memory, "save", full)
    done = run("forget", memory, "--owner", CANARY, "--yes", "--certificate", tmp_path / "proof.json")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"svmem: {memory}: No space left on device\n"
    assert memory.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hours.svmem"]


def test_two_commands_do_not_change_a_file_at_once(memory: Path):
    import fcntl

    with files.held(memory) as source:
        with open(memory, "rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        source.forget(ids=[0])
        source.save(memory)
    with files.held(memory) as source:
        assert len(source) == N - 1


def test_a_command_that_waited_works_on_what_the_other_one_left(memory: Path, capsys: pytest.CaptureFixture[str]):
    found: list[int] = []

    def second() -> None:
        with files.held(memory) as source:
            found.append(len(source))

    waiting = threading.Thread(target=second)
    with files.held(memory) as source:
        waiting.start()
        while "waiting for another svmem" not in capsys.readouterr().err:
            waiting.join(0.01)
        source.forget(ids=[0])
        source.save(memory)
    waiting.join()
    assert found == [N - 1]


def test_evicting_drops_reserve_records_and_changes_no_answer(run: Run, memory: Path):
    source = svmem.Memory.load(memory)
    answers, reserve = source.read(source.keys).tolist(), source.solution.reserve.tolist()
    done = run("evict", memory, "--yes", "--json")
    after = svmem.Memory.load(memory)
    assert done.data["count"] == N - len(after) > 0
    assert set(range(N)) - set(after.ids) <= set(reserve)
    assert after.read(source.keys).tolist() == answers
    assert done.data["digest"] == after.digest()


def test_evicting_keeps_what_is_to_be_kept(run: Run, memory: Path):
    reserve = svmem.Memory.load(memory).solution.reserve.tolist()
    assert run("evict", memory, "--keep", ",".join(map(str, reserve)), "--yes", "--json").data["count"] == 0
    assert len(svmem.Memory.load(memory)) == N


def test_evicting_under_a_horizon_says_what_it_covers(run: Run, memory: Path):
    before = memory.read_bytes()
    done = run("evict", memory, "--horizon", "100,2", "--yes", "--json")
    assert (done.code, done.data["admissions"], done.data["deletions"], done.data["count"]) == (0, 100, 2, 0)
    assert memory.read_bytes() == before


@pytest.mark.parametrize("horizon", ["1,2,3", "-1", "many"])
def test_a_horizon_that_is_none_is_misuse(run: Run, memory: Path, horizon: str):
    assert run("evict", memory, f"--horizon={horizon}").code == 2


def test_evicting_asks_first(run: Run, memory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", None)
    before = memory.read_bytes()
    done = run("evict", memory)
    assert (done.code, done.out) == (2, "")
    assert "records would be dropped" in done.err
    assert memory.read_bytes() == before
