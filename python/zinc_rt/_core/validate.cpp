#include "zinc_rt/validate.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "bindings.h"

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
  auto report = [&] {
    const WithoutGil release;
    return validate(model.string(), o);
  }();
  return unwrap(std::move(report));
}

}  // namespace

void bind_validate(py::module_& m) {
  py::class_<Difference>(m, "Difference", "Two arrays, value by value.")
      .def_readonly("name", &Difference::name)
      .def_readonly("layer", &Difference::layer)
      .def_readonly("equal", &Difference::equal)
      .def_readonly("n_values", &Difference::n_values)
      .def_readonly("n_different", &Difference::n_different)
      .def_readonly("max_abs", &Difference::max_abs)
      .def_readonly("mean_abs", &Difference::mean_abs)
      .def_readonly("histogram", &Difference::histogram)
      .def("__repr__", [](const Difference& d) {
        return "<" + d.name + ": " + std::to_string(d.n_different) + " of " + std::to_string(d.n_values) +
               " values differ, at most by " + py::str(py::float_(d.max_abs)).cast<std::string>() + ">";
      });
  py::class_<ValidateReport>(m, "ValidateReport", "What validate() found; print it for a table.")
      .def_readonly("equal", &ValidateReport::equal)
      .def_property_readonly("sides", [](const ValidateReport& r) { return py::make_tuple(r.sides[0], r.sides[1]); })
      .def_readonly("token_ids", &ValidateReport::token_ids)
      .def_readonly("tolerance", &ValidateReport::tolerance)
      .def_readonly("layers", &ValidateReport::layers)
      .def_readonly("logits", &ValidateReport::logits)
      .def_readonly("n_rows", &ValidateReport::n_rows)
      .def_readonly("n_same_top", &ValidateReport::n_same_top)
      .def("__repr__", &ValidateReport::to_text)
      .def("to_json", [](const ValidateReport& r) { return from_json(r.to_json()); });
  m.def("validate", &run, py::arg("model"), py::arg("prompt") = py::none(),
        py::arg("tiers") = std::vector<std::string>{"t_cpu", "t_cpu+fusion=0"}, py::arg("layers") = "all",
        py::arg("against") = py::none(), py::arg("tolerance") = 0.0,
        "Runs a prompt (text or token ids) on two sides, or on one against an .npz file, and compares them layer by "
        "layer; `zinc-rt validate --help` describes sides, layers and arrays.");
}

}  // namespace zinc_rt::python
