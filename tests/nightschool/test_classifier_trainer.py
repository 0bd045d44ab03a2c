"""Training the CPU classifier from stored answers."""

import random
from pathlib import Path

import numpy as np
import pytest

from gateway.settings import GatewaySettings
from gateway.students.linear.artefact import read
from gateway.students.linear.model import TaskModel, softmax
from ledger.taskspec import TaskSpec, parse_spec
from nightschool.settings import NightSettings
from nightschool.trainers.base import Row, Trained, TrainingFailed
from nightschool.trainers.classifier import MAX_WEIGHT, ClassifierTrainer
from nightschool.trainers.linear_fit import SCALES, calibrated_scale

COLOUR = parse_spec("colour", {"fields": {"colour": {"type": "label", "values": ["red", "green", "blue"]}}})
SIZE = parse_spec(
    "size",
    {"fields": {"size": {"type": "label", "values": ["S", "L"]}, "fits": {"type": "label", "values": ["yes", "no"]}}},
)
NOTE = parse_spec("note", {"fields": {"colour": {"type": "label", "values": ["red"]}, "why": {"type": "text"}}})
FREE = TaskSpec("free")
THINGS = {"red": "rose tomato brick", "green": "leaf grass frog", "blue": "sky sea jeans"}


def row(text: str, completion: str, task: str = "colour", seen: int = 1, number: int = 0) -> Row:
    key = f"{hash_of(task, text, number)}"
    return Row(key, task, [{"role": "user", "content": text}], completion, None, seen, "teacher", "licence")


def hash_of(task: str, text: str, number: int) -> str:
    return f"{task}/{text}/{number}"


def colour_rows(n: int = 60, noise: float = 0.0) -> list[Row]:
    rng = random.Random(11)
    rows = []
    for number in range(n):
        colour = rng.choice(sorted(THINGS))
        text = f"What is a {rng.choice(THINGS[colour].split())} like in picture {number}"
        answer = rng.choice(sorted(THINGS)) if rng.random() < noise else colour
        rows.append(row(text, f'{{"colour": "{answer}"}}'))
    return rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def train(root: Path, rows: list[Row], *specs: TaskSpec, adapter: str = "v1") -> Trained:
    trainer = ClassifierTrainer(NightSettings(), GatewaySettings(artefact_dir=str(root)))
    return trainer.train(adapter, "linear", rows, {spec.name: spec for spec in specs}, lambda *_: None)


def trained_model(root: Path, rows: list[Row], spec: TaskSpec = COLOUR) -> TaskModel:
    return read(root, train(root, rows, spec).artefact).tasks[spec.name]


@pytest.mark.req("INV-2")
def test_it_learns_the_teachers_answers(root: Path) -> None:
    model = trained_model(root, colour_rows())
    assert model.fields[0].labels == ("blue", "green", "red")
    assert model.spec_hash == COLOUR.spec_hash
    for place, text in enumerate(("a sky like", "a frog like", "a brick like")):
        assert model.probabilities(text)[0][place] > 0.8


@pytest.mark.req("INV-14")
def test_the_same_rows_in_any_order_give_the_same_artefact(root: Path) -> None:
    rows = colour_rows()
    first = train(root, rows, COLOUR)
    shuffled = rows[:]
    random.Random(2).shuffle(shuffled)
    assert train(root, shuffled, COLOUR) == first
    assert train(root, rows[1:], COLOUR).artefact["sha256"] != first.artefact["sha256"]


@pytest.mark.req("INV-2")
def test_one_version_holds_every_label_task_and_no_other(root: Path) -> None:
    sizes = [row(f"shirt {n} {'tiny' if n % 2 else 'huge'}", SIZES[n % 2], task="size") for n in range(30)]
    others = [row("x", '{"colour": "red", "why": "y"}', task="note"), row("x", "y", task="free")]
    trained = train(root, [*colour_rows(), *sizes, *others], COLOUR, SIZE, NOTE, FREE)
    tasks = read(root, trained.artefact).tasks
    assert sorted(tasks) == ["colour", "size"]
    assert [field.name for field in tasks["size"].fields] == ["size", "fits"]
    assert trained.notes == "colour: 60 rows; size: 30 rows"


SIZES = ('{"size": "L", "fits": "no"}', '{"size": "S", "fits": "yes"}')


@pytest.mark.req("INV-16")
def test_rows_with_invalid_answers_are_left_out_and_counted(root: Path) -> None:
    bad = [row("bad", answer, number=n) for n, answer in enumerate(["", "red", '{"colour": "pink"}', "{}", "[]"])]
    trained = train(root, [*colour_rows(), *bad], COLOUR)
    assert trained.notes == "colour: 60 rows (5 invalid left out)"
    assert trained.artefact == train(root, colour_rows(), COLOUR).artefact


@pytest.mark.req("INV-16")
@pytest.mark.parametrize(
    ("rows", "specs"),
    [
        ([], [COLOUR]),
        (colour_rows(), []),
        (colour_rows(), [SIZE]),
        ([row("x", "not an answer")], [COLOUR]),
        ([row("x", "y", task="free"), row("x", '{"colour":"red","why":"z"}', task="note")], [FREE, NOTE]),
    ],
    ids=["no rows", "no tasks", "rows of another task", "invalid answers only", "no label task"],
)
def test_without_a_label_task_with_valid_rows_training_fails_with_the_reason(
    root: Path, rows: list[Row], specs: list[TaskSpec]
) -> None:
    with pytest.raises(TrainingFailed, match=r"^no task whose every field is a label has a valid training row$"):
        train(root, rows, *specs)
    assert list(root.iterdir()) == []


@pytest.mark.req("INV-6")
def test_a_single_label_is_answered_with_its_frequency_never_with_certainty(root: Path) -> None:
    model = trained_model(root, [row(f"a rose {n}", '{"colour": "red"}') for n in range(7)])
    assert model.fields[0].labels == ("red", "green", "blue")
    assert model.probabilities("a rose")[0] == pytest.approx([0.8, 0.1, 0.1])
    assert model.probabilities("anything else") == model.probabilities("a rose")


@pytest.mark.req("INV-6")
def test_one_row_is_enough_to_train_and_not_enough_to_be_sure(root: Path) -> None:
    model = trained_model(root, [row("a rose", '{"colour": "red"}')])
    assert model.probabilities("a rose")[0] == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.req("INV-6")
def test_texts_without_a_feature_fall_back_to_the_labels_frequencies(root: Path) -> None:
    rows = [row("", f'{{"colour": "{colour}"}}', number=n) for n, colour in enumerate(["red", "red", "blue"])]
    model = trained_model(root, rows)
    assert model.probabilities("")[0] == pytest.approx([3 / 6, 1 / 6, 2 / 6])


@pytest.mark.req("INV-6")
def test_a_label_with_a_single_row_does_not_stop_training(root: Path) -> None:
    rows = [one for one in colour_rows() if "green" not in one.completion]
    model = trained_model(root, [*rows, row("a leaf like", '{"colour": "green"}')])
    assert model.fields[0].labels == ("blue", "green", "red")
    assert sum(model.probabilities("a leaf like")[0]) == pytest.approx(1.0)


@pytest.mark.req("INV-6")
def test_long_and_odd_texts_train(root: Path) -> None:
    rows = [*colour_rows(), row("sky " * 50_000, '{"colour": "blue"}'), row("\ud800 \x00", '{"colour": "red"}')]
    assert trained_model(root, rows).fields[0].labels == ("blue", "green", "red")


@pytest.mark.req("INV-12")
def test_a_term_of_one_text_alone_is_not_in_the_vocabulary(root: Path) -> None:
    model = trained_model(root, [*colour_rows(), row("my name is Rumpelstilzchen", '{"colour": "red"}')])
    vocabulary = {term for block in model.blocks for term in block.terms}
    assert "picture" in vocabulary
    assert not {term for term in vocabulary if "rumpel" in term or "tilz" in term}


@pytest.mark.req("INV-6")
def test_how_often_a_row_was_seen_counts_up_to_a_bound(root: Path) -> None:
    def blue_share(seen: int) -> float:
        rows = [row("", '{"colour": "blue"}', seen=seen), row("", '{"colour": "red"}', number=1)]
        return trained_model(root, rows).probabilities("")[0][2]

    assert blue_share(1) == pytest.approx(2 / 5)
    assert blue_share(2) == pytest.approx(3 / 6)
    assert blue_share(1_000) == pytest.approx((MAX_WEIGHT + 1) / (MAX_WEIGHT + 4))


@pytest.mark.req("INV-6")
def test_noisy_answers_lower_the_reported_probability_to_how_often_it_is_right(root: Path) -> None:
    texts = [f"What is a {thing} like in picture {n}" for thing in " ".join(THINGS.values()).split() for n in (3, 333)]
    for noise, share_right in ((0.0, 1.0), (0.45, 0.7)):
        model = trained_model(root, colour_rows(300, noise))
        likeliest = [max(model.probabilities(text)[0]) for text in texts]
        assert np.mean(likeliest) == pytest.approx(share_right, abs=0.1)


@pytest.mark.req("INV-6")
def test_the_scale_is_the_one_with_the_least_log_loss() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(20_000, 3))
    targets = np.array([rng.choice(3, p=softmax(row.tolist(), 2.5)) for row in scores])
    assert calibrated_scale(scores, targets, np.ones(20_000)) == pytest.approx(2.5, rel=0.05)


@pytest.mark.req("INV-6")
def test_a_few_rows_that_are_all_right_do_not_make_every_answer_certain() -> None:
    scores, targets = np.array([[1.0, -1.0]] * 8), np.zeros(8, dtype=np.intp)
    scale = calibrated_scale(scores, targets, np.ones(8))
    assert softmax([1.0, -1.0], scale)[0] == pytest.approx(0.9, abs=1e-3)  # 9 in 10: Platt's target for 8 of 8
    assert calibrated_scale(scores, np.ones(8, dtype=np.intp), np.ones(8)) == pytest.approx(SCALES[0], rel=1e-3)
    assert calibrated_scale(np.zeros((0, 2)), np.zeros(0, np.intp), np.zeros(0)) == 1.0


@pytest.mark.req("INV-29")
def test_progress_counts_every_fit_and_may_stop_the_training(root: Path) -> None:
    class TakenOver(Exception):
        pass

    steps: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, detail: str) -> None:
        steps.append((done, total, detail))
        if len(steps) > 10:
            raise TakenOver

    trainer = ClassifierTrainer(NightSettings(), GatewaySettings(artefact_dir=str(root)))
    trainer.train("v1", "linear", colour_rows(), {"colour": COLOUR}, progress)
    assert steps == [(done, 6, "colour.colour") for done in range(1, 7)]
    with pytest.raises(TakenOver):
        trainer.train("v2", "linear", colour_rows(), {"colour": COLOUR}, progress)
    assert not (root / "v2").exists()
