"""Each selector against its definition, written out, or against an answer known by hand."""

import itertools
import math

import numpy as np
import pytest

from svmem import RBF, Linear, Problem, solve
from svmem.baselines.selection import (
    H2O,
    FarthestPoint,
    HeavyHitter,
    KeyDiff,
    KMedoids,
    Leverage,
    LowestMass,
    ManifoldKV,
    OracleHeavyHitter,
    Recency,
    Reservoir,
    Scene,
    SelfMass,
    SnapKV,
    StreamingLLM,
    Support,
    Uniform,
)
from svmem.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("compiled")
SIGMA = 1.3


def scene_of(seed, n=18, nu=0.4):
    rng = np.random.default_rng(seed)
    keys, queries = rng.standard_normal((n, 3)), rng.standard_normal((8, 3))
    return Scene(keys, Problem.from_nu(nu, n, RBF(SIGMA)), seen=queries[:5], asked=queries)


def chosen(selector, scene, budget, seed=0):
    return selector.select(scene, budget, np.random.default_rng(seed)).tolist()


def kernel(x, y):
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / SIGMA**2)


def mass(keys, queries):
    return [sum(kernel(key, query) for query in queries) for key in keys]


def best(scores, budget):
    return sorted(sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:budget])


@pytest.mark.parametrize("seed", range(4))
def test_support_keeps_the_support_set_at_its_size(seed):
    scene = scene_of(seed)
    solution = solve(scene.keys, scene.problem)
    support = sorted([*solution.margin.tolist(), *solution.bound.tolist()])
    assert chosen(Support(), scene, len(support)) == support


@pytest.mark.parametrize("seed", range(4))
def test_with_less_support_keeps_the_outermost_at_the_cap_and_with_more_takes_in_those_next_to_the_margin(seed):
    scene = scene_of(seed, n=30, nu=0.8)
    solution = solve(scene.keys, scene.problem)
    f = [sum(a * kernel(x, y) for a, y in zip(solution.alpha, scene.keys, strict=True)) for x in scene.keys]
    few = solution.bound.size - 2
    assert few >= 1
    assert chosen(Support(), scene, few) == sorted(sorted(solution.bound.tolist(), key=lambda i: f[i])[:few])
    support = sorted([*solution.margin.tolist(), *solution.bound.tolist()])
    inside = sorted(solution.reserve.tolist(), key=lambda i: f[i])
    assert chosen(Support(), scene, len(support) + 3) == sorted(support + inside[:3])


@pytest.mark.parametrize("seed", range(4))
def test_kernel_mass_is_the_sum_over_the_queries_that_count(seed):
    scene = scene_of(seed)
    assert chosen(OracleHeavyHitter(), scene, 7) == best(mass(scene.keys, scene.asked), 7)
    assert chosen(HeavyHitter(), scene, 7) == best(mass(scene.keys, scene.seen), 7)
    of_keys = mass(scene.keys, scene.keys)
    assert chosen(SelfMass(), scene, 7) == best(of_keys, 7)
    assert chosen(LowestMass(), scene, 7) == best([-one for one in of_keys], 7)


@pytest.mark.parametrize("budget", [1, 2, 5, 8, 18])
def test_h2o_evicts_the_key_with_the_least_attention_that_is_not_recent(budget):
    scene = scene_of(3)
    cache, drawn = [], {}
    for i, query in enumerate(scene.keys):
        cache.append(i)
        drawn[i] = 0.0
        weights = {j: kernel(query, scene.keys[j]) for j in cache}
        for j in cache:
            drawn[j] += weights[j] / sum(weights.values())
        if len(cache) > budget:
            old = cache[: len(cache) - math.ceil(budget / 2)]
            cache.remove(min(old, key=lambda j: drawn[j]))
    assert chosen(H2O(), scene, budget) == cache


def test_h2o_forgets_a_lone_early_key_and_keeps_the_first_of_a_crowd_and_the_last_key():
    keys = np.array([[9.0], [0.0], [0.0], [0.0], [0.0], [0.0], [5.0]])
    assert chosen(H2O(), Scene(keys, Problem(RBF(1.0), C=0.5)), 2) == [1, 6]


@pytest.mark.parametrize(("window", "pool"), [(32, 5), (2, 1), (3, 3), (1, 31)])
def test_snapkv_pools_the_votes_of_the_last_queries_over_neighbours(window, pool):
    scene = scene_of(5)
    votes = np.zeros(len(scene))
    assert scene.seen is not None
    for query in scene.seen[-window:]:
        weights = np.array([kernel(query, key) for key in scene.keys])
        votes += weights / weights.sum()
    half = pool // 2
    pooled = [votes[max(0, i - half) : i + half + 1].sum() for i in range(len(votes))]
    assert chosen(SnapKV(window=window, pool=pool), scene, 6) == best(pooled, 6)


def test_snapkv_counts_a_vote_from_afar_in_full():
    keys = np.array([[0.0], [1.0], [2.0]])
    scene = Scene(keys, Problem(RBF(1.0), C=0.5), seen=np.array([[1e4]]))  # its kernel values are all 0
    assert chosen(SnapKV(pool=1), scene, 1) == [2]


def test_streaming_and_recency_keep_the_ends():
    scene = scene_of(0, n=10)
    assert chosen(StreamingLLM(), scene, 7) == [0, 1, 2, 3, 7, 8, 9]
    assert chosen(StreamingLLM(), scene, 4) == [0, 1, 2, 9]
    assert chosen(StreamingLLM(sinks=0), scene, 3) == chosen(Recency(), scene, 3) == [7, 8, 9]


@pytest.mark.parametrize("selector", [Uniform(), Reservoir()], ids=lambda one: one.name)
def test_chance_takes_every_set_equally_often(selector):
    scene, rng, draws = scene_of(0, n=5), np.random.default_rng(1), 6000
    counts = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    for _ in range(draws):
        counts[tuple(selector.select(scene, 2, rng).tolist())] += 1
    np.testing.assert_allclose(np.array(list(counts.values())) / draws, 0.1, atol=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_farthest_point_adds_the_key_farthest_from_those_kept_and_is_within_twice_the_best_radius(seed):
    scene = scene_of(seed, n=12)
    kept = [int(np.random.default_rng(seed).integers(12))]
    for _ in range(3):
        rest = [i for i in range(12) if i not in kept]
        kept.append(max(rest, key=lambda i: min(math.dist(scene.keys[i], scene.keys[j]) for j in kept)))
    assert chosen(FarthestPoint(), scene, 4, seed) == sorted(kept)

    def radius(some):
        return max(min(math.dist(x, scene.keys[j]) for j in some) for x in scene.keys)

    assert radius(kept) <= 2 * min(radius(some) for some in itertools.combinations(range(12), 4))


@pytest.mark.parametrize("seed", range(4))
def test_keydiff_keeps_the_lowest_cosine_to_the_mean_direction(seed):
    keys = scene_of(seed).keys
    anchor = np.mean([key / math.hypot(*key) for key in keys], axis=0)
    cosine = [float(key @ anchor) / (math.hypot(*key) * math.hypot(*anchor)) for key in keys]
    assert chosen(KeyDiff(), scene_of(seed), 6) == best([-one for one in cosine], 6)


@pytest.mark.parametrize("seed", range(4))
def test_lowest_mass_is_keydiff_where_keys_are_the_features_of_the_kernel(seed):
    scene = scene_of(seed)
    features = Scene(np.asarray(np.linalg.cholesky(scene.gram), np.float64), scene.problem)
    assert chosen(LowestMass(), scene, 6) == chosen(KeyDiff(), features, 6)


@pytest.mark.parametrize("seed", range(4))
def test_manifoldkv_keeps_the_keys_farthest_from_the_mean(seed):
    keys = scene_of(seed).keys
    far = [math.dist(key, keys.mean(axis=0)) for key in keys]
    assert chosen(ManifoldKV(), scene_of(seed), 6) == best(far, 6)


@pytest.mark.parametrize("seed", range(4))
def test_leverage_scores_are_those_of_the_ridge_at_which_they_add_up_to_the_budget(seed):
    scene, budget = scene_of(seed), 6
    n, low, high = len(scene), 1e-12, 1e3

    def scores(ridge):
        return np.diag(scene.gram @ np.linalg.inv(scene.gram + ridge * np.eye(n)))

    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if scores(middle).sum() > budget else (low, middle)
    assert scores(high).sum() == pytest.approx(budget)
    assert chosen(Leverage(), scene, budget) == best(scores(high).tolist(), budget)


def test_leverage_prefers_a_lone_key_to_copies():
    keys = np.array([[0.0], [0.0], [0.0], [6.0], [0.0]])
    assert 3 in chosen(Leverage(), Scene(keys, Problem(RBF(1.0), C=0.5)), 1)


@pytest.mark.parametrize("seed", range(6))
def test_k_medoids_ends_where_no_medoid_of_a_cluster_can_be_bettered(seed):
    scene = scene_of(seed)
    kept = chosen(KMedoids(), scene, 5, seed)
    distance = [[math.dist(x, y) for y in scene.keys] for x in scene.keys]
    label = [min(kept, key=lambda j: distance[i][j]) for i in range(len(scene))]
    for medoid in kept:
        members = [i for i in range(len(scene)) if label[i] == medoid]
        costs = {i: sum(distance[i][j] for j in members) for i in members}
        assert costs[medoid] <= min(costs.values()) + 1e-12


def test_k_medoids_finds_clusters_that_lie_apart():
    rng = np.random.default_rng(2)
    keys = np.concatenate([centre + 0.1 * rng.standard_normal((6, 2)) for centre in (0.0, 50.0, 100.0)])
    kept = chosen(KMedoids(), Scene(keys, Problem(RBF(1.0), C=0.5)), 3)
    assert [i // 6 for i in kept] == [0, 1, 2]
    for place, group in zip(kept, np.split(keys, 3), strict=True):
        costs = np.linalg.norm(group[:, None] - group[None], axis=2).sum(axis=1)
        assert place % 6 == costs.argmin()


def test_settings_and_kernels_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match="sinks must be at least 0"):
        StreamingLLM(sinks=-1)
    with pytest.raises(InvalidInput, match="pool odd"):
        SnapKV(pool=4)
    with pytest.raises(InvalidInput, match="RBF kernel"):
        Scene(np.ones((3, 2)), Problem(Linear(), C=0.5))
