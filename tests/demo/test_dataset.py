"""Reading the demo's messages from the data files of the installed package."""

import random
from collections import Counter

import pytest

from sim.demo import dataset
from sim.demo.dataset import DatasetError, DemoMessage, read_questions, read_sms, schedule


def test_questions_are_latin_1_and_each_is_taken_once():
    data = "DESC:manner How did it ?\nHUM:ind Who is Bront\xeb ?\nDESC:manner How did it ?\n\n".encode("latin-1")
    assert read_questions(data) == [("How did it ?", "DESC"), ("Who is Brontë ?", "HUM")]


@pytest.mark.parametrize("line", ["no colon here", "HUM:ind", "HUM:ind   "])
def test_a_line_that_is_no_question_is_named(line):
    with pytest.raises(DatasetError, match="line 2"):
        read_questions(f"HUM:ind Who ?\n{line}\n".encode("latin-1"))


def test_messages_that_a_quoted_record_swallowed_are_split_out_again():
    data = b',spam,text\n0,0,"Hello ""you"""\n1,0,"He said ""no\nspam\tWIN cash\nham\tOk lar"\n2,1,Free entry\n'
    assert read_sms(data) == [
        ('Hello "you"', "ham"),
        ('He said "no', "ham"),
        ("WIN cash", "spam"),
        ("Ok lar", "ham"),
        ("Free entry", "spam"),
    ]


def test_a_row_without_a_label_is_refused():
    with pytest.raises(DatasetError, match="0/1"):
        read_sms(b",spam,text\n0,maybe,Hello\n")


def test_the_installed_files_hold_the_published_collections():
    messages = dataset.load()
    assert Counter(m.label for m in messages["sms-spam"]) == {"ham": 4827, "spam": 747}
    questions = messages["question-routing"]
    assert Counter(m.label for m in questions) == {
        "ENTY": 1245, "HUM": 1215, "DESC": 1153, "NUM": 858, "LOC": 824, "ABBR": 86,
    }  # fmt: skip
    assert len({m.text for m in questions}) == len(questions) == 5381


def test_a_missing_package_says_what_to_do(monkeypatch):
    monkeypatch.setattr(dataset, "PACKAGE", "no-such-package")
    with pytest.raises(DatasetError, match="make install"):
        dataset.locate(dataset.SMS_FILE)


def messages_of(n):
    return {task: [DemoMessage(task, f"{task} {i}", "x") for i in range(n)] for task in ("a", "b")}


def test_days_are_half_of_each_task_and_no_message_is_used_twice():
    days = schedule(messages_of(30), days=3, requests=20, rng=random.Random(1))
    assert [Counter(m.task for m in day) for day in days] == [{"a": 10, "b": 10}] * 3
    used = [m.text for day in days for m in day]
    assert len(set(used)) == len(used) == 60


def test_the_order_depends_on_the_seed_only():
    first, again, other = (schedule(messages_of(30), 3, 20, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_asking_for_more_than_the_data_sets_hold_is_refused():
    with pytest.raises(DatasetError, match="holds 29"):
        schedule(messages_of(29), days=3, requests=20, rng=random.Random(1))
