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

    tokens_prompted: int  # in the prompts of admitted requests, with those from the prefix cache
    tokens_generated: int
    tokens_cached: int  # tokens of tokens_prompted that the prefix cache supplied
    slots_admitted: int  # slots that requests got; one more after each preemption
    slots_preempted: int  # slots that requests lost to others
    requests_finished: int  # ended by an end token, a stop string or a limit on their length
    requests_cancelled: int  # ended by their client or their deadline
    requests_failed: int  # ended by a fault of the engine
    requests_rejected: int  # refused before they got a slot
    requests_too_slow: int  # ended because their client did not take its tokens
    p50_ttft_ms: float  # from a request's arrival to its first token
    p99_ttft_ms: float
    p50_decode_ms: float  # from one token to the next
    p99_decode_ms: float
    p50_queue_ms: float  # from a request's arrival to its first slot
    p99_queue_ms: float
    kv_pages_now: int
    kv_pages_peak: int
    slots_now: int
    waiting_now: int  # requests without a slot
    prefix_hit_rate: float  # cached tokens / prompt tokens, over about the last 64 requests
    service: float  # tokens served / weight, by which the scheduler shares fairly

    def as_dict(self) -> dict[str, int | float]:
        """A flat dict of numbers in the order of the fields: a row of a table."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return table("Ledger", self.as_dict())
