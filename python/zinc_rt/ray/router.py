"""PrefixRouter: which replica a request goes to, as a class that Ray Serve makes where a deployment's handle is."""

from __future__ import annotations

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from .call import Call
from .replicas import ReplicaViews


class PrefixRouter(RequestRouter):
    """Sends equal prefixes to one replica while that is sooner: the rule of docs/fleets.md. Requests are a Call."""

    def call_of(self, pending_request: PendingRequest | None) -> Call | None:
        """What the ingress sends; other methods of a handle may be called with anything."""
        first = pending_request.args[0] if pending_request is not None and pending_request.args else None
        return first if isinstance(first, Call) else None

    def initialize_state(self) -> None:
        self.views = ReplicaViews()

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        call = self.call_of(pending_request)
        if pending_request is not None:
            # If all replicas are full, Serve retries after a delay instead of at once.
            pending_request.routing_context.should_backoff = True
        if call is None:
            return [candidate_replicas]
        by_id = {replica.replica_id: replica for replica in candidate_replicas}
        self.views.update(self.curr_replicas)
        # A replica may have ended since Serve listed the candidates.
        stats = {each: replica.routing_stats for each, replica in by_id.items() if each in self.views.views}
        ranked = self.views.ranked(stats, call.prompt)
        if ranked:
            # Recorded now, because Serve chooses replicas for other requests before this one arrives at its replica.
            self._send(ranked[0], stats[ranked[0]], pending_request, call)
        return [[by_id[each]] for each in ranked]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result) -> None:
        call, replica = self.call_of(pending_request), self.curr_replicas.get(replica_id)
        if call is not None and replica is not None:
            self._send(replica_id, replica.routing_stats, pending_request, call)

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        self.views.completed(replica_id, internal_request_id)

    def _send(self, replica_id: ReplicaID, stats: dict, pending_request: PendingRequest, call: Call) -> None:
        self.views.send(replica_id, pending_request.metadata.internal_request_id, stats, call.prompt)
