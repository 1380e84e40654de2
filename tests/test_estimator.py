import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import svmem
from svmem.estimator import SVDD


@parametrize_with_checks([SVDD(), SVDD(sigma=3.0, nu=0.2)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def samples(n=80, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_decisions_agree_with_the_one_class_svm():
    data, probes = samples(), 2 * samples(50, seed=1)
    ours = SVDD(sigma=1.5, nu=0.3, ridge=1e-12).fit(data)
    theirs = OneClassSVM(nu=0.3, tol=1e-12).set_params(gamma=1 / 1.5**2).fit(data)
    scale = 2 / (0.3 * len(data))  # their coefficients sum to nu n, ours to 1, and ours count twice
    rounding = 1e-7  # libsvm keeps kernel rows in float32
    expected = scale * theirs.decision_function(probes)
    np.testing.assert_allclose(ours.decision_function(probes), expected, atol=rounding)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_partial_fits_give_the_bits_of_one_fit():
    data = samples()
    whole = SVDD(C=0.05).fit(data)
    parts = SVDD(C=0.05)
    for part in np.array_split(data, 7):
        parts.partial_fit(part)
    assert parts.memory_.digest() == whole.memory_.digest()
    assert np.array_equal(parts.dual_coef_, whole.dual_coef_)


def test_partial_fit_after_unpickling_is_the_same_as_never_pickled():
    data = samples()
    kept = SVDD(C=0.05).fit(data[:50])
    loaded = pickle.loads(pickle.dumps(kept))
    assert loaded.partial_fit(data[50:]).memory_.digest() == kept.partial_fit(data[50:]).memory_.digest()


def test_forgetting_gives_the_fit_of_the_others():
    data = samples()
    ours = SVDD(C=0.05).fit(data).forget([3, 40])
    assert ours.memory_.digest() == SVDD(C=0.05).fit(np.delete(data, [3, 40], axis=0)).memory_.digest()


def test_one_row_scored_alone_has_the_bits_it_has_in_a_batch():
    fitted, probes = SVDD(C=0.05).fit(samples()), samples(20, seed=2)
    alone = np.concatenate([fitted.decision_function(row[None]) for row in probes])
    assert np.array_equal(alone, fitted.decision_function(probes))


def test_scores_are_finite_with_the_documented_sign_when_no_key_is_on_the_margin():
    fitted = SVDD(C=0.5, sigma=10.0).fit([[0.0], [1.0], [2.0], [3.0]])
    assert len(fitted.memory_.solution.margin) == 0
    scores = fitted.decision_function([[0.0], [1.5], [3.0], [30.0]])
    assert np.isfinite(fitted.offset_)
    assert scores[1] > 0 > scores[3]
    np.testing.assert_allclose(scores[[0, 2]], 0, atol=1e-7)  # on the boundary, but for the ridge


def test_an_estimator_that_was_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        SVDD().decision_function([[0.0]])
    copy = clone(SVDD(C=0.05).fit(samples()))
    assert isinstance(copy, SVDD)
    with pytest.raises(NotFittedError):
        copy.predict(samples())


def test_forgetting_something_unknown_changes_nothing():
    fitted = SVDD(C=0.05).fit(samples())
    before = fitted.memory_.digest()
    with pytest.raises(svmem.errors.NotFound, match="999"):
        fitted.forget([999])
    assert fitted.memory_.digest() == before


@pytest.mark.parametrize("n", [49, 98, 103, 107])
def test_fewer_samples_than_one_over_nu_make_the_cap_one(n):
    assert SVDD(nu=0.001).fit(samples(n)).memory_.problem.C == 1.0
