"""Fitting linear text models: TF-IDF vectors, one linear SVM a field, and its scale calibrated out of fold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.svm import LinearSVC

from gateway.students.linear.features import BLOCKS, Block
from gateway.students.linear.model import BlockModel, FieldModel, Floats

REGULARISATION = 1.0
"""LinearSVC's C."""
SCALES = (0.1, 20.0)
"""The range that a calibrated scale is looked for in."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A field's model: ``coefficients`` (terms, labels), ``intercepts`` (labels,)."""

    field: FieldModel
    coefficients: Floats
    intercepts: Floats


class TrainingTexts:
    """One task's folded texts as TF-IDF vectors, with the ``weights`` and ``folds`` of cross-fitting, one a text."""

    def __init__(self, texts: Sequence[str], weights: Sequence[float], folds: Sequence[int]) -> None:
        self.weights = np.array(weights, dtype=np.float64)
        self.folds = np.array(folds, dtype=np.intp)
        self._counts = [(block, *_count(block, texts)) for block in BLOCKS]
        self.matrix, self.blocks = self.weigh(np.ones(len(texts), dtype=bool))

    def weigh(self, chosen: NDArray[np.bool_]) -> tuple[csr_matrix, tuple[BlockModel, ...]]:
        """Return the vectors of all texts, (texts, terms), under the vocabulary and weights of the ``chosen`` ones."""
        matrices, models, first_row = [], [], 0
        for block, terms, counts in self._counts:
            kept = np.flatnonzero(counts[chosen].getnnz(axis=0) >= block.min_df)
            if not len(kept):
                continue
            tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[chosen][:, kept])
            matrices.append(block.weight * tfidf.transform(counts[:, kept]))
            models.append(BlockModel(block, [terms[at] for at in kept], tfidf.idf_.astype(np.float32), first_row))
            first_row += len(kept)
        if not matrices:
            return csr_matrix((len(chosen), 0)), ()
        return hstack(matrices, format="csr"), tuple(models)


def _count(block: Block, texts: Sequence[str]) -> tuple[list[str], csr_matrix]:
    if not any(block.analyse(text) for text in texts):
        return [], csr_matrix((len(texts), 0))
    vectoriser = CountVectorizer(analyzer=block.analyse, dtype=np.float64)
    counts = vectoriser.fit_transform(texts)
    return vectoriser.get_feature_names_out().tolist(), counts


def fit_field(
    name: str, vocabulary: Sequence[str], labels: NDArray[np.str_], texts: TrainingTexts, step: Callable[[], None]
) -> Fitted:
    """Fit one field on all rows, its scale on scores of rows by models that did not see them (cross-fitting).

    ``labels`` has one entry a text, out of ``vocabulary``; ``step`` is called after each fold and at the end. A field
    with a single label in all its rows, or texts without a single feature, get ``constant``.
    """
    classes = np.unique(labels)
    if len(classes) < 2 or not texts.blocks:
        step()
        return constant(name, vocabulary, labels, texts)
    scale = calibrated_scale(*_held_out(labels, classes, texts, step))
    coefficients, intercepts = _fit(texts.matrix, labels, texts.weights)
    step()
    return Fitted(FieldModel(name, tuple(classes.tolist()), scale), coefficients, intercepts)


def constant(name: str, vocabulary: Sequence[str], labels: NDArray[np.str_], texts: TrainingTexts) -> Fitted:
    """Answer with the labels' frequencies, one row added to each label of the task (Laplace), whatever the text.

    A label that no row has may well exist: one that was never seen keeps a probability, and none reaches 1.
    """
    counts = np.array([texts.weights[labels == label].sum() + 1.0 for label in vocabulary])
    coefficients = np.zeros((texts.matrix.shape[1], len(vocabulary)), np.float32)
    intercepts = np.log(counts / counts.sum()).astype(np.float32)
    return Fitted(FieldModel(name, tuple(vocabulary), 1.0), coefficients, intercepts)


def _held_out(
    labels: NDArray[np.str_], classes: NDArray[np.str_], texts: TrainingTexts, step: Callable[[], None]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Score each fold with a model of the others: (rows, classes) scores, class numbers and weights.

    Rows of a label that the other folds do not have are left out: no scale could make them likely.
    """
    scores = np.full((len(labels), len(classes)), -np.inf)
    is_scored = np.zeros(len(labels), dtype=bool)
    for fold in np.unique(texts.folds):
        others = texts.folds != fold
        known = np.unique(labels[others])
        if len(known) >= 2:
            matrix, _ = texts.weigh(others)
            coefficients, intercepts = _fit(matrix[others], labels[others], texts.weights[others])
            rows = np.flatnonzero(~others & np.isin(labels, known))
            scores[np.ix_(rows, np.searchsorted(classes, known))] = matrix[rows] @ coefficients + intercepts
            is_scored[rows] = True
        step()
    return scores[is_scored], np.searchsorted(classes, labels[is_scored]), texts.weights[is_scored]


def _fit(matrix: csr_matrix, labels: NDArray[np.str_], weights: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """Return (terms, labels) coefficients and (labels,) intercepts; two labels share a plane, half of it a side."""
    model = LinearSVC(C=REGULARISATION, random_state=0, max_iter=5000).fit(matrix, labels, sample_weight=weights)
    coefficients, intercepts = model.coef_.T, model.intercept_
    if len(model.classes_) == 2:
        coefficients = np.hstack([-coefficients, coefficients]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    return coefficients.astype(np.float32), intercepts.astype(np.float32)


def calibrated_scale(scores: NDArray[np.float64], targets: NDArray[np.intp], weights: NDArray[np.float64]) -> float:
    """Return the factor on held-out ``scores`` (rows, labels) with the least log loss: temperature scaling.

    Targets are smoothed as in Platt (1999), by 1 / (rows + 2), so that a few rows that all come out right do not make
    every answer certain. Without rows the scale is 1. Source: Guo et al., "On Calibration of Modern Neural Networks"
    (2017).
    """
    if not len(targets):
        return 1.0
    n_known = np.isfinite(scores).sum(axis=1)
    slack = 1.0 / (len(targets) + 2)
    rows = np.arange(len(targets))

    def loss(log_scale: float) -> float:
        scaled = np.exp(log_scale) * scores
        scaled -= scaled.max(axis=1, keepdims=True)
        log_p = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        right = log_p[rows, targets]
        wrong = np.where(np.isfinite(log_p), log_p, 0.0).sum(axis=1) - right
        return float(-(weights * ((1 - slack) * right + slack * wrong / (n_known - 1))).sum())

    found = minimize_scalar(loss, bounds=(log(SCALES[0]), log(SCALES[1])), method="bounded")
    return round(exp(found.x), 6)
