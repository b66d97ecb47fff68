// Makes a device's pipelines, and keeps the code that the driver compiled for them in a cache file.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "vulkan/device/device.h"
#include "vulkan/device/matrices.h"
#include "vulkan/device/strict.h"

namespace zinc_rt::vulkan {
namespace {

// Returns the path of the cache file. If the user has no cache folder, the path is empty and nothing is kept.
std::filesystem::path cache_file(const DeviceInfo& info) {
  const std::filesystem::path folder = options::cache_folder();
  return folder.empty() ? folder : folder / ("vulkan-" + info.cache_id + ".bin");
}

const Module* find_module(std::string_view name) {
  const auto found = std::ranges::find(modules(), name, &Module::name);
  return found == modules().end() ? nullptr : &*found;
}

}  // namespace

// Reads the cache file into a pipeline cache. The driver itself refuses a file that another driver wrote.
void Device::open_cache() {
  std::string kept;
  if (const auto path = cache_file(info_); !path.empty()) {
    std::ifstream file(path, std::ios::binary);
    kept.assign(std::istreambuf_iterator<char>(file), {});
  }
  VkPipelineCacheCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  wanted.initialDataSize = kept.size();
  wanted.pInitialData = kept.data();
  if (api_->CreatePipelineCache(device_, &wanted, nullptr, &cache_) != VK_SUCCESS) cache_ = nullptr;
}

// Writes the cache file. Without it only the next start takes longer, so errors are logged and not returned.
void Device::keep_cache() const {
  const auto path = cache_file(info_);
  std::size_t n = 0;
  if (path.empty() || cache_ == nullptr || api_->GetPipelineCacheData(device_, cache_, &n, nullptr) != VK_SUCCESS)
    return;
  std::string bytes(n, '\0');
  if (api_->GetPipelineCacheData(device_, cache_, &n, bytes.data()) != VK_SUCCESS) return;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path part = path.string() + "." + std::to_string(getpid());
  std::ofstream(part, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(n));
  std::filesystem::rename(part, path, error);
  if (error) log().info("[vulkan] {} is not kept: {}", path.string(), error.message());
}

KernelKey Device::in_form(const KernelKey& key) const {
  if (find_module(key.name) != nullptr) return key;
  const Module* module = nullptr;
  if (faults_.matrices_by_hand) module = find_module(fmt::format("{}_by_hand.{}", key.name, to_string(form_)));
  if (module == nullptr) module = find_module(fmt::format("{}.{}", key.name, to_string(form_)));
  return {module != nullptr ? module->name : key.name, key.constants};
}

Result<VkPipeline> Device::make_pipeline(const KernelKey& key) const {
  const Module* found = find_module(key.name);
  if (found == nullptr) return fail(StatusCode::kInternal, "[vulkan] there is no kernel {}", key.name);
  auto code = complete_matrices(found->words);
  if (!faults_.undecorated)
    code = strict(code, {.keep_denormals = info_.keeps_denormals,
                         .round_to_even = info_.rounds_to_even,
                         .keep_inf_nan_zero = info_.keeps_inf_nan_zero});
  VkShaderModuleCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  wanted.codeSize = code.size() * sizeof(std::uint32_t);
  wanted.pCode = code.data();
  VkShaderModule module = nullptr;
  if (const auto result = api_->CreateShaderModule(device_, &wanted, nullptr, &module); result != VK_SUCCESS)
    return fail(StatusCode::kInternal, "[vulkan] kernel {}: {}", key.name, to_string(result));
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < key.constants.size(); ++i) entries.push_back({i, 4 * i, 4});
  const VkSpecializationInfo constants{static_cast<std::uint32_t>(entries.size()), entries.data(), 4 * entries.size(),
                                       key.constants.data()};
  VkComputePipelineCreateInfo pipeline{};
  pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline.stage.module = module;
  pipeline.stage.pName = "main";
  pipeline.stage.pSpecializationInfo = &constants;
  pipeline.layout = layout_;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = info_.subgroup_size;
  if (info_.has_sizes_of_subgroups) pipeline.stage.pNext = &subgroup;
  VkPipeline made = nullptr;
  const auto result = api_->CreateComputePipelines(device_, cache_, 1, &pipeline, nullptr, &made);
  api_->DestroyShaderModule(device_, module, nullptr);
  if (result != VK_SUCCESS)
    return fail(StatusCode::kInternal, "[vulkan] kernel {} is refused: {}", key.name, to_string(result));
  return made;
}

Status Device::make_pipelines(std::span<const KernelKey> keys) {
  std::vector<KernelKey> wanted;
  for (const KernelKey& key : keys) {
    const auto named = in_form(key);
    if (std::ranges::find(wanted, named) == wanted.end() &&
        std::ranges::find(pipelines_, named, &std::pair<KernelKey, VkPipeline>::first) == pipelines_.end())
      wanted.push_back(named);
  }
  if (wanted.empty()) return {};
  std::vector<Result<VkPipeline>> made(wanted.size(), nullptr);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size(); i = next++) made[i] = make_pipeline(wanted[i]);
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min<std::size_t>(wanted.size(), std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  work();
  threads.clear();  // joins the threads
  Status status;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (made[i])
      pipelines_.emplace_back(wanted[i], *made[i]);
    else if (status)
      status = std::unexpected(made[i].error());
  }
  keep_cache();
  return status;
}

std::vector<Device::KernelTime> Device::kernel_times() const {
  std::vector<KernelTime> times;
  for (const auto& [key, pipeline] : pipelines_) {
    KernelTime time{std::string(key.name)};
    for (const std::uint32_t constant : key.constants) time.kernel += fmt::format(" {}", constant);
    if (stopwatch_)
      for (const auto& span : stopwatch_->spans())
        if (span.pipeline == pipeline) ++time.n, time.seconds += span.seconds;
    if (time.n > 0) times.push_back(std::move(time));
  }
  return times;
}

VkPipeline Device::pipeline(const KernelKey& key) const {
  return std::ranges::find(pipelines_, in_form(key), &std::pair<KernelKey, VkPipeline>::first)->second;
}

}  // namespace zinc_rt::vulkan
