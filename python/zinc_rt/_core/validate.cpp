#include "zinc_rt/validate.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "bindings.h"
#include "interruptible.h"

namespace zinc_rt::python {
namespace {

ValidateReport run(const std::filesystem::path& model, const py::object& prompt, const std::vector<std::string>& tiers,
                   const py::object& layers, const std::optional<std::filesystem::path>& against, double tolerance) {
  ValidateOptions o;
  if (py::isinstance<py::str>(prompt))
    o.prompt = prompt.cast<std::string>();
  else if (!prompt.is_none())
    o.token_ids = prompt.cast<std::vector<std::int32_t>>();
  o.tiers = tiers;
  if (py::isinstance<py::str>(layers)) {
    o.layers = layers.cast<std::string>();
  } else {
    o.layers.clear();
    for (const auto& layer : layers) o.layers += (o.layers.empty() ? "" : ",") + py::str(layer).cast<std::string>();
    if (o.layers.empty()) o.layers = "none";
  }
  if (against) o.against = against->string();
  o.tolerance = tolerance;
  return interruptible([o, path = model.string()](const StopAsked& is_stopped) mutable {
    o.is_stopped = is_stopped;
    return validate(path, o);
  });
}

}  // namespace

void bind_validate(py::module_& m) {
  m.def("validate", &run, py::arg("model"), py::arg("prompt") = py::none(),
        py::arg("tiers") = std::vector<std::string>{"t_cpu", "t_cpu+fusion=0"}, py::arg("layers") = "all",
        py::arg("against") = py::none(), py::arg("tolerance") = 0.0,
        "Runs a prompt (text or token ids) on two sides, or on one against an .npz file, and compares them layer by "
        "layer; `zinc-rt validate --help` describes sides, layers and arrays.");
}

}  // namespace zinc_rt::python
