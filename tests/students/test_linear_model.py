"""The dictionary-based scorer against scikit-learn's own vectorisers and decision function."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.svm import LinearSVC

from gateway.settings import GatewaySettings
from gateway.students.linear.artefact import read
from gateway.students.linear.features import BLOCKS, fold
from gateway.students.linear.model import softmax
from nightschool.trainers.base import Trained
from nightschool.trainers.linear_fit import REGULARISATION
from tests.students.conftest import sentences

UNSEEN = ["My invoice code 7 now", "tea", "Zebra", "", "now now now PLEASE please my refund", "colour\tcolour 😀"]


@pytest.mark.req("INV-6")
def test_scores_equal_the_reference_decision_function(settings: GatewaySettings, trained: Trained) -> None:
    model = read(Path(settings.artefact_dir), trained.artefact).tasks["triage"]
    texts = [fold(text) for text, _, _ in sentences()]
    union = FeatureUnion(
        [
            (block.name, TfidfVectorizer(analyzer=block.analyse, min_df=block.min_df, sublinear_tf=True))
            for block in BLOCKS
        ],
        transformer_weights={block.name: block.weight for block in BLOCKS},
    )
    # Rows are trained in the order of their hashes, which is the order of the sentences.
    vectors = union.fit_transform(texts)
    topic = LinearSVC(C=REGULARISATION, random_state=0, max_iter=5000).fit(vectors, [row[1] for row in sentences()])
    urgent = LinearSVC(C=REGULARISATION, random_state=0, max_iter=5000).fit(vectors, [row[2] for row in sentences()])
    wanted = union.transform([fold(text) for text in UNSEEN])
    scores = np.array([model.scores(text) for text in UNSEEN])
    assert [field.labels for field in model.fields] == [("billing", "login", "other"), ("no", "yes")]
    assert np.abs(scores[:, :3] - topic.decision_function(wanted)).max() < 1e-5
    assert np.abs(scores[:, 4] - scores[:, 3] - urgent.decision_function(wanted)).max() < 1e-5


@pytest.mark.req("INV-6")
def test_a_text_without_known_terms_gets_the_intercepts(settings: GatewaySettings, trained: Trained) -> None:
    model = read(Path(settings.artefact_dir), trained.artefact).tasks["triage"]
    assert model.scores("Zebra").tolist() == model.intercepts.tolist() == model.scores("").tolist()


@pytest.mark.req("INV-6")
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0.1, 20))
def test_probabilities_are_a_distribution_in_the_order_of_the_scores(scores: list[float], scale: float) -> None:
    probabilities = softmax(scores, scale)
    assert sum(probabilities) == pytest.approx(1.0)
    assert probabilities[scores.index(max(scores))] == max(probabilities)
