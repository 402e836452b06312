"""What a client does after a failure, as client-go does it.

Two mechanisms stand in a row. A *retry* follows the server's own word: a 429 or 5xx with
``Retry-After`` is asked again after that many seconds, up to ten times (client-go ``rest/with_retry.go``,
``maxRetries``). A connection that is reset or closed before the answer began counts as ``Retry-After: 1``
there, and so here. When the retries are used up, or the failure is another one, the *back-off* of a reflector
applies: 0.8 s doubling to 30 s, each wait stretched by up to its own length, back to the start after
two minutes without a failure (client-go ``tools/cache/reflector.go``).

Clock and randomness come in as arguments.
"""

from __future__ import annotations

from scaletest.profile.schema import BackoffSpec

__all__ = ["MAX_RETRIES", "RESET_AFTER_S", "Backoff", "Retries", "retry_wait_s"]

MAX_RETRIES = 10
"""Retries of one request: client-go's default."""

RESET_AFTER_S = 120.0
"""Time without a failure after which the back-off starts again from its first wait: a reflector's."""

_ARTIFICIAL_RETRY_S = 1.0


class Backoff:
    """The waits between failures of one step of one agent; grows by failure, forgets by time."""

    __slots__ = ("_last_failure_s", "_spec", "_wait_s")

    def __init__(self, spec: BackoffSpec) -> None:
        self._spec = spec
        self._wait_s = spec.first_s
        self._last_failure_s: float | None = None

    def next_wait_s(self, now_s: float, draw: float) -> float:
        """Return the seconds to wait after a failure at ``now_s``; ``draw`` is uniform in [0, 1)."""
        spec = self._spec
        if self._last_failure_s is not None and now_s - self._last_failure_s > RESET_AFTER_S:
            self._wait_s = spec.first_s
        self._last_failure_s = now_s
        wait_s = self._wait_s
        self._wait_s = min(wait_s * spec.factor, spec.most_s)
        return wait_s * (1.0 + spec.jitter * draw)


class Retries:
    """The waits after the failures of one step, or of one watch: retries while the server's word holds, then the back-off."""

    __slots__ = ("_attempts", "_backoff", "_spec")

    def __init__(self, spec: BackoffSpec) -> None:
        self._spec = spec
        self._backoff = Backoff(spec)
        self._attempts = 0

    @property
    def is_retrying(self) -> bool:
        """Whether the same request is to be sent again; if not, what it belonged to starts over."""
        return self._attempts > 0

    def succeeded(self) -> None:
        """Forget the attempts; the back-off forgets by time."""
        self._attempts = 0

    def wait_s(
        self,
        *,
        status: int | None,
        retry_after_s: int | None,
        answer_began: bool,
        outcome: str,
        now_s: float,
        draw: float,
    ) -> float:
        """Return the seconds to wait after a failed attempt; the arguments are those of ``retry_wait_s`` and ``Backoff``."""
        self._attempts += 1
        wait_s = retry_wait_s(
            self._spec,
            status=status,
            retry_after_s=retry_after_s,
            answer_began=answer_began,
            outcome=outcome,
            attempt=self._attempts,
        )
        return self.back_off_s(now_s, draw) if wait_s is None else wait_s

    def longest_s(self, draw: float) -> float:
        """Give up retrying, and return the longest wait of the back-off."""
        self._attempts = 0
        return self._spec.most_s * (1.0 + self._spec.jitter * draw)

    def back_off_s(self, now_s: float, draw: float) -> float:
        """Give up retrying, and return the wait of the back-off."""
        self._attempts = 0
        return self._backoff.next_wait_s(now_s, draw)


def retry_wait_s(
    spec: BackoffSpec, *, status: int | None, retry_after_s: int | None, answer_began: bool, outcome: str, attempt: int
) -> float | None:
    """Return the seconds after which the same request is sent again, or None when the back-off applies.

    ``attempt`` counts the attempts made so far, the first included; ``status`` is None without an answer.
    """
    if not spec.honor_retry_after or attempt > MAX_RETRIES:
        return None
    if status is None:
        lost = outcome in {"reset", "cut_short"} and not answer_began
        return _ARTIFICIAL_RETRY_S if lost else None
    if retry_after_s is None or not (status == 429 or 500 <= status < 600):
        return None
    return float(retry_after_s)
