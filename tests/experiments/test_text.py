"""The bytes a model learns from: where they come from, and how they are cut."""

import bz2
import gzip
import lzma
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch

from experiments.language import text
from experiments.language.text import batch, read_text, wikipedia, windows
from svmem.errors import FileRefused, InvalidInput

README = (Path(__file__).parents[2] / "README.md").read_bytes()
PACKERS = {"txt": lambda data: data, "bz2": bz2.compress, "gz": gzip.compress, "dz": gzip.compress, "xz": lzma.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_text_is_the_text(ending, tmp_path):
    path = tmp_path / f"text.{ending}"
    path.write_bytes(PACKERS[ending](README))
    got = read_text(path, limit_bytes=10**9, block=16)
    assert bytes(torch.cat((got.train, got.held_out)).tolist()) == README
    assert len(got.train) == len(README) * 9 // 10


def test_only_the_first_bytes_are_used(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(README)
    got = read_text(path, limit_bytes=1000, block=16)
    assert bytes(got.train.tolist()) == README[:900]
    assert bytes(got.held_out.tolist()) == README[900:1000]


@pytest.mark.parametrize("ending", ["bz2", "gz", "dz", "xz"])
def test_a_damaged_file_is_refused(ending, tmp_path):
    path = tmp_path / f"text.{ending}"
    packed = PACKERS[ending](README)
    for damaged in (packed[: len(packed) // 2], README, packed[:50] + b"\xff" * 50 + packed[100:]):
        path.write_bytes(damaged)
        with pytest.raises(FileRefused, match="cannot be read"):
            read_text(path, limit_bytes=10**9, block=16)


def test_a_text_must_fill_a_block_in_both_parts(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(README[:170])
    got = read_text(path, limit_bytes=10**9, block=16)
    assert windows(got.held_out, block=16, count=9).shape == (1, 17)
    path.write_bytes(README[:169])
    with pytest.raises(FileRefused, match=r"a block of 16 needs a text of at least 170 bytes; .* has 169"):
        read_text(path, limit_bytes=10**9, block=16)


def test_a_batch_is_a_function_of_seed_and_step():
    tokens = torch.arange(200, dtype=torch.uint8)
    one, again = (batch(tokens, block=16, size=500, seed=1, step=2) for _ in range(2))
    assert torch.equal(one, again)
    assert not torch.equal(one, batch(tokens, block=16, size=500, seed=1, step=3))
    assert not torch.equal(one, batch(tokens, block=16, size=500, seed=2, step=2))
    assert (one.diff(dim=1) == 1).all()
    assert one.min() == 0  # the first and the last byte are drawn too
    assert one.max() == 199


@pytest.mark.parametrize("count", [1, 2, 7, 12, 1000])
def test_held_out_stretches_share_no_target(count):
    got = windows(torch.arange(200, dtype=torch.uint8), block=16, count=count)
    assert got.shape == (min(count, 12), 17)
    targets = got[:, 1:].flatten().tolist()
    assert len(targets) == len(set(targets))
    if count > 1:
        assert got.max() == 199


def test_without_gensim_the_error_teaches_how_to_get_it(monkeypatch):
    monkeypatch.setattr(text.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"not installed: pip install --no-deps gensim==4\.4\.0, or name a file"):
        wikipedia()


def test_the_pages_are_found_inside_gensim_without_importing_it(monkeypatch, tmp_path):
    spec = ModuleSpec("gensim", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(text.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(InvalidInput, match="gensim is installed without its Wikipedia pages"):
        wikipedia()
    pages = tmp_path / "test" / "test_data" / "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
    pages.parent.mkdir(parents=True)
    pages.touch()
    assert wikipedia() == pages
