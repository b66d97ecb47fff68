#include "ring/amd/drm_connection.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "ring/amd/gpus.h"

namespace zinc_rt::ring {
namespace {

constexpr int kFirstNode = 128, kEndNode = 192;

}  // namespace

Result<std::unique_ptr<DrmConnection>> DrmConnection::open(std::string_view tier) {
  Error last = fail(StatusCode::kUnavailable, "[{}] no render node is there (/dev/dri/renderD128)", tier).error();
  for (int node = kFirstNode; node < kEndNode; ++node) {
    const std::string path = fmt::format("/dev/dri/renderD{}", node);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) {
      last = fail(StatusCode::kUnavailable, "[{}] {}: {}; the user must be in the group render", tier, path,
                  std::strerror(errno))
                 .error();
      continue;
    }
    auto connection = std::unique_ptr<DrmConnection>(new DrmConnection(tier, fd));
    if (auto status = connection->identify(); status)
      return connection;
    else
      last = fail(StatusCode::kUnavailable, "[{}] {}: {}", tier, path, status.error().message).error();
  }
  return std::unexpected(std::move(last));
}

DrmConnection::~DrmConnection() {
  ::close(fd_);
}

Status DrmConnection::control(unsigned request, void* argument, std::string_view attempt) const {
  while (::ioctl(fd_, request, argument) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    const int error = errno;
    return fail(error == ENOMEM ? StatusCode::kExhausted : StatusCode::kUnavailable, "[{}] {}: {}", tier_, attempt,
                std::strerror(error));
  }
  return {};
}

Status DrmConnection::identify() {
  char name[16] = {};
  drm::Version version{};
  version.name_bytes = sizeof(name) - 1, version.name = reinterpret_cast<drm::u64>(name);
  ZRT_CHECK_OK(control(drm::kVersion, &version, "VERSION"));
  if (std::string_view(name) != "amdgpu") return fail(StatusCode::kUnavailable, "its driver is {}", name);
  ZRT_CHECK_OK(ask(drm::kDeviceInfo, device_));
  compute_.n_user_slots = drm::kNotTold;
  ZRT_CHECK_OK(ask(drm::kEngineInfo, compute_, drm::kCompute));
  ZRT_TRY(target_, ring::target_of(gfx_of_engine(compute_.version)));
  return {};
}

Status DrmConnection::check_faults() const {
  drm::FaultInfo fault{};
  if (!ask(drm::kFault, fault) || fault.status == 0) return {};  // an older kernel does not report faults
  return fail(StatusCode::kInternal, "[{}] the device is lost: a memory fault at {:#x} (status {:#x})", tier_, fault.va,
              fault.status);
}

}  // namespace zinc_rt::ring
