"""The records of the ledger, one module per subject."""

from ledger.models.examples import Example, ExampleClient, NoTrain, Tombstone
from ledger.models.nights import ComputeInterval, Night, VersionLeaf
from ledger.models.operations import AdminAction, ApiKey, Event, RuntimeFlag, StateEpoch
from ledger.models.requests import Check, Failure, Request
from ledger.models.rollups import HourlyRollup, StageTally
from ledger.models.settlements import Erasure, Feedback, Receipt, Spend
from ledger.models.students import Student, Task, Version

__all__ = [
    "AdminAction",
    "ApiKey",
    "Check",
    "ComputeInterval",
    "Erasure",
    "Event",
    "Example",
    "ExampleClient",
    "Failure",
    "Feedback",
    "HourlyRollup",
    "Night",
    "NoTrain",
    "Receipt",
    "Request",
    "RuntimeFlag",
    "Spend",
    "StageTally",
    "StateEpoch",
    "Student",
    "Task",
    "Tombstone",
    "Version",
    "VersionLeaf",
]
