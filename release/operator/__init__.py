"""What operators do by hand: each change, its audit row and its ``admin`` event in one transaction.

The admin, the API and the commands check who may, then call these. All raise ``Refused`` for what is not allowed in the
current state, and write nothing for a change that changes nothing.
"""

from release.operator.intent import Change, Intent
from release.operator.pins import pin_task, unpin_task
from release.operator.plans import plan_promotion, plan_retire, plan_rollback
from release.operator.switches import set_flag
from release.operator.versions import promote, retire, rollback

__all__ = [
    "Change",
    "Intent",
    "pin_task",
    "plan_promotion",
    "plan_retire",
    "plan_rollback",
    "promote",
    "retire",
    "rollback",
    "set_flag",
    "unpin_task",
]
