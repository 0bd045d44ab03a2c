"""A trainer that waits until a file appears, so that a test can kill its worker while it trains."""

import os
import time
from pathlib import Path

from nightschool.trainers.classifier import ClassifierTrainer


class WaitingTrainer(ClassifierTrainer):
    """Trains the classifier once the file named by ``TEST_TRAINING_GATE`` exists."""

    def train(self, adapter, base_model, rows, tasks, progress):
        gate = Path(os.environ["TEST_TRAINING_GATE"])
        while not gate.exists():
            progress(0, 1, "waiting")
            time.sleep(0.1)
        return super().train(adapter, base_model, rows, tasks, progress)
