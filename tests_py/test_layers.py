"""The module table holds, and the check can fail."""

import pathlib

import pytest

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_the_table_holds():
    assert list(check_layers.breaches(ROOT)) == []


@pytest.mark.parametrize(
    "path, line",
    [
        ("cpp/base/a.h", '#include "model/config.h"'),
        ("cpp/ir/a.cpp", '#include "ring/ring.h"'),
        ("cpp/base/a.cpp", "#include <linux/futex.h>"),
        ("cpp/engine/a.cpp", "#include <sys/eventfd.h>"),
        ("kernels/cpu/a.cpp", "#include <sched.h>"),
        ("cpp/base/platform/a.cpp", "#include <sched.h>"),
        ("cpp/ring/a.cpp", "#include <sys/mman.h>"),
        ("cpp/ring/amd/a.cpp", "#include <sys/mman.h>"),
        ("kernels/cpu_simd/a.cpp", "#include <sys/auxv.h>"),
        ("cpp/model/a.cpp", "#include <sys/sysctl.h>"),
        ("cpp/tools/a.cpp", "#include <mach/mach.h>"),
        ("cpp/engine/a.cpp", "#include <wasi/api.h>"),
        ("cpp/ring/cuda/a.cpp", '#include "ring/cpu/cpu_ring.h"'),
        ("cpp/ring/cuda/plan/a.cpp", '#include "ring/cuda/cuda_ring.h"'),
        ("cpp/ring/amd/a.cpp", '#include "ring/cuda/driver.h"'),
        ("cpp/ring/gpu/a.cpp", '#include "ring/amd/plan.h"'),
        ("cpp/ring/gpu/a.cpp", '#include "ring/cuda/plan/plan.h"'),
        ("cpp/ring/gpu/a.cpp", '#include "kernels/rdna/op_args.h"'),
        ("cpp/ring/a.cpp", '#include "ring/gpu/call.h"'),
        ("cpp/ring/a.cpp", '#include "ring/cpu/cpu_ring.h"'),
        ("cpp/executor/peer/a.cpp", '#include "executor/ring/prepare.h"'),
        ("cpp/executor/peer/a.cpp", '#include "ring/ring.h"'),
        ("cpp/executor/a.cpp", '#include "lower/alias.h"'),
        ("cpp/executor/a.cpp", '#include "executor/ring/prepare.h"'),
        ("cpp/vulkan/a.cpp", '#include "arch/family.h"'),
        ("cpp/vulkan/a.cpp", '#include "ir/graph.h"'),
        ("cpp/vulkan/a.cpp", '#include "ring/ring.h"'),
        ("cpp/vulkan/a.cpp", '#include "lower/lower.h"'),
        ("cpp/vulkan/a.cpp", '#include "executor/rope_table.h"'),
        ("cpp/vulkan/a.cpp", '#include "kernels/cpu/ops.h"'),
        ("cpp/vulkan/device/a.cpp", '#include "vulkan/forward.h"'),
        ("cpp/executor/a.cpp", '#include "vulkan/devices.h"'),
        ("cpp/engine/a.cpp", '#include "kernels/cpu/ops.h"'),
        ("cpp/engine/a.cpp", '#include "executor/ring/prepare.h"'),
        ("cpp/server/a.cpp", '#include "engine/core.h"'),
        ("cpp/browser/a.cpp", '#include "server/core.h"'),
        ("cpp/browser/a.cpp", '#include "engine/core.h"'),
        ("cpp/server/transport/a.cpp", '#include "server/api/json_in.h"'),
        ("cpp/server/http/a.cpp", '#include "server/transport/transport.h"'),
        ("cpp/server/http/a.cpp", "#include <nlohmann/json.hpp>"),
        ("cpp/server/api/a.cpp", '#include "server/answers/answer_writer.h"'),
        ("cpp/server/answers/a.cpp", '#include "server/models/models.h"'),
        ("cpp/server/api/a.cpp", '#include "server/tenants/tenants.h"'),
        ("cpp/server/api/a.cpp", '#include "server/core.h"'),
        ("cpp/server/tenants/a.cpp", '#include "server/models/models.h"'),
        ("cpp/server/models/a.cpp", '#include "server/core.h"'),
        ("cpp/server/state/a.cpp", '#include "server/api/json_in.h"'),
        ("cpp/server/a.cpp", '#include "server/endpoints/ui_files.h"'),
        ("cpp/server/misc/a.cpp", '#include "server/core.h"'),
        ("cpp/server/transport/a.cpp", '#include "zinc_rt/engine.h"'),
        ("cpp/server/transport/a.cpp", "#include <nlohmann/json.hpp>"),
        ("tests_cpp/server/transport/a_test.cpp", '#include "server/tenants/tenants.h"'),
        ("cpp/tokenizer/a.cpp", '#include "jinja/ast.h"'),
        ("cpp/client/a.cpp", '#include "server/http.h"'),
        ("cpp/include/zinc_rt/a.h", '#include "base/error.h"'),
        ("cpp/misc/a.h", ""),
        ("cpp/ir/a.cpp", '#include "../ring/ring.h"'),
        ("kernels/common/a.h", '#include "base/dtype.h"'),
        ("cpp/model/a.cpp", '#include "tests_cpp/model/builder.h"'),
        ("kernels/cuda/a.cu", '#include "kernels/cpu/ops.h"'),
        ("kernels/cpu/a.cpp", '#include "ir/op.h"'),
        ("tests_cpp/mem/a_test.cpp", '#include "engine/core.h"'),
        ("tests_cpp/model/a_test.cpp", '#include "tests_cpp/ir/graphs.h"'),
        ("python/zinc_rt/_core/a.cpp", '#include "executor/executor.h"'),
        ("cpp/tools/a.cpp", '  fmt::print(stderr, "a {}", 1);'),
        ("cpp/tools/a.cpp", '  fmt::print("a {}", 1);'),
        ("cpp/tools/a.cpp", "  std::println(line);"),
        ("cpp/server/a.cpp", '  std::cerr << "a";'),
        ("cpp/base/a.cpp", "  std::fflush(stdout);"),
        ("cpp/base/a.cpp", "  std::fputs(text, stderr);"),
        ("cpp/base/a.cpp", "  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();"),
        ("kernels/cpu/a.cpp", '  printf("a");'),
        ("python/zinc_rt/_core/a.cpp", '  perror("a");'),
    ],
)
def test_a_breach_is_found(tmp_path, path, line):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(line + "\n")
    assert len(list(check_layers.breaches(tmp_path))) == 1


@pytest.mark.parametrize(
    "line",
    [
        'print_err("zinc-rt: {}", "std::cerr");',
        "ir::print(graph);",
        "std::snprintf(text, sizeof text, format);",
        "// fmt::print throws",
    ],
)
def test_what_prints_into_no_stream_is_no_breach(tmp_path, line):
    (tmp_path / "cpp" / "base").mkdir(parents=True)
    (tmp_path / "cpp" / "base" / "a.cpp").write_text(line + "\n")
    assert list(check_layers.breaches(tmp_path)) == []


@pytest.mark.parametrize(
    "path, line",
    [
        ("cpp/ring/cuda/a.cpp", '#include "ring/ring.h"'),
        ("cpp/ring/cuda/plan/a.cpp", '#include "ring/gpu/call.h"'),
        ("cpp/ring/amd/a.cpp", '#include "ring/gpu/call.h"'),
        ("cpp/ring/kfd/a.cpp", '#include "ring/amd/device.h"'),
        ("cpp/ring/gpu/a.cpp", '#include "ring/packet.h"'),
        ("cpp/ring/kfd/kfd_device.cpp", "#include <sys/mman.h>"),
        ("cpp/base/platform/macos/a.cpp", "#include <sys/event.h>"),
        ("cpp/base/platform/linux/a.cpp", "#include <linux/futex.h>"),
        ("cpp/ring/cpu/a.cpp", '#include "kernels/cpu/kernel.h"'),
        ("cpp/engine/a.cpp", '#include "executor/executor.h"'),
        ("cpp/server/a.cpp", '#include "server/transport/transport.h"'),
        ("cpp/server/transport/a.cpp", '#include "base/log.h"'),
        ("cpp/server/transport/a.cpp", '#include "server/http/http.h"'),
        ("cpp/server/batches/a.cpp", '#include "server/router.h"'),
        ("cpp/server/endpoints/a.cpp", '#include "server/batches/listing.h"'),
        ("cpp/executor/ring/a.cpp", '#include "ring/ring.h"'),
        ("cpp/executor/peer/a.cpp", '#include "executor/step_check.h"'),
        ("kernels/cpu/a.cpp", '#include "kernels/common/fold.h"'),
        ("tests_cpp/lower/a_test.cpp", '#include "executor/executor.h"'),
        ("python/zinc_rt/_core/a.cpp", '#include "zinc_rt/engine.h"'),
    ],
)
def test_what_is_allowed(tmp_path, path, line):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(line + "\n")
    assert list(check_layers.breaches(tmp_path)) == []
