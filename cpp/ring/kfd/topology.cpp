#include "ring/kfd/topology.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace zinc_rt::ring::kfd {
namespace {

constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes/";
constexpr int kMostNodes = 64;

// Returns the text of a file; empty if the file does not exist or may not be read.
std::string read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(1 << 14, '\0');
  const auto n = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

// Returns the number in the line "name number"; 0 if the text has no such line.
std::uint64_t property(const std::string& text, const std::string& name) {
  const std::string lines = "\n" + text, wanted = "\n" + name + " ";
  const auto at = lines.find(wanted);
  return at == std::string::npos ? 0 : std::strtoull(lines.c_str() + at + wanted.size(), nullptr, 10);
}

}  // namespace

std::vector<Node> read_topology() {
  std::vector<Node> nodes;
  for (int i = 0; i < kMostNodes; ++i) {
    const std::string folder = kNodes + std::to_string(i);
    const auto gpu_id = std::strtoul(read_text(folder + "/gpu_id").c_str(), nullptr, 10);
    if (gpu_id == 0) continue;  // this node is a processor
    const std::string text = read_text(folder + "/properties");
    Node node;
    node.name = read_text(folder + "/name");
    while (!node.name.empty() && node.name.back() == '\n') node.name.pop_back();
    node.gpu_id = static_cast<std::uint32_t>(gpu_id);
    node.gfx = gfx_of_topology(static_cast<std::uint32_t>(property(text, "gfx_target_version")));
    node.render_minor = static_cast<std::uint32_t>(property(text, "drm_render_minor"));
    const auto simds = property(text, "simd_per_cu");
    node.n_cus = simds == 0 ? 0 : static_cast<std::uint32_t>(property(text, "simd_count") / simds);
    node.cwsr_bytes = property(text, "cwsr_size");
    node.ctl_stack_bytes = property(text, "ctl_stack_size");
    node.memory_bytes = property(read_text(folder + "/mem_banks/0/properties"), "size_in_bytes");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<kernel::Target> target_of(const Node& node) {
  auto target = ring::target_of(node.gfx);
  if (!target) return fail(StatusCode::kUnavailable, "[t1] {}: {}", node.name, target.error().message);
  return target;
}

}  // namespace zinc_rt::ring::kfd
