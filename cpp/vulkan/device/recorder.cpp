#include "vulkan/device/recorder.h"

#include <algorithm>

namespace zinc_rt::vulkan {
namespace {

void add_barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags2 from, VkAccessFlags2 written,
                 VkPipelineStageFlags2 to, VkAccessFlags2 used) {
  VkMemoryBarrier2 barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  barrier.srcStageMask = from;
  barrier.srcAccessMask = written;
  barrier.dstStageMask = to;
  barrier.dstAccessMask = used;
  VkDependencyInfo dependency{};
  dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  api.CmdPipelineBarrier2(commands, &dependency);
}

}  // namespace

void Recorder::full_barrier(const Api& api, VkCommandBuffer commands) {
  add_barrier(api, commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_MEMORY_WRITE_BIT,
              VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
              VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT);
}

void Recorder::write_waiting() {
  if (faults_.shuffled) std::ranges::reverse(waiting_);
  for (const Dispatch& d : waiting_) {
    if (d.pipeline != bound_) api_.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline);
    bound_ = d.pipeline;
    api_.CmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes, d.push.data());
    api_.CmdDispatchIndirect(commands_, d.counts, d.offset);
    if (stopwatch_ != nullptr) stopwatch_->mark(api_, commands_, d.pipeline);
  }
  waiting_.clear();
}

void Recorder::barrier() {
  if (waiting_.empty()) return;
  if (faults_.lost_barrier > 0 && ++n_barriers_ % faults_.lost_barrier == 0) return;
  write_waiting();
  add_barrier(api_, commands_, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_WRITE_BIT,
              VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT);
}

void Recorder::copy(VkBuffer from, VkBuffer to, const VkBufferCopy& part) {
  api_.CmdCopyBuffer(commands_, from, to, 1, &part);
}

void Recorder::finish() {
  write_waiting();
  full_barrier(api_, commands_);
}

}  // namespace zinc_rt::vulkan
