"""Sentence vectors of MiniLM against the library that the network was made for."""

import numpy as np
import pytest

from experiments import capitals
from experiments.minilm import _tokens, sentence_vectors

# By transformers 5.24.0 (AutoTokenizer, BertModel, mean over tokens, length 1) in float32 from the same folder:
# the coordinates 0, 1, 100, 200 and 383 of each vector.
PLACES = [0, 1, 100, 200, 383]
REFERENCE = {
    "The capital of Malta is Valletta.": [0.089016, 0.078881, 0.008799, 0.033264, -0.057891],
    "What is the capital of Côte d'Ivoire?": [0.055612, 0.10539, 0.009842, 0.003838, -0.021907],
    "Washington, D.C.": [0.017093, 0.015789, 0.025967, 0.079086, 0.024335],
    "N'Djamena; São Tomé & Príncipe": [-0.030532, 0.086493, 0.053373, 0.063213, -0.03514],
    "a": [-0.036433, 0.034703, 0.007633, 0.12749, 0.094287],
    "The government of Bosnia-Herzegovina sits in which city? " * 40: [
        0.029201,
        -0.060215,
        0.061547,
        0.083652,
        0.086823,
    ],
}


@pytest.mark.skipif(capitals.missing() is not None, reason="the package with the weights is not installed")
def test_vectors_are_those_of_the_reference_in_any_batch():
    folder, sentences = capitals.model_folder(), list(REFERENCE)
    found = sentence_vectors(folder, sentences)
    np.testing.assert_allclose(found[:, PLACES], list(REFERENCE.values()), rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(sentence_vectors(folder, sentences, batch=1), found, atol=1e-6)


def test_words_are_cut_into_the_longest_pieces_there_are():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "malt", "##a", ".", "o"]
    number = {piece: i for i, piece in enumerate(pieces)}
    found = [pieces[i] for i in _tokens("Malta. Ö quux", number)]
    assert found == ["[CLS]", "malt", "##a", ".", "o", "[UNK]", "[SEP]"]
