// Finds what each packet of a batch waits for, and the values that it reads and writes. Two packets get an edge if they
// access the same bytes and at least one of them writes. Two bindings belong to one value only if they are exactly the
// same bytes.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "ring/packet.h"

namespace zinc_rt::ring {
namespace {

// Remembers which packets have accessed the bytes of each buffer object. The bytes are split into segments at the
// beginnings and ends of accesses.
class Accesses {
 public:
  // Adds the edges that packet `to` needs because it reads or writes the bytes of `at`.
  void add(std::uint32_t to, const Binding& at, bool writes, std::vector<Edge>& edges) {
    auto& segments = objects_[at.bo];
    split(segments, at.offset);
    split(segments, at.offset + at.bytes);
    std::uint64_t begin = at.offset;
    const std::uint64_t end = at.offset + at.bytes;
    for (auto it = segments.lower_bound(begin); begin < end;) {
      // No packet has accessed these bytes before.
      if (it == segments.end() || it->first > begin)
        it = segments.emplace_hint(it, begin, Segment{it == segments.end() ? end : std::min(end, it->first), {}, {}});
      Segment& segment = it->second;
      const auto wait_for = [&](std::uint32_t from) {
        if (from != to) edges.push_back({from, to, at.bo, begin, segment.end - begin});
      };
      if (writes && !segment.readers.empty())
        std::ranges::for_each(segment.readers, wait_for);
      else if (segment.writer)
        wait_for(*segment.writer);
      if (writes)
        segment.writer = to, segment.readers.clear();
      else if (segment.readers.empty() || segment.readers.back() != to)
        segment.readers.push_back(to);
      begin = segment.end;
      ++it;
    }
  }

 private:
  struct Segment {
    std::uint64_t end;
    std::optional<std::uint32_t> writer;
    std::vector<std::uint32_t> readers;  // packets that have read these bytes since the last write
  };
  using Segments = std::map<std::uint64_t, Segment>;  // key: the segment's first byte

  static void split(Segments& segments, std::uint64_t at) {
    auto it = segments.upper_bound(at);
    if (it == segments.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment behind = it->second;
    it->second.end = at;
    segments.emplace(at, std::move(behind));
  }

  std::map<std::uint32_t, Segments> objects_;  // key: the id of the buffer object
};

}  // namespace

void find_dependencies(PacketBatch& batch) {
  batch.values.clear();
  batch.edges.clear();
  Accesses accesses;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, ValueId> current;
  for (std::uint32_t i = 0; i < batch.packets.size(); ++i) {
    const Packet& packet = batch.packets[i];
    const std::size_t first_edge = batch.edges.size();
    for (const bool writes : {false, true})
      for (std::uint32_t b = writes ? packet.n_inputs : 0; b < (writes ? packet.n_bindings : packet.n_inputs); ++b) {
        Binding& binding = batch.bindings[packet.first_binding + b];
        if (binding.bo == 0) continue;
        auto [it, is_new] = current.try_emplace({binding.bo, binding.offset, binding.bytes}, kNoValue);
        if (is_new || writes) {
          it->second = static_cast<ValueId>(batch.values.size());
          batch.values.push_back({binding, i});
        }
        binding.value = it->second;
        batch.values[binding.value].last_use = i;
        accesses.add(i, binding, writes, batch.edges);
      }
    // An operand that is updated in place would add the same edges twice.
    const auto key = [](const Edge& e) { return std::tuple(e.from, e.bo, e.offset, e.bytes); };
    std::sort(batch.edges.begin() + static_cast<std::ptrdiff_t>(first_edge), batch.edges.end(),
              [&](const Edge& x, const Edge& y) { return key(x) < key(y); });
    batch.edges.erase(std::unique(batch.edges.begin() + static_cast<std::ptrdiff_t>(first_edge), batch.edges.end(),
                                  [&](const Edge& x, const Edge& y) { return key(x) == key(y); }),
                      batch.edges.end());
  }
}

std::vector<bool> barriers(const PacketBatch& batch) {
  std::vector<bool> before(batch.packets.size());
  std::uint32_t last = 0;
  auto edge = batch.edges.begin();
  for (std::uint32_t i = 0; i < batch.packets.size(); ++i) {
    bool waits = i > 0 && i == batch.body_end;
    for (; edge != batch.edges.end() && edge->to == i; ++edge) waits |= edge->from >= last;
    before[i] = waits;
    if (waits) last = i;
  }
  return before;
}

}  // namespace zinc_rt::ring
