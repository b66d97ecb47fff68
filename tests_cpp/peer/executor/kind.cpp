#include "executor/kind.h"

#include "tests_cpp/peer/executor/peer_executor.h"

namespace zinc_rt {

extern const ExecutorKind kExecutor_peer;
const ExecutorKind kExecutor_peer{
    .name = "peer",
    .description = "counts on from the last token, for tests",
    .tiers =
        [] {
          return std::vector<ExecutorTier>{
              {.name = "t_peer", .description = "no graph, no ring", .priority = -1, .unavailable_reason = [] {
                 return std::string();
               }}};
        },
    .open = PeerExecutor::open};

}  // namespace zinc_rt
