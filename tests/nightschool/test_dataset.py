"""Reading examples under the rules, and reading a version's committed rows back."""

from datetime import timedelta

import pytest

from ledger.models import Example, Student, Task, Version
from ledger.versions import create_candidate
from ledger.vocabulary import Split
from nightschool.dataset import (
    DatasetChanged,
    committed_rows,
    distillable_under,
    examples_of,
    leaves_of,
    n_new_examples,
    read_dataset,
)
from nightschool.rules import Selection
from receipts.licences import APACHE_2
from tests.conftest import TEACHER_MODEL, scripted_settings
from tests.nightschool.conftest import SPEC, World


def commit(world: World, selection: Selection):
    version = create_candidate(world.student.pk, at=world.clock.now())
    for leaf in leaves_of(selection):
        leaf.version = version
        leaf.save()
    return version


@pytest.mark.req("FR-4.1", "INV-3")
def test_rows_come_in_the_order_they_were_first_stored_with_all_that_training_needs(world: World) -> None:
    stored = world.store(3, seen=2, redactions=1, params={"response_format": {"type": "json_object"}})
    golden = world.store(2, "golden")
    dataset = read_dataset(world.student, world.context.gateway)
    assert [row.hash for row in dataset.selection.train] == [example.hash for example in stored]
    assert [row.hash for row in dataset.selection.golden] == [example.hash for example in golden]
    first = dataset.selection.train[0]
    assert (first.task, first.messages, first.completion) == ("triage", stored[0].messages, '{"label":"red"}')
    assert (first.params, first.seen, first.redactions) == ({"response_format": {"type": "json_object"}}, 2, 1)
    assert (first.teacher_model, first.licence) == (TEACHER_MODEL, "OpenMDW-1.1")
    assert {name: spec.is_pinned for name, spec in dataset.specs.items()} == {"triage": False}


@pytest.mark.req("INV-10", "FR-2.9")
@pytest.mark.parametrize("how", ["spec", "operator"])
def test_pinning_a_task_leaves_its_rows_out_and_unpinning_brings_them_back(world: World, how: str) -> None:
    world.store(4)
    world.store(2, "golden")
    if how == "spec":
        world.respec("triage", {**SPEC, "pinned": True})
    else:
        Task.objects.filter(name="triage").update(is_runtime_pinned=True)
    pinned = read_dataset(world.student, world.context.gateway).selection
    assert (pinned.train, pinned.golden, pinned.excluded) == ([], [], {"pinned": 6})
    world.respec("triage", SPEC)
    Task.objects.update(is_runtime_pinned=False)
    back = read_dataset(world.student, world.context.gateway).selection
    assert (len(back.train), len(back.golden), back.excluded) == (4, 2, {})


@pytest.mark.req("INV-16", "FR-4.1")
def test_a_shrunk_vocabulary_keeps_rows_out_until_it_is_loosened(world: World) -> None:
    world.store(3)
    world.store(2, completion='{"label":"blue"}')
    only_red = {"fields": {"label": {"type": "label", "values": ["red"]}}}
    world.respec("triage", only_red)
    assert len(read_dataset(world.student, world.context.gateway).selection.train) == 3
    world.respec("triage", SPEC)
    assert len(read_dataset(world.student, world.context.gateway).selection.train) == 5


@pytest.mark.req("INV-3", "FR-13.4")
def test_a_purged_example_has_no_row_and_still_counts_occurrences(world: World) -> None:
    bare, variant = world.store(2, "golden", prompt_hash="f" * 64)
    Example.objects.filter(pk=variant.pk).update(
        seen=2, messages=None, completion=None, params=None, purged_at=world.clock.now()
    )
    selection = read_dataset(world.student, world.context.gateway).selection
    assert ([row.hash for row in selection.train], selection.golden) == ([bare.hash], [])
    assert selection.excluded == {"purged": 1}


@pytest.mark.req("FR-4.1")
def test_a_student_trains_on_its_own_tasks_and_the_default_one_on_unregistered_ones(world: World) -> None:
    other = Student.objects.create(
        name="other", base_model="b", backend="scripted", trainer="recording", created_at=world.clock.now()
    )
    world.add_task("theirs", SPEC, other)
    world.store(1)
    world.store(1, task="theirs")
    world.store(1, task="nobodys")

    def tasks_of(student: Student, **settings: object) -> list[str]:
        found = examples_of(student, scripted_settings(**settings)).order_by("pk")
        return list(found.values_list("task", flat=True))

    assert tasks_of(world.student) == ["triage", "nobodys"]
    assert tasks_of(world.student, unknown_tasks="teacher") == ["triage"]
    assert tasks_of(other) == ["theirs"]
    assert [row.task for row in read_dataset(world.student, scripted_settings()).selection.train] == [
        "triage",
        "nobodys",
    ]


@pytest.mark.req("INV-1", "FR-4.1")
def test_closed_and_unknown_teachers_never_train() -> None:
    is_distillable = distillable_under(scripted_settings(declared_licences={"acme/former": APACHE_2}))
    assert is_distillable(TEACHER_MODEL, "OpenMDW-1.1")
    assert is_distillable("Acme/Former", "Apache-2.0")
    assert is_distillable("human", "")
    assert not is_distillable(TEACHER_MODEL, "")
    assert not is_distillable("acme/unknown", "Apache-2.0")
    assert not is_distillable("openai/gpt-4o", "MIT")
    assert not is_distillable("", "MIT")


@pytest.mark.req("INV-14", "FR-4.1")
def test_committed_rows_are_read_back_as_they_were_selected(world: World) -> None:
    world.store(3)
    world.store(2, "golden")
    selection = read_dataset(world.student, world.context.gateway).selection
    version = commit(world, selection)
    world.store(5)
    assert committed_rows(version, Split.TRAIN) == selection.train
    assert committed_rows(version, Split.GOLDEN) == selection.golden


@pytest.mark.req("INV-24", "INV-14")
def test_a_purge_stops_training_and_only_thins_the_golden_rows(world: World) -> None:
    train = world.store(3)
    golden = world.store(2, "golden")
    version = commit(world, read_dataset(world.student, world.context.gateway).selection)
    gone = {"messages": None, "completion": None, "params": None, "purged_at": world.clock.now()}
    Example.objects.filter(pk__in=[train[0].pk, golden[0].pk]).update(**gone)
    with pytest.raises(DatasetChanged, match=r"^1 training rows were erased or purged while the night ran$"):
        committed_rows(version, Split.TRAIN)
    assert [row.hash for row in committed_rows(version, Split.GOLDEN)] == [golden[1].hash]


@pytest.mark.req("INV-14")
@pytest.mark.parametrize("split", list(Split))
def test_a_changed_label_is_noticed(world: World, split: Split) -> None:
    changed = world.store(2, split)[0]
    version = commit(world, read_dataset(world.student, world.context.gateway).selection)
    Example.objects.filter(pk=changed.pk).update(completion='{"label":"blue"}')
    with pytest.raises(DatasetChanged, match=rf"^1 {split} rows changed while the night ran$"):
        committed_rows(version, split)


@pytest.mark.req("FR-4.4", "FR-13.4")
def test_new_examples_are_those_that_no_earlier_version_had(world: World) -> None:
    gateway = world.context.gateway
    assert n_new_examples(world.student, 60, gateway) == 60
    for n_train in (50, 40):
        judged(world, n_train)
    create_candidate(world.student.pk, at=world.clock.now())
    assert n_new_examples(world.student, 60, gateway) == 10
    never_judged = create_candidate(world.student.pk, at=world.clock.now())
    Version.objects.filter(pk=never_judged.pk).update(train_examples=60)
    assert n_new_examples(world.student, 60, gateway) == 10


def judged(world: World, n_train: int) -> None:
    """Make a version of ``n_train`` rows that the gate has judged."""
    version = create_candidate(world.student.pk, at=world.clock.now())
    Version.objects.filter(pk=version.pk).update(train_examples=n_train)
    world.put(version, "rejected")


@pytest.mark.req("FR-4.4", "FR-13.4")
def test_a_purge_neither_stops_training_nor_starts_it(world: World) -> None:
    gateway = world.context.gateway
    before = world.store(6)
    world.clock.advance(timedelta(hours=1))
    judged(world, 20)
    world.clock.advance(timedelta(hours=1))
    after = world.store(1)
    purged = [*before[:4], *after]
    world.clock.advance(timedelta(hours=1))
    Example.objects.filter(pk__in=[row.pk for row in purged]).update(purged_at=world.clock.now(), was_train=True)
    # Of the version's 20 rows, 16 are left; the fifth purged row was stored after it.
    assert n_new_examples(world.student, 26, gateway) == 10


@pytest.mark.req("INV-29")
def test_candidates_are_numbered_within_their_student(world: World) -> None:
    other = Student.objects.create(
        name="other", base_model="other-base", backend="scripted", trainer="recording", created_at=world.clock.now()
    )
    made = [create_candidate(pk, at=world.clock.now()) for pk in (world.student.pk, world.student.pk, other.pk)]
    assert [(version.number, version.adapter, version.base_model) for version in made] == [
        (1, "default-v1", "base-model"),
        (2, "default-v2", "base-model"),
        (1, "other-v1", "other-base"),
    ]
    assert {(version.state, version.traffic_pct, version.stage) for version in made} == {("candidate", 0, 0)}
