"""The numbers that a night runs by. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NightSettings:
    """Night School's settings."""

    min_new_examples: int = 50
    target_precision: float = 0.97
    threshold_floor: float = 0.5
    min_task_golden: int = 20
    is_per_task: bool = True
    stores_examples: bool = True
    data_dir: str = "var/data"
    train_cmd: str = ""
    sync_cmd: str = ""
    adapter_root: str = "/data/adapters"
    train_timeout_s: int = 6 * 3600
    hold_s: int = 120
    trainers: Mapping[str, str] = field(default_factory=dict)
    """Trainer key to dotted path; adding a trainer is one entry here."""
