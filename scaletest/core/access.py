"""How to reach an API server, and as whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ApiAccess", "Credential"]


@dataclass(frozen=True, slots=True)
class Credential:
    """A client certificate or a bearer token. Files are 0600 and lie in the cluster's own directory.

    ``identity`` is the word used in profiles and reports (``system:masters``, ``serviceAccount:telemetry/agent``).
    """

    identity: str
    cert_file: Path | None = None
    key_file: Path | None = None
    token_file: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value: paths only, never a secret."""
        return {
            "identity": self.identity,
            "cert_file": str(self.cert_file) if self.cert_file else None,
            "key_file": str(self.key_file) if self.key_file else None,
            "token_file": str(self.token_file) if self.token_file else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Credential:
        """Read what ``to_json`` gave."""

        def path(key: str) -> Path | None:
            return Path(data[key]) if data.get(key) else None

        return cls(str(data["identity"]), path("cert_file"), path("key_file"), path("token_file"))


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """The API servers of a cluster (``https://127.0.0.1:PORT``), its CA and one credential."""

    servers: tuple[str, ...]
    ca_file: Path
    credential: Credential

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value: paths only, never a secret."""
        return {
            "servers": list(self.servers),
            "ca_file": str(self.ca_file),
            "credential": self.credential.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ApiAccess:
        """Read what ``to_json`` gave."""
        return cls(tuple(data["servers"]), Path(data["ca_file"]), Credential.from_json(data["credential"]))
