"""The document of a certificate: what is in it, what is not, and what makes none."""

import json

import numpy as np
import pytest

from svmem.core.certificate import certify
from svmem.core.document import Commitment, build
from svmem.core.selection import certify_selection
from svmem.errors import InvalidInput
from tests.cases import BY_NAME, Case
from tests.checker.documents import DOCUMENT, certificate, coefficients
from tests.oracles import Setting
from tests.oracles.digests import self_digest


def test_the_document_holds_no_key_no_value_and_no_infinity() -> None:
    keys = np.array([[0.123456789], [7.654321], [3.5]])
    case = Case("canary", "", keys, Setting(C=0.5))
    text = json.dumps(certificate(case, np.full((3, 2), 9.87654321)), allow_nan=False)
    assert not [canary for canary in ("0.123456789", "7.654321", "9.87654321", "3.5") if canary in text]


def test_the_self_digest_is_the_one_described() -> None:
    assert DOCUMENT["self_digest"] == self_digest(DOCUMENT)


def test_unequal_coefficients_of_equal_keys_are_refused() -> None:
    case = BY_NAME["two_equal_keys"]
    alpha = np.array([0.25, 0.75])
    with pytest.raises(InvalidInput, match="equal keys must carry equal coefficients"):
        build(case.keys, alpha, certify(case.keys, alpha, case.problem), Commitment(1, "", ""))


def test_parts_that_do_not_belong_together_are_refused() -> None:
    case, other = BY_NAME["walk"], BY_NAME["stuck"]
    alpha = coefficients(case)
    optimality = certify(case.keys, alpha, case.problem)
    selection = certify_selection(other.keys, coefficients(other), other.problem)
    with pytest.raises(InvalidInput, match="other records or another problem"):
        build(case.keys, alpha, optimality, Commitment(1, "", ""), selection=selection)
    with pytest.raises(InvalidInput, match="the certificate is for 40 records"):
        build(case.keys[:9], alpha[:9], optimality, Commitment(1, "", ""))
