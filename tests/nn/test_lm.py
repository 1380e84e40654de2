"""The language model: its size, that it does not look ahead, how it starts, and how it draws."""

import math

import pytest
import torch

from svmem.baselines import SoftmaxAttention
from svmem.errors import InvalidInput
from svmem.nn.lm import LanguageModel, LMConfig, bits_per_byte, generate, next_token_loss

TINY = LMConfig(width=16, layers=2, heads=2, block=12)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def softmax(config, _):
    return SoftmaxAttention(config.width, config.heads, config.bias)


def model(config=TINY, *, seed=0):
    torch.manual_seed(seed)
    return LanguageModel(config, softmax)


def tokens(b=2, t=12):
    return torch.randint(0, 256, (b, t), generator=torch.Generator().manual_seed(3))


def test_the_default_has_the_papers_3_22_million_parameters():
    assert model(LMConfig()).size == 3_215_872


@pytest.mark.parametrize(("sizes", "millions"), [((384, 6, 6, 512), 10.7), ((512, 10, 8, 512), 31.6)])
def test_the_larger_ones_have_10_and_32_million(sizes, millions):
    width, layers, heads, block = sizes
    config = LMConfig(width=width, layers=layers, heads=heads, block=block)
    with torch.device("meta"):
        assert LanguageModel(config, softmax).size / 1e6 == pytest.approx(millions, abs=0.06)


def test_the_mixer_of_each_layer_is_made_from_the_sizes_and_its_number():
    asked = []

    def mixer(config, number):
        asked.append((config, number))
        return torch.nn.Identity()

    LanguageModel(TINY, mixer)
    assert asked == [(TINY, 0), (TINY, 1)]


def test_changing_a_token_leaves_every_earlier_prediction_as_it_was():
    lm, text = model(), tokens()
    before = lm(text)
    for j in range(12):
        changed = text.clone()
        changed[:, j] = (changed[:, j] + 1) % 256
        after = lm(changed)
        assert torch.equal(after[:, :j], before[:, :j])
        assert not torch.equal(after[:, j], before[:, j])


def test_the_same_token_is_another_at_another_place():
    lm = model()
    logits = lm(torch.full((1, 12), 65))
    assert not torch.allclose(logits[0, 0], logits[0, 1])


def test_a_fresh_model_knows_nothing():
    lm, text = model(LMConfig(width=64, layers=4, heads=4, block=64)), tokens(4, 65)
    assert bits_per_byte(next_token_loss(lm(text[:, :-1]), text[:, 1:]).item()) == pytest.approx(8, abs=0.1)


def test_what_is_added_to_the_stream_starts_smaller():
    lm = model(LMConfig(width=64, layers=8, heads=4, block=64))
    for name, weight in lm.named_parameters():
        if weight.dim() > 1:
            std = 0.02 / 4 if name.endswith("out_proj.weight") else 0.02
            assert weight.std().item() == pytest.approx(std, rel=0.05), name


def test_the_head_is_the_embedding():
    lm = model()
    next_token_loss(lm(tokens()), tokens()).backward()
    assert lm.embedding.weight.grad is not None
    assert (lm.embedding.weight.grad.abs().sum(1) > 0).all()  # bytes that did not come are pushed down as well


def test_the_loss_is_the_mean_surprise():
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]]))
    loss = next_token_loss(logits, torch.tensor([[1, 1]]))
    assert loss.item() == pytest.approx((math.log(4) - math.log(0.8)) / 2)
    assert bits_per_byte(math.log(4)) == pytest.approx(2)


def test_it_learns_a_text_by_heart():
    lm, text = model(), tokens(2, 13)
    optimiser = torch.optim.AdamW(lm.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = next_token_loss(lm(text[:, :-1]), text[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1
    assert torch.equal(generate(lm, text[:, :1], 12, temperature=0), text)


def test_greedy_drawing_takes_the_likeliest_token_of_a_cropped_context():
    lm, prompt = model(), tokens(2, 5)
    drawn = generate(lm, prompt, 20, temperature=0)
    assert torch.equal(drawn[:, :5], prompt)
    for i in range(5, 25):
        assert torch.equal(drawn[:, i], lm(drawn[:, max(0, i - 12) : i])[:, -1].argmax(-1))


def test_the_same_generator_draws_the_same_text():
    lm, prompt = model(), tokens(1, 3)
    one, two, other = (generate(lm, prompt, 9, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_drawing_among_one_token_is_greedy():
    lm, prompt = model(), tokens(1, 3)
    assert torch.equal(generate(lm, prompt, 9, top_k=1), generate(lm, prompt, 9, temperature=0))


def test_only_the_likeliest_tokens_are_drawn():
    lm, prompt = model(), tokens(1, 3)
    likeliest = set(lm(prompt)[0, -1].topk(3).indices.tolist())
    generator = torch.Generator().manual_seed(0)
    drawn = {generate(lm, prompt, 1, temperature=50.0, top_k=3, generator=generator)[0, -1].item() for _ in range(60)}
    assert drawn == likeliest


@pytest.mark.parametrize("bad", [{"layers": 0}, {"width": -1}, {"block": 0}, {"vocabulary": 0}, {"mlp_ratio": 0}])
def test_sizes_below_one_are_refused(bad):
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} must be at least 1"):
        LMConfig(**bad)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(InvalidInput, match="width must be a multiple of heads, got 256 and 3"):
        LMConfig(heads=3)


@pytest.mark.parametrize("shape", [(1, 13), (1, 0), (5,)])
def test_tokens_that_do_not_fit_the_block_are_refused(shape):
    with pytest.raises(InvalidInput, match=r"tokens must be \(b, t\), t from 1 to block = 12"):
        model()(torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize("bad", [{"temperature": -1.0}, {"temperature": math.nan}, {"top_k": 0}, {"top_k": 257}])
def test_settings_that_draw_nothing_are_refused(bad):
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} must be"):
        generate(model(), tokens(1, 3), 1, **bad)
