"""TenantLedger: what a tenant has used, as Tenant.ledger() gives it.

>>> pandas.DataFrame([tenant.ledger().as_dict() for tenant in tenants])
"""

from dataclasses import asdict, dataclass

from ._html import table


# The fields are those of zinc_rt/ledger.h. The extension passes all of them by name, so a field that one side lacks is
# an error in every call.
@dataclass(frozen=True)
class TenantLedger:
    """What a tenant has used, and how long it waited.

    Counters and latencies run from the tenant's first request. Quantiles of latencies are within 1.6 % of a latency
    that was measured, and 0 before the first.
    """

    tokens_prompted: int  # of admitted requests, those from the prefix cache too
    tokens_generated: int
    tokens_cached: int  # of tokens_prompted, those that came from the prefix cache
    slots_admitted: int  # slots that were given, again after a preemption too
    slots_preempted: int  # slots that were taken away
    requests_finished: int  # by an end token, a stop string or a length
    requests_cancelled: int  # by the client, or by their deadline
    requests_failed: int  # by a fault of the engine
    requests_rejected: int  # refused before they got a slot
    requests_too_slow: int  # ended because the client did not take its tokens
    p50_ttft_ms: float  # from the request to its first token
    p99_ttft_ms: float
    p50_decode_ms: float  # from one token to the next
    p99_decode_ms: float
    p50_queue_ms: float  # from the request to its first slot
    p99_queue_ms: float
    kv_pages_now: int
    kv_pages_peak: int
    slots_now: int
    waiting_now: int  # requests without a slot
    prefix_hit_rate: float  # cached tokens by prompt tokens over about the last 64 requests
    service: float  # what the scheduler has charged for fair sharing

    def as_dict(self) -> dict[str, int | float]:
        """A flat dict of numbers in the order of the fields: a row of a table."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return table("Ledger", self.as_dict())
