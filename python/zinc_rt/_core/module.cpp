#include <pybind11/stl.h>

#include "bindings.h"
#include "tools/cli.h"
#include "zinc_rt/version.h"

namespace zinc_rt::python {
namespace {

int cli(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"zinc-rt"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  const WithoutGil release;
  return tools::cli_main(static_cast<int>(argv.size()), argv.data());
}

}  // namespace
}  // namespace zinc_rt::python

PYBIND11_MODULE(_core, m) {
  using namespace zinc_rt::python;
  pybind11::options options;
  options.disable_function_signatures();  // the package makes them from the stub (_signature.py)
  count_forks();
  m.attr("__version__") = zinc_rt::kVersion;
  bind_text(m);
  bind_session(m);
  bind_tenant(m);
  bind_engine(m);
  bind_validate(m);
  bind_placement(m);
  m.def("cli", &cli, py::arg("arguments"), "Runs the zinc-rt program; returns its exit code.");
}
