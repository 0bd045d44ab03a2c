"""What an unsettled check keeps of its request's text, encrypted. Pure.

The key is derived with HKDF-SHA256 (RFC 5869) from the deployment's data key; Fernet authenticates and encrypts.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.cascade.check import CheckInput
from gateway.cascade.types import CascadeRequest, Params, Role, StudentRoute, VersionRoute
from ledger.taskspec import parse_spec


def fernet(data_key: str) -> Fernet:
    """Return the cipher of unsettled checks and of the spool."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"ratchet unsettled checks").derive(data_key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


@dataclass(frozen=True, slots=True)
class CheckPayload:
    """The text and rules a check is settled by, as they were when the request was served."""

    messages: list[dict[str, Any]]
    params: dict[str, Any]
    n: int
    task: str
    spec: dict[str, Any]
    served_text: str
    served_by: str
    reference: str | None
    end_users: Sequence[tuple[str, str]] = ()
    """(scope, keyed hash) of each end user named: what an opt-out registered before settling is looked up by."""

    @classmethod
    def of(cls, owed: CheckInput, end_users: Sequence[tuple[str, str]] = ()) -> "CheckPayload":
        """Take from a drawn check what settling it needs."""
        request = owed.request
        return cls(
            messages=[dict(message) for message in request.messages],
            params=dict(request.params.values),
            n=request.params.n,
            task=request.task.name,
            spec=request.task.document,
            served_text=owed.served_text,
            served_by=owed.served_by,
            reference=owed.reference,
            end_users=end_users,
        )

    def seal(self, cipher: Fernet) -> bytes:
        """Serialise and encrypt."""
        return cipher.encrypt(orjson.dumps(self))

    @classmethod
    def open(cls, sealed: bytes, cipher: Fernet) -> "CheckPayload":
        """Decrypt and read; raises ``cryptography.fernet.InvalidToken`` under another key."""
        document: Mapping[str, Any] = orjson.loads(cipher.decrypt(sealed))
        end_users = [(scope, hashed) for scope, hashed in document.get("end_users", ())]
        return cls(**{**document, "end_users": end_users})

    def check_input(self, student: StudentRoute, wants_audit: bool, shadow: VersionRoute | None) -> CheckInput:
        """Return the check as the cascade runs it."""
        request = CascadeRequest(
            task=parse_spec(self.task, self.spec),
            student=student,
            messages=self.messages,
            params=Params(self.params, self.n),
        )
        return CheckInput(request, self.served_text, Role(self.served_by), wants_audit, shadow, self.reference)
