// The two drivers of the tests, each behind a device file. preload.cpp gives a program theirs instead of the system's.
#pragma once

#include <optional>
#include <string>

namespace amd_sim {

// /dev/kfd and the topology in /sys. control() is 0, or what errno becomes.
namespace kfd_driver {
std::optional<int> open(const std::string& path);  // nullopt: it is another's
bool has(int fd);
void close(int fd);
int control(unsigned request, void* arg);
}  // namespace kfd_driver

// /dev/dri/renderD128 and the module's parameter.
namespace drm_driver {
std::optional<int> open(const std::string& path);
bool has(int fd);
void close(int fd);
int control(int fd, unsigned request, void* arg);
}  // namespace drm_driver

// A file of /sys with this in it.
int text_file(const std::string& content);

}  // namespace amd_sim
